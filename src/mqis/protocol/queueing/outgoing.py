"""Messages that wait for one machine: by priority, then by age, within bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from mqis.protocol.queueing.limits import Limits
from mqis.protocol.queueing.message import Message
from mqis.wire.mqqb.baseheader import INFINITE, MAX_PRIORITY
from mqis.wire.mqqb.identifier import MessageIdentifier

#: Numbers of messages that are no longer queued may stay in the heap up to this many.
_SLACK = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """A message with its packet, which never changes: a repetition has the same MessageID."""

    identifier: MessageIdentifier
    message: Message
    packet: bytes
    deadline: float

    @classmethod
    def of(
        cls, identifier: MessageIdentifier, message: Message, packet: bytes, now: float
    ) -> Outgoing:
        endless = message.lifetime_s == INFINITE
        return cls(identifier, message, packet, inf if endless else now + message.lifetime_s)


class OutgoingQueue:
    """Counts a message from ``push`` to ``forget``, so also while it is in flight."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: tuple[OrderedDict[int, Outgoing], ...] = tuple(
            OrderedDict() for _ in range(MAX_PRIORITY + 1)
        )
        self._expiry: list[tuple[float, int, int]] = []
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
        """Put messages that were in flight back in front of the others, oldest first."""
        for outgoing in reversed(list(returned)):
            self._insert(outgoing)
            waiting = self._waiting[outgoing.message.priority]
            waiting.move_to_end(outgoing.identifier.ordinal, last=False)

    def _insert(self, outgoing: Outgoing) -> None:
        ordinal, priority = outgoing.identifier.ordinal, outgoing.message.priority
        self._waiting[priority][ordinal] = outgoing
        self._queued += 1
        if outgoing.deadline < inf:
            heappush(self._expiry, (outgoing.deadline, ordinal, priority))
            if len(self._expiry) > 2 * self._queued + _SLACK:
                self._expiry = [e for e in self._expiry if e[1] in self._waiting[e[2]]]
                heapify(self._expiry)

    def pop(self) -> Outgoing | None:
        """The next to send; it is in flight from here on."""
        if not self._queued:
            return None
        self._queued -= 1
        first = next(waiting for waiting in reversed(self._waiting) if waiting)
        return first.popitem(last=False)[1]

    def forget(self, outgoing: Outgoing) -> None:
        """A message that was popped has arrived or is given up."""
        self.messages -= 1
        self.bytes -= len(outgoing.packet)

    def next_expiry(self) -> float | None:
        while self._expiry:
            deadline, ordinal, priority = self._expiry[0]
            if ordinal in self._waiting[priority]:
                return deadline
            heappop(self._expiry)
        return None

    def expire(self, now: float) -> list[Outgoing]:
        """Take out what is too old, oldest deadline first."""
        expired = []
        while (deadline := self.next_expiry()) is not None and deadline <= now:
            _, ordinal, priority = heappop(self._expiry)
            outgoing = self._waiting[priority].pop(ordinal)
            self._queued -= 1
            self.forget(outgoing)
            expired.append(outgoing)
        return expired
