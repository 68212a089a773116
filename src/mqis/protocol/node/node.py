"""The node: directory, replication and queue transport of one server.

The transport acts at once, replication inside transactions. So a node returns *operations*:
functions of a transaction that its driver runs in order, each committed before the effects that it
returned come back through ``committed``. A driver with a disk runs them in the store's writer; the
simulation runs them itself and injects crashes at any point.

    node.queue.receive(connection, data, at.monotonic)
    for operation in node.operations(at):
        with store.write() as tx:
            effects = operation(tx)
        for event in node.committed(effects, at):
            ...
    for effect in node.queue.effects():
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
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.replication.delivery_reports import TransportEvent
from mqis.protocol.replication.effects import Effect, Refusal, RefusalReason, Send
from mqis.protocol.replication.machine import Received, Replication

T = TypeVar("T")

Operation = Callable[[Transaction], list[Effect]]
#: Events of the transport that the application handles, not replication.
Aside = SessionOpened | SessionClosed | Notified | Arrived | Relayed | Stranded
Outcome = Effect | Aside | Refused


class Node:
    """One server; it reads and writes the store only through its operations."""

    def __init__(
        self,
        replication: Replication,
        queue: QueueingMachine,
        entropy: Entropy,
    ) -> None:
        self.replication = replication
        self.queue = queue
        self._entropy = entropy
        self._aside: list[Aside | Refused] = []

    # --- operations -------------------------------------------------------------------------------

    def start(self, at: Instant, *, restored: bool = False) -> Operation:
        """The operation that a driver runs first, and again after a failed commit."""
        return lambda tx: self.replication.start(tx, at, restored=restored)

    def operations(self, at: Instant) -> list[Operation]:
        """The operations for messages received and timers expired since the last call."""
        found: list[Operation] = []
        transport_events: list[TransportEvent] = []
        while (event := self.queue.next_event()) is not None:
            if isinstance(event, Delivered):
                found.append(self._receive(event, at))
            elif isinstance(event, Aside):
                self._aside.append(event)
            elif not _is_routed(event):  # nothing that replication sends or takes is
                transport_events.append(event)
                if isinstance(event, Refused):
                    self._aside.append(event)
        if transport_events:
            found.append(lambda tx: self.replication.transported(tx, transport_events, at))
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
        self, operation: Callable[[DirectoryEvents], T], at: Instant, by: str = ""
    ) -> Callable[[Transaction], tuple[T, list[Effect]]]:
        """A client's change; ``NotAuthority`` means that another server has to make it.

        ``by`` names the client in the journal.
        """

        def run(tx: Transaction) -> tuple[T, list[Effect]]:
            made: list[OwnChange] = []
            events = DirectoryEvents(
                tx,
                int(at.unix),
                self._entropy,
                self.replication.me.site,
                owns=self.replication.may_change(tx, at),
                permit=self.replication.permit(tx, at),
                observe=made.append,
                by=by,
            )
            result = operation(events)
            return result, self.replication.changed(tx, made, at) if made else []

        return run

    def request(self, change: OwnChange, local: int, at: Instant) -> Operation:
        """Asks the authority for a change; ``Answered`` with the number ``local`` ends it."""
        return lambda tx: self.replication.request(tx, change, local, at)

    def committed(self, effects: Iterable[Effect], at: Instant) -> list[Outcome]:
        """Carries out a committed operation's effects; returns those left to the application."""
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
        """Queues a message; refuses a name from the directory that messages cannot be sent to."""
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
        """Runs the transport's timers; ``operations`` runs those of replication."""
        self.queue.handle_timer(now)


def _is_routed(event: TransportEvent) -> bool:
    """True if the event is about a message routed by its queue's identifier, not replication's."""
    if isinstance(event, (Nacked, Dropped)) and event.message.queue is not None:
        return True
    return isinstance(event, (Written, Acknowledged, Nacked, Dropped)) and event.routed
