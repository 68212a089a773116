"""Tables that outlive a session: message numbers, messages seen, messages sent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier

_MODULUS = 1 << 32

K = TypeVar("K")


class MessageIds(Protocol):
    """The source of MessageIDs; a used one must not be reused soon, even after a restart."""

    def next(self) -> int: ...


class MessageIdCounter:
    """Counts up from ``last`` and skips 0.

    ``reserve`` is called with a number before any up to it are given out. If that number is stored
    and passed as ``last`` after a restart, no number is given out twice.
    """

    def __init__(
        self, last: int, reserve: Callable[[int], None] | None = None, block: int = 4096
    ) -> None:
        self._last = last % _MODULUS
        self._reserve = reserve
        self._block = block
        self._left = 0

    @classmethod
    def from_time(cls, unix_time: int) -> MessageIdCounter:
        """A counter without storage: unique while fewer than 256 numbers a second are used."""
        return cls(unix_time << 8)

    def next(self) -> int:
        if not self._left:
            self._left = self._block
            if self._reserve is not None:
                self._reserve((self._last + self._block + 1) % _MODULUS)  # 0 may be passed
        self._left -= 1
        self._last = (self._last + 1) % _MODULUS or 1
        return self._last


class RecentKeys(Generic[K]):
    """The keys seen lately."""

    def __init__(self, limits: QueueingLimits, entries: Iterable[tuple[K, float]] = ()) -> None:
        self._limits = limits
        self._seen: OrderedDict[K, float] = OrderedDict(entries)

    def __len__(self) -> int:
        return len(self._seen)

    def entries(self) -> list[tuple[K, float]]:
        """All entries, oldest first, for a table that replaces this one."""
        return list(self._seen.items())

    def seen(self, identifier: K, now: float) -> bool:
        """Returns whether a key was seen before; if so, refreshes its time."""
        self._forget(now)
        if identifier not in self._seen:
            return False
        self._seen[identifier] = now
        self._seen.move_to_end(identifier)
        return True

    def add(self, identifier: K, now: float) -> None:
        self._seen[identifier] = now
        self._seen.move_to_end(identifier)
        if len(self._seen) > self._limits.duplicate_entries:
            self._seen.popitem(last=False)

    def _forget(self, now: float) -> None:
        horizon = now - self._limits.duplicate_s
        while self._seen and next(iter(self._seen.values())) <= horizon:
            self._seen.popitem(last=False)


class DuplicateTable(RecentKeys[MessageIdentifier]):
    """MessageIDHistoryTable (MS-MQQB 3.1.1.3): the messages delivered lately."""


class TransitTable(RecentKeys[tuple[MessageIdentifier, int]]):
    """The messages forwarded lately, by identifier and hop count.

    A duplicate has the hop count that it had before. A message that went round in a circle
    has a larger one: dropped as a duplicate it would vanish, and its sender would not learn that
    its hop count ran out.
    """


@dataclass(frozen=True, slots=True)
class SentMessage:
    """An own message for which a NACK may still come."""

    machine: str
    message: QueuedMessage
    peer: Guid
    until: float


class SentTable:
    """Own messages by number, so that an acknowledgement can be matched to what was sent."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        self._sent: OrderedDict[int, SentMessage] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, ordinal: int, sent: SentMessage, now: float) -> None:
        self.take(ordinal, now)
        self._sent[ordinal] = sent
        self._bytes += len(sent.message.body)
        limits = self._limits
        while self._sent and (
            len(self._sent) > limits.sent_entries or self._bytes > limits.sent_bytes
        ):
            self._drop(next(iter(self._sent)))

    def get(self, ordinal: int, now: float) -> SentMessage | None:
        sent = self._sent.get(ordinal)
        return sent if sent is not None and sent.until > now else None

    def take(self, ordinal: int, now: float) -> SentMessage | None:
        """Removes and returns a message; removes expired ones too."""
        found = self.get(ordinal, now)
        self._drop(ordinal)
        while self._sent:
            first, oldest = next(iter(self._sent.items()))
            if oldest.until > now:
                break
            self._drop(first)
        return found

    def _drop(self, ordinal: int) -> None:
        sent = self._sent.pop(ordinal, None)
        if sent is not None:
            self._bytes -= len(sent.message.body)
