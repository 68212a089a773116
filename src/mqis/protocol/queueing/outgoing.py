"""The bounded queue of messages for one machine, by priority, then by age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import INFINITE, MAX_PRIORITY
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage

#: Entries of messages that are no longer queued which may stay in the heap.
_SLACK = 1000


@dataclass(frozen=True, slots=True)
class Transit:
    """The route data of a message: its target queue manager, and where it came from."""

    target: Guid
    #: The neighbour that brought it; null for own messages.
    peer: Guid = Guid.NULL
    hops: int = 0
    #: The message as received, if its sender wants a NACK.
    received: UserMessage | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """A message with its packet, which never changes: a retransmission has the same MessageID."""

    identifier: MessageIdentifier
    message: QueuedMessage
    packet: bytes
    deadline: float
    transit: Transit | None = None
    #: True once ``Stranded`` was reported for it.
    stranded: bool = False
    #: The time at which it was queued.
    since: float = 0.0

    @classmethod
    def of(
        cls,
        identifier: MessageIdentifier,
        message: QueuedMessage,
        packet: bytes,
        now: float,
        transit: Transit | None = None,
    ) -> Outgoing:
        endless = message.lifetime_s == INFINITE
        deadline = inf if endless else now + message.lifetime_s
        return cls(identifier, message, packet, deadline, transit, since=now)


class OutgoingQueue:
    """The queue. A message counts from ``push`` to ``forget``, so also while it is in flight."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        # By the message itself: others' messages may have the same number as an own one.
        self._waiting: tuple[OrderedDict[Outgoing, None], ...] = tuple(
            OrderedDict() for _ in range(MAX_PRIORITY + 1)
        )
        self._expiry: list[tuple[float, int, Outgoing]] = []
        self._order = count()
        self._queued = 0
        self.messages = 0
        self.bytes = 0

    @property
    def queued(self) -> int:
        """Messages that are not in flight."""
        return self._queued

    def fits(self, size: int) -> bool:
        limits = self._limits
        return (
            self.messages < limits.max_queued_messages
            and self.bytes + size <= limits.max_queued_bytes
        )

    def push(self, outgoing: Outgoing) -> None:
        self.messages += 1
        self.bytes += len(outgoing.packet)
        self._insert(outgoing)

    def requeue(self, returned: Iterable[Outgoing]) -> None:
        """Puts messages that were in flight back in front of the others, oldest first."""
        for outgoing in reversed(list(returned)):
            self._insert(outgoing)
            waiting = self._waiting[outgoing.message.priority]
            waiting.move_to_end(outgoing, last=False)

    def _insert(self, outgoing: Outgoing) -> None:
        self._waiting[outgoing.message.priority][outgoing] = None
        self._queued += 1
        if outgoing.deadline < inf:
            heappush(self._expiry, (outgoing.deadline, next(self._order), outgoing))
            if len(self._expiry) > 2 * self._queued + _SLACK:
                self._expiry = [e for e in self._expiry if self._waits(e[2])]
                heapify(self._expiry)

    def _waits(self, outgoing: Outgoing) -> bool:
        return outgoing in self._waiting[outgoing.message.priority]

    def pop(self) -> Outgoing | None:
        """The next message to send, which is in flight from now on."""
        if not self._queued:
            return None
        self._queued -= 1
        first = next(waiting for waiting in reversed(self._waiting) if waiting)
        return first.popitem(last=False)[0]

    def forget(self, outgoing: Outgoing) -> None:
        """Stops counting a popped message that has arrived or is given up."""
        self.messages -= 1
        self.bytes -= len(outgoing.packet)

    def take_all(self) -> list[Outgoing]:
        """Removes and returns all messages that are not in flight, for another queue."""
        taken = []
        while (outgoing := self.pop()) is not None:
            self.forget(outgoing)
            taken.append(outgoing)
        return taken

    def oldest(self) -> float | None:
        """The time of the oldest message that is not in flight."""
        fronts = (next(iter(waiting)) for waiting in self._waiting if waiting)
        return min((outgoing.since for outgoing in fronts), default=None)

    def next_expiry(self) -> float | None:
        while self._expiry:
            deadline, _, outgoing = self._expiry[0]
            if self._waits(outgoing):
                return deadline
            heappop(self._expiry)
        return None

    def expire(self, now: float) -> list[Outgoing]:
        """Removes and returns expired messages, earliest deadline first."""
        expired = []
        while (deadline := self.next_expiry()) is not None and deadline <= now:
            outgoing = heappop(self._expiry)[2]
            del self._waiting[outgoing.message.priority][outgoing]
            self._queued -= 1
            self.forget(outgoing)
            expired.append(outgoing)
        return expired
