"""The driver of a node: runs it on sockets and a store's writer.

Operations run in the writer's thread, the queue manager in the event loop, and the effects of an
operation are carried out in the loop after its commit. One batch of operations is under way at a
time: messages that arrive meanwhile wait in the queue manager, which stops reading when they are
too many, and then share the next commit. Clients' changes run between the batches.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from mqis.protocol.clock import Instant
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.ownchange import NotAuthority, OwnChange
from mqis.protocol.errors import REPORTED, DirectoryError, StorageError
from mqis.protocol.node.node import Node, Outcome
from mqis.protocol.ports import Transaction
from mqis.protocol.queueing.events import Notified, Refused, SessionClosed, SessionOpened
from mqis.protocol.replication.effects import (
    HARMLESS,
    ChangeApplied,
    Changed,
    Effect,
    Recovered,
    Refusal,
    RefusalReason,
    RequestAnswered,
    RequestDecided,
    RequestPassedOn,
)
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.outgoing_changes import request_id
from mqis.runtime import changelog
from mqis.runtime.changelog import Origin
from mqis.runtime.histogram import CALL_SECONDS, Histogram
from mqis.runtime.node.answers import PendingAnswers
from mqis.runtime.node.members import Members
from mqis.runtime.node.refusallog import RefusalLog
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint, Resolver
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqcn import ChangeNotification

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Seconds from a failed commit to the retry.
RETRY_S = 1.0
#: Seconds by which the driver waits longer for an answer than replication itself.
_ANSWER_GRACE_S = 5.0

_NO_ANSWER = HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER

Run = Callable[[Transaction], tuple[T, list[Effect]]]


@dataclass(slots=True)
class DriverStatistics:
    """Counts since the start."""

    operations: int = 0
    #: Operations that failed, and restarts of replication from the store because of them.
    failures: int = 0
    restarts: int = 0
    #: Messages, or parts of them, that replication refused, and the reasons.
    refusals: int = 0
    refusals_by_reason: Counter[RefusalReason] = field(default_factory=Counter)
    #: Changes forwarded to another authority, those that failed, and those that timed out.
    forwarded: int = 0
    forward_failures: int = 0
    forward_timeouts: int = 0
    forward_seconds: Histogram = field(default_factory=lambda: Histogram(CALL_SECONDS))
    #: Change notifications about our own queues and machine; they are ignored, since this server
    #: reads the directory itself.
    notices: int = 0


class NodeDriver:
    """Drives a node.

    async with NodeDriver(node, writer, members, resolve) as driver:
        port = await driver.listen("127.0.0.1", 0)
        await driver.change(operation)
    """

    def __init__(
        self,
        node: Node,
        writer: GroupCommitWriter,
        members: Members,
        resolve: Resolver,
        *,
        on_commit: Callable[[], None] = lambda: None,
        on_outcome: Callable[[Outcome], None] = lambda _outcome: None,
        restored: bool = False,
    ) -> None:
        self.node = node
        self.members = members
        self.statistics = DriverStatistics()
        self.endpoint = QueueingEndpoint(node.queue, resolve, self._pump)
        self._writer = writer
        self._on_commit = on_commit
        self._on_outcome = on_outcome
        self._restored = restored
        self._loop = asyncio.get_running_loop()
        self._answers = PendingAnswers()
        self._busy = 0
        self._pause_until = 0.0
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._refusals = RefusalLog(members.name_of)
        #: Used only in the writer's thread: True if memory and store may differ.
        self._broken = False
        self._rollbacks_seen = writer.rollbacks

    async def __aenter__(self) -> NodeDriver:
        """Initialises replication; ``StorageError`` if the store fails."""
        at = self._now()
        start = self.node.start(at, restored=self._restored)
        await asyncio.shield(self._enqueue(lambda tx: (None, start(tx)), at))
        self._running = True
        self.endpoint.wake()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def listen(self, host: str, port: int) -> int:
        """Listens for sessions of other servers; returns the port, a free one for 0."""
        return await self.endpoint.listen(host, port)

    async def close(self, grace_s: float = 2.0) -> None:
        """Sends what open sessions accept, then closes. Committed changes are in the store."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
        await self.endpoint.close(grace_s)
        self._refusals.close()
        self._answers.give_up(HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER)

    def _now(self) -> Instant:
        return Instant(self._loop.time(), time.time())

    # --- a client's changes -----------------------------------------------------------------------

    async def change(
        self,
        operation: Callable[[DirectoryEvents], T],
        observe: Callable[[OwnChange], None] = lambda _change: None,
        origin: Origin = changelog.SELF,
    ) -> T:
        """Makes a change here, or has its authority make it; raises if that refuses.

        For a change made elsewhere, returns the object as it will be: its identifier was
        chosen here, its sequence number is the authority's. ``observe`` is called with each change,
        in the loop, after its commit.
        """
        at = self._now()
        made: list[OwnChange] = []
        try:

            def observing(events: DirectoryEvents) -> T:
                made.clear()  # of a first attempt
                return operation(observed(events, made.append))

            run = self.node.change(observing, at, origin.name)
            result, _ = await asyncio.shield(self._enqueue(run, at))
        except NotAuthority as elsewhere:
            await self._forward(elsewhere.change, origin)
            await self._remember_creator(elsewhere.change)
            observe(elsewhere.change)
            return cast(T, elsewhere.change.obj)
        for change in made:
            changelog.made(change, origin)
            observe(change)
        return result

    async def inspect(self, read: Callable[[Transaction, Memory], T]) -> T:
        """Runs ``read`` on replication's memory in the writer's thread, between operations."""
        at = self._now()
        memory = self.node.replication
        reading = self._enqueue(lambda tx: (read(tx, memory.memory), []), at)
        found, _ = await asyncio.shield(reading)
        return found

    async def _forward(self, change: OwnChange, origin: Origin) -> None:
        at = self._now()
        local, answer = self._answers.expect()
        self.statistics.forwarded += 1
        operation = self.node.request(change, local, at)
        replication = self.node.replication
        wait_s = replication.settings.reply_wait_s + _ANSWER_GRACE_S
        request = ""

        def ask(tx: Transaction) -> tuple[tuple[int, str], list[Effect]]:
            effects = operation(tx)
            memory, me = replication.memory, name_key(replication.me.name)
            waiting = memory.waiting.get((me, memory.last_request))
            return (memory.last_request, waiting.next_hop if waiting else ""), effects

        try:
            (number, hop), _ = await asyncio.shield(self._enqueue(ask, at))
            request = request_id(replication.me.name, number)
            changelog.forwarded(request, change, hop, origin)
            async with asyncio.timeout(wait_s):
                result = await answer
        except TimeoutError:
            result = _NO_ANSWER
        finally:
            self._answers.forget(local)
            seconds = self._loop.time() - at.monotonic
            self.statistics.forward_seconds.observe(seconds)
        changelog.answered(request, result, seconds)
        if result != HResult.MQ_OK:
            self.statistics.forward_failures += 1
            self.statistics.forward_timeouts += result == _NO_ANSWER
            where = f"partition {change.obj.partition}"
            if result == HResult.MQ_ERROR_ACCESS_DENIED:
                log.warning(
                    "the authority of %s refuses this change of %s %s from this server; make it on "
                    "the authority, or allow it there (replication.forwarded_powers)",
                    where,
                    change.obj.type.label,
                    change.obj.path or change.obj.id,
                )
            raise DirectoryError(result, f"the authority of {where} did not make the change")

    async def _remember_creator(self, change: OwnChange) -> None:
        """Counts an object that another server has created for the account that asked for it.

        That server does not know the account. The object comes with replication, or has come and
        gone already.
        """
        creator, obj = change.creator, change.obj
        if creator is None:
            return

        def remember(tx: Transaction) -> tuple[None, list[Effect]]:
            if tx.get(obj.type, obj.id) is not None or not tx.tombstones(obj.id):
                tx.put_creator(obj.type, obj.id, creator.to_bytes())
            return None, []

        await asyncio.shield(self._enqueue(remember, self._now()))

    # --- operations -------------------------------------------------------------------------------

    def _enqueue(self, run: Run[T], at: Instant) -> asyncio.Future[tuple[T, list[Effect]]]:
        """Queues an operation in the writer; effects are carried out in the order of commits."""
        self.node.replication.watched = changelog.is_on()
        future = self._writer.enqueue(self._guarded(run, at))
        future.add_done_callback(self._committed)
        return future

    def _guarded(self, run: Run[T], at: Instant) -> Run[T]:
        """Wraps an operation to restart replication if others were undone since the last one.

        Replication's memory may then be ahead of the store, or come from an operation that was
        rolled back. Runs in the writer's thread.
        """

        def guarded(tx: Transaction) -> tuple[T, list[Effect]]:
            effects: list[Effect] = []
            restart = self._broken or self._rollbacks_seen != self._writer.rollbacks
            if restart:
                self._rollbacks_seen, self._broken = self._writer.rollbacks, True
                effects = self.node.start(at)(tx)
            try:
                result, more = run(tx)
            except (DirectoryError, NotAuthority):
                raise  # raised before the memory was changed
            except BaseException:
                self._broken = True
                raise
            if restart:
                self._broken = False
                self._loop.call_soon_threadsafe(self._restarted)
            return result, effects + more

        return guarded

    def _restarted(self) -> None:
        self.statistics.restarts += 1
        self._answers.give_up(HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER)
        log.warning("replication restarted from the store after a failed commit")

    def _committed(self, future: asyncio.Future[Any]) -> None:
        self.statistics.operations += 1
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or isinstance(error, (DirectoryError, NotAuthority)):
            return
        if error is not None:
            self.statistics.failures += 1
            self._pause_until = self._loop.time() + RETRY_S
            if not isinstance(error, REPORTED):
                known = error if isinstance(error, StorageError) else None
                log.error(
                    "an operation of replication failed: %s",
                    error,
                    exc_info=None if known else error,
                )
            return
        _, effects = future.result()
        self._settle(effects)
        self._on_commit()
        if effects:
            self.endpoint.wake()
        self._arm()

    def _settle(self, effects: list[Effect]) -> None:
        applied: list[ChangeApplied] = []
        for outcome in self.node.committed(effects, self._now()):
            if isinstance(outcome, ChangeApplied):
                applied.append(outcome)
                continue
            self._handle(outcome)
            self._on_outcome(outcome)
        changelog.applied(applied)

    def _handle(self, outcome: Outcome) -> None:
        match outcome:
            case RequestAnswered(request, hresult):
                self._answers.answered(request, hresult)
            case Changed(object_types):
                self.members.changed(object_types)
            case Refusal():
                self._refused(outcome)
            case Recovered(partition, unique, asked, silent):
                log.info(
                    "partition %s serves again: asked %s, no answer from %s, here alone: %s",
                    partition,
                    *(", ".join(names) or "nobody" for names in (asked, silent)),
                    ", ".join(unique) or "nothing",
                )
            case RequestDecided():
                changelog.decided(outcome)
            case RequestPassedOn():
                changelog.relayed(outcome)
            case Notified(body=body):
                self._count_notices(body)
            case Refused(session=session, reason=reason, duplicate=False):
                self._refusals.message_refused(session, "", reason, self._loop.time())
            case SessionOpened():
                self._opened(outcome)
            case SessionClosed(refused=True):
                self._refusals.session_refused(outcome, self._loop.time())
            case SessionClosed(machine=machine, reason=reason) if machine is not None:
                log.debug("no session with %s: %s", machine, reason)
            case _:
                pass

    def _refused(self, refusal: Refusal) -> None:
        self.statistics.refusals += 1
        self.statistics.refusals_by_reason[refusal.reason] += 1
        level = logging.INFO if refusal.reason in HARMLESS else logging.WARNING
        now = self._loop.time()
        self._refusals.message_refused(refusal.session, refusal.sender, refusal.text, now, level)

    def _opened(self, session: SessionOpened) -> None:
        self._refusals.opened(session)
        name = None if session.machine is not None else self.members.name_of(session.peer)
        if name is not None:
            self.node.queue.hurry(name, self._loop.time())

    def _count_notices(self, body: bytes) -> None:
        try:
            notification = ChangeNotification.from_body(body)
        except WireError as error:
            log.debug("not a change notification: %s", error)
            return
        self.statistics.notices += len(notification.updates)

    # --- incoming messages and timers -------------------------------------------------------------

    def _pump(self) -> None:
        """Submits the next batch: operations for received messages and expired timers."""
        if self._busy or not self._running:
            return
        if self._loop.time() < self._pause_until:
            self._arm()
            return
        at = self._now()
        batch = self.node.operations(at)
        self._settle([])  # sessions, which wait for no commit
        self._refusals.tell_left_out(at.monotonic)
        for operation in batch:
            self._submit(operation, at)
        if not batch:
            self._arm()

    def _submit(self, operation: Callable[[Transaction], list[Effect]], at: Instant) -> None:
        try:
            future = self._enqueue(lambda tx: (None, operation(tx)), at)
        except StorageError as error:  # the store is being closed under us
            log.debug("not run: %s", error)
            return
        self._busy += 1
        future.add_done_callback(self._done)

    def _done(self, _future: asyncio.Future[Any]) -> None:
        self._busy -= 1
        if not self._busy:
            self.endpoint.wake()  # which asks for the next batch

    def _arm(self) -> None:
        """Sets the timer of replication; the transport has its own."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.node.replication.next_timer()
        if self._loop.time() < self._pause_until:
            due = self._pause_until  # messages wait until then
        if self._running and due is not None:
            self._timer = self._loop.call_at(due, self._pump)


def observed(events: DirectoryEvents, observe: Callable[[OwnChange], None]) -> DirectoryEvents:
    """The same events with one more observer of changes."""
    first = events.observe

    def both(change: OwnChange) -> None:
        if first is not None:
            first(change)
        observe(change)

    return replace(events, observe=both)
