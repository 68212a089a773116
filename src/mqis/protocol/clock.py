"""Instants: the time that is passed to every machine, which has no clock of its own."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar


class Instant(NamedTuple):
    """One moment by two clocks: timers use the first, records and properties the second."""

    #: Seconds of a monotonic clock.
    monotonic: float
    #: Seconds since 1970.
    unix: float

    @property
    def unix_us(self) -> int:
        return int(self.unix * 1_000_000)


#: More doublings than any pause needs, and few enough for a float.
_MOST_DOUBLINGS = 60


def pause_after(failures: int, first_s: float, longest_s: float) -> float:
    """The pause after this many failures in a row: ``first_s`` after one, twice that after two."""
    return min(first_s * 2.0 ** min(max(failures, 1) - 1, _MOST_DOUBLINGS), longest_s)


K = TypeVar("K")


class Timers(Generic[K]):
    """One time per key. A later time set for a key takes effect when the earlier one expires."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._order = count()

    def set(self, key: K, due: float | None) -> None:
        known = self._due.get(key)
        if due is None or (known is not None and known <= due):
            return
        self._due[key] = due
        heappush(self._heap, (due, next(self._order), key))

    def discard(self, key: K) -> None:
        self._due.pop(key, None)

    def next(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_expired(self, now: float) -> Iterator[K]:
        """Removes and yields the keys whose timers have expired; the caller sets them again."""
        while (due := self.next()) is not None and due <= now:
            key = heappop(self._heap)[2]
            del self._due[key]
            yield key
