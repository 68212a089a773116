"""Sends one message through an enterprise over real sockets, and records its path.

Every machine on the path gets its own queue manager on a loopback port, which starts when its
address is first resolved. So only the routing of each machine determines the path.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from mqis.protocol.queueing.events import (
    Arrived,
    Dropped,
    Event,
    Nacked,
    Refused,
    Relayed,
    Stranded,
    Written,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, PublicQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.routing.breakage import RouteFault
from mqis.protocol.routing.explain import Explanation
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.protocol.routing.snapshot import Snapshot
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.texts import duration
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier

HOST = "127.0.0.1"
#: The private queues of these machines: for messages, and for acknowledgements.
QUEUE, ADMIN_QUEUE = 16, 17
_LIMITS = QueueingLimits(retry_s=0.2, retry_max_s=1.0, connect_timeout_s=5.0, init_timeout_s=5.0)
#: The time to wait for the negative acknowledgement after the hop count ran out.
_NACK_S = 5.0


@dataclass(frozen=True, slots=True)
class Passing:
    """One machine sends the message on; ``hops`` is the message's hop count then."""

    machine: Guid
    next: Guid
    hops: int


@dataclass(frozen=True, slots=True)
class Journey:
    """The path of a message, as the queue managers recorded it."""

    source: Guid
    destination: Guid
    passings: tuple[Passing, ...]
    #: The reason why it did not arrive; None if it did.
    failure: str | None
    #: The class of the negative acknowledgement that came back, if one did.
    nack: int | None
    seconds: float

    @property
    def machines(self) -> tuple[Guid, ...]:
        """The machines that had the message, in order."""
        return self.source, *(passing.next for passing in self.passings)

    def took(self, explained: Explanation) -> bool:
        """Returns whether the message took the explained path, and ended as explained."""
        expected = explained.machines
        if explained.breakage is not None and explained.breakage.fault is RouteFault.HOP_LIMIT:
            expected = (*expected, explained.breakage.subject)  # the machine that refuses it
        ends_alike = (self.failure is None) is (explained.breakage is None)
        return ends_alike and self.machines == expected


@dataclass(slots=True)
class _Record:
    """The events of one message from all machines."""

    identifier: MessageIdentifier | None = None
    passings: list[Passing] = field(default_factory=list)
    failure: str | None = None
    nack: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class SendingEnterprise:
    """The queue managers of a snapshot, each started when it is needed.

    ``owners`` returns the queue manager of a public queue.
    """

    def __init__(self, snapshot: Snapshot, owners: Callable[[Guid], Guid | None]) -> None:
        self._snapshot = snapshot
        self._owners = owners
        self._names = {canonical(m.name): m.id for m in snapshot.machines.values()}
        self._stack = AsyncExitStack()
        self._endpoints: dict[Guid, QueueingEndpoint] = {}
        self._ports: dict[Guid, int] = {}
        self._starting = asyncio.Lock()
        self._record = _Record()

    async def __aenter__(self) -> SendingEnterprise:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._stack.aclose()

    async def send(
        self, source: Guid, queue: PrivateQueue | PublicQueue, body: bytes, timeout_s: float
    ) -> Journey:
        """Sends one message; returns its path once it has arrived, failed or timed out."""
        self._record = record = _Record()
        began = time.perf_counter()
        await self._start(source)
        lifetime_s = max(1, round(timeout_s))
        message = QueuedMessage(
            body, lifetime_s=lifetime_s, acknowledge=True, queue=queue, admin=ADMIN_QUEUE
        )
        record.identifier = self._endpoints[source].send_routed(message)
        self._drain(source)
        try:
            async with asyncio.timeout(timeout_s):
                await record.ended.wait()
        except TimeoutError:
            record.failure = record.failure or f"it did not arrive within {duration(timeout_s)}"
        seconds = time.perf_counter() - began
        passings = tuple(chain(source, record.passings))
        destination = queue.queue_manager
        return Journey(source, destination, passings, record.failure, record.nack, seconds)

    # --- machines ---------------------------------------------------------------------------------

    async def _resolve(self, machine: str) -> tuple[str, int]:
        return HOST, await self._start(self._names[canonical(machine)])

    async def _start(self, machine: Guid) -> int:
        async with self._starting:
            if machine not in self._ports:
                endpoint = self._endpoint(machine)
                await self._stack.enter_async_context(endpoint)
                self._ports[machine] = await endpoint.listen(HOST, 0)
                self._endpoints[machine] = endpoint
        return self._ports[machine]

    def _endpoint(self, machine: Guid) -> QueueingEndpoint:
        keeper = RoutingTableKeeper(machine, lambda: self._snapshot, 0.0)
        router = DirectoryRouter(machine, keeper, self._owners, (QUEUE, ADMIN_QUEUE))
        ids = MessageIdCounter.from_time(int(time.time()))
        name = self._snapshot.machines[machine].name
        try:
            manager = QueueingMachine(
                machine, name, ids, limits=_LIMITS, peers=router, router=router
            )
        except ValueError as error:
            raise MqisError(f"no queue manager for machine {machine}: {error}") from error
        return QueueingEndpoint(manager, self._resolve, lambda: self._drain(machine))

    # --- events -----------------------------------------------------------------------------------

    def _drain(self, machine: Guid) -> None:
        endpoint, record = self._endpoints.get(machine), self._record
        while endpoint is not None and (event := endpoint.manager.next_event()) is not None:
            if getattr(event, "identifier", None) == record.identifier is not None:
                self._note(machine, event, record)

    def _note(self, machine: Guid, event: Event, record: _Record) -> None:
        if isinstance(event, Written):
            record.passings.append(Passing(machine, self._names[canonical(event.machine)], 0))
        elif isinstance(event, Relayed):
            record.passings.append(Passing(machine, event.next_hop, event.hops))
        elif isinstance(event, Refused) and not event.duplicate:
            record.failure = f"{self._called(machine)} refuses it: {event.reason}"
            if self._endpoints[machine].manager.statistics.exhausted:
                asyncio.get_running_loop().call_later(_NACK_S, record.ended.set)
            else:
                record.ended.set()
        elif isinstance(event, Stranded):
            record.failure = f"{self._called(machine)} keeps it: {event.reason}"
            record.ended.set()
        elif isinstance(event, (Nacked, Dropped)):
            record.nack = event.message_class
            record.failure = record.failure or "its time limit expired"
            record.ended.set()
        elif isinstance(event, Arrived):
            record.ended.set()

    def _called(self, machine: Guid) -> str:
        return self._snapshot.machines[machine].name


def chain(source: Guid, passings: Iterable[Passing]) -> list[Passing]:
    """Orders the passings from the source on, and drops repetitions."""
    passing_at = {(passing.machine, passing.hops): passing for passing in passings}
    found: list[Passing] = []
    here = source
    while (passing := passing_at.get((here, len(found)))) is not None:
        found.append(passing)
        here = passing.next
    return found
