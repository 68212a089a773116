"""Rate limits for replies, so that a server cannot be used to flood others.

A reply can be longer than its request, and the source of a datagram is easily forged. Sources are
addresses without ports, because a flood harms its victim on any port.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

#: Sources checked for eviction before a new one is refused.
_TRIES = 8
#: Tolerance for floating-point rounding, which must not cost the last answer of a burst.
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A source gets ``burst`` answers at once, then ``per_second``."""

    per_second: float = 10.0
    burst: int = 20
    #: Sources remembered at a time. While all of them are active, new sources get no answer.
    sources: int = 65_536

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1 or self.sources < 1:
            raise ValueError("rate, burst and sources of a rate limit have to be positive")


#: The one source under which answers to all sources are counted together.
_EVERYBODY = ""


class SharedLimiter:
    """Limits for each source and for all together, since forged sources are countless."""

    def __init__(self, each: RateLimit, together: RateLimit | None = None) -> None:
        self._each = RateLimiter(each)
        self._together = None if together is None else RateLimiter(together)

    def allows(self, source: str, now: float) -> bool:
        """Returns whether both limits allow an answer; if the first does not, spares the second."""
        if not self._each.allows(source, now):
            return False
        return self._together is None or self._together.allows(_EVERYBODY, now)


class RateLimiter:
    """One number per source: the time at which it will have its full burst again.

    A source whose number lies in the past is like an unknown one, so evicting it loses nothing.
    The bound holds for every source, whatever others do.
    """

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self._interval_s = 1.0 / limit.per_second
        self._tolerance_s = (limit.burst - 1) * self._interval_s + _ROUNDING_S
        #: In the order in which they are checked for eviction.
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._free_at)

    def allows(self, source: str, now: float) -> bool:
        """Returns whether an answer to ``source`` is within the limit; if so, counts it."""
        free_at = self._free_at.get(source)
        if free_at is None:
            if len(self._free_at) >= self.limit.sources and not self._forget_one(now):
                return False
            self._free_at[source] = now + self._interval_s
            return True
        if free_at - now > self._tolerance_s:
            return False
        self._free_at[source] = max(free_at, now) + self._interval_s
        return True

    def _forget_one(self, now: float) -> bool:
        """Evicts an inactive source; returns whether one was found.

        A source that is still active moves to the end, so that the next call checks others.
        """
        for _ in range(_TRIES):
            source, free_at = next(iter(self._free_at.items()))
            if free_at <= now:
                del self._free_at[source]
                return True
            self._free_at.move_to_end(source)
        return False
