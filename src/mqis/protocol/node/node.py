"""The node: directory, replication and queue transport of one server.

The transport works at once, replication inside transactions. So a node hands out *operations*:
functions of a transaction that its driver runs in order, each committed before the effects that it
returned come back through ``committed``. A driver with a disk runs them in the store's writer; the
simulation runs them itself and crashes wherever it likes.

    node.receive(connection, data, at.monotonic)
    for operation in node.operations(at):
        with store.write() as tx:
            effects = operation(tx)
        for event in node.committed(effects, at):
            ...
    for effect in node.transport_effects():
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from mqis.protocol.clock import Instant
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.ports import Entropy, Transaction
from mqis.protocol.queueing.events import (
    Acknowledged,
    Arrived,
    Delivered,
    Dropped,
    Nacked,
    Notified,
    Refused,
    Relayed,
    SessionClosed,
    SessionOpened,
    Stranded,
    Written,
)
from mqis.protocol.queueing.manager import QueueManager
from mqis.protocol.replication.effects import Effect, Refusal, Send
from mqis.protocol.replication.machine import Received, Replication
from mqis.protocol.replication.refusals import RefusalReason
from mqis.protocol.replication.transport import TransportEvent

T = TypeVar("T")

Operation = Callable[[Transaction], list[Effect]]
#: What is left for the application once the transport has its messages.
Aside = SessionOpened | SessionClosed | Notified | Arrived | Relayed | Stranded
Outcome = Effect | Aside | Refused


class Node:
    """One server; everything it does to the store goes through its operations."""

    def __init__(
        self,
        replication: Replication,
        queue: QueueManager,
        entropy: Entropy,
    ) -> None:
        self.replication = replication
        self.queue = queue
        self._entropy = entropy
        self._aside: list[Aside | Refused] = []

    # --- operations -------------------------------------------------------------------------------

    def start(self, at: Instant, *, restored: bool = False) -> Operation:
        """The first operation, and the one after a commit has failed."""
        return lambda tx: self.replication.start(tx, at, restored=restored)

    def operations(self, at: Instant) -> list[Operation]:
        """What has come through the transport, and what time has brought, since the last call."""
        found: list[Operation] = []
        told: list[TransportEvent] = []
        while (event := self.queue.next_event()) is not None:
            if isinstance(event, Delivered):
                found.append(self._receive(event, at))
            elif isinstance(event, Aside):
                self._aside.append(event)
            elif not _is_routed(event):  # nothing that replication sends or takes is
                told.append(event)
                if isinstance(event, Refused):
                    self._aside.append(event)
        if told:
            found.append(lambda tx: self.replication.transported(tx, told, at))
        wake = self.replication.next_timer()
        if wake is not None and wake <= at.monotonic:
            found.append(lambda tx: self.replication.handle_timer(tx, at))
        return found

    def _receive(self, event: Delivered, at: Instant) -> Operation:
        received = Received(
            event.body,
            event.identifier,
            event.identifier.source,
            event.authenticated,
            event.session,
        )
        return lambda tx: self.replication.receive(tx, received, at)

    def change(
        self, operation: Callable[[DirectoryEvents], T], at: Instant
    ) -> Callable[[Transaction], tuple[T, list[Effect]]]:
        """A client's change; ``NotAuthority`` says that it has to be asked for elsewhere."""

        def run(tx: Transaction) -> tuple[T, list[Effect]]:
            made: list[OwnChange] = []
            events = DirectoryEvents(
                tx,
                int(at.unix),
                self._entropy,
                self.replication.me.site,
                owns=self.replication.may_change(tx, at),
                observe=made.append,
            )
            result = operation(events)
            return result, self.replication.changed(tx, made, at) if made else []

        return run

    def request(self, change: OwnChange, local: int, at: Instant) -> Operation:
        """Ask the authority for a change; ``Answered`` with the number ``local`` is the end."""
        return lambda tx: self.replication.request(tx, change, local, at)

    def committed(self, effects: Iterable[Effect], at: Instant) -> list[Outcome]:
        """Carry out what a committed operation decided; what is left is the application's."""
        left: list[Outcome] = []
        for effect in effects:
            if isinstance(effect, Send):
                left += self._send(effect, at)
            else:
                left.append(effect)
        left += self._aside
        self._aside = []
        return left

    def _send(self, send: Send, at: Instant) -> list[Outcome]:
        """A name that the directory has need not be one that messages can go to."""
        try:
            self.queue.send(send.machine, send.message, at.monotonic, int(at.unix), send.identifier)
        except ValueError as error:
            return [
                Refusal(
                    send.machine,
                    RefusalReason.UNREACHABLE,
                    f"nothing can be sent there: {error}",
                )
            ]
        return []

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        times = [self.queue.next_timer(), self.replication.next_timer()]
        return min((time for time in times if time is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """The transport's timers; replication's come out of ``operations``."""
        self.queue.handle_timer(now)


def _is_routed(event: TransportEvent) -> bool:
    """Whether it tells of a message that went by its queue's identifier, not of replication's."""
    if isinstance(event, (Nacked, Dropped)) and event.message.queue is not None:
        return True
    return isinstance(event, (Written, Acknowledged, Nacked, Dropped)) and event.routed
