"""The sender of change notifications to queue managers (MS-MQCN 3.3.5.3).

They have sessions of their own, apart from replication: a thousand machines that are switched
off take no room from it. A notification that cannot be delivered is only counted: nothing
depends on one, and a queue manager that starts reads the directory anyway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from mqis.protocol.directory.change_notification import (
    ChangeNotice,
    LocalQueueManager,
    machine_of_notice,
    notification_of,
)
from mqis.protocol.queueing.events import Acknowledged, Dropped, Nacked
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import Peers, QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.queueing.signing import Signer, SigningPolicy
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint, Resolver
from mqis.wire.mqcn import NOTIFY_QUEUE_ID

log = logging.getLogger(__name__)

#: TimeToReachQueue.
LIFETIME_S = 300
LIMITS = QueueingLimits(max_destinations=256, max_queued_messages=1000, max_queued_bytes=4 << 20)
#: Notices that wait for their address to be resolved.
MAX_WAITING = 1000
#: Seconds to resolve an address, and for which a failure is cached.
RESOLVE_S = 5.0
UNKNOWN_S = 60.0
_MAX_UNKNOWN = 10_000
#: The offset from the numbers of replication messages, which have the same source.
_NUMBERS = 1 << 31


@dataclass(slots=True)
class NoticeStatistics:
    """Counts of notices since the start."""

    sent: int = 0
    delivered: int = 0
    #: Notices without an address, without room, or without an answer in time.
    failed: int = 0


class ChangeNotifier:
    """``DirectoryContext.notify`` for a server that has a queue manager's name."""

    def __init__(
        self,
        local: LocalQueueManager,
        resolve: Resolver,
        *,
        peers: Peers | None = None,
        signer: Signer | None = None,
        policy: SigningPolicy = SigningPolicy.ACCEPT,
    ) -> None:
        self.statistics = NoticeStatistics()
        self.local = local
        self._resolve = resolve
        self._manager = QueueingMachine(
            local.identifier,
            local.computer_name,
            MessageIdCounter((int(time.time()) << 8) + _NUMBERS),
            limits=LIMITS,
            peers=peers,
            signer=signer,
            policy=policy,
        )
        self._endpoint = QueueingEndpoint(self._manager, resolve, self._count)
        self._waiting: asyncio.Queue[ChangeNotice] = asyncio.Queue(MAX_WAITING)
        self._unknown: dict[str, float] = {}
        self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._endpoint.close(0.5)

    def notify(self, notice: ChangeNotice) -> None:
        """Queues a notice for its queue manager and returns at once."""
        try:
            self._waiting.put_nowait(notice)
        except asyncio.QueueFull:
            self.statistics.failed += 1

    async def _work(self) -> None:
        while True:
            notice = await self._waiting.get()
            try:
                await self._send(notice)
            except Exception as error:  # of a resolver, or because of an invalid name
                self.statistics.failed += 1
                log.debug("%s of %s is not notified: %s", notice.kind.value, notice.obj.path, error)

    async def _send(self, notice: ChangeNotice) -> None:
        machine, owner = machine_of_notice(notice)
        if owner is None or not await self._is_known(machine):
            self.statistics.failed += 1
            return
        body = notification_of(notice, self.local.identifier).to_body()
        queue = PrivateQueue(owner, NOTIFY_QUEUE_ID)
        self._endpoint.send(machine, QueuedMessage(body, lifetime_s=LIFETIME_S, queue=queue))
        self.statistics.sent += 1

    async def _is_known(self, machine: str) -> bool:
        """Returns whether a machine has an address; caches failures for a while."""
        now = time.monotonic()
        if self._unknown.get(machine, 0.0) > now:
            return False
        try:
            async with asyncio.timeout(RESOLVE_S):
                await self._resolve(machine)
        except (OSError, TimeoutError, UnicodeError):
            if len(self._unknown) >= _MAX_UNKNOWN:
                self._unknown.clear()
            self._unknown[machine] = now + UNKNOWN_S
            return False
        return True

    def _count(self) -> None:
        while (event := self._manager.next_event()) is not None:
            if isinstance(event, Acknowledged):
                self.statistics.delivered += len(event.identifiers)
            elif isinstance(event, (Dropped, Nacked)):
                self.statistics.failed += 1
