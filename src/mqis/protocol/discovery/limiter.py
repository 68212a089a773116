"""How often a source is answered: what keeps a server from being turned against others.

A reply can be longer than its request, and the source of a datagram is easily forged. Sources are
addresses without ports, because a victim is one whatever port is hit.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

#: How many sources are looked at before a new one is turned away.
_TRIES = 8
#: Adding and taking away the same time leaves a little; it must not cost the last of a burst.
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A source gets ``burst`` answers at once, then ``per_second``."""

    per_second: float = 10.0
    burst: int = 20
    #: Remembered at a time. Who is not remembered finds no place while all others are active.
    sources: int = 65_536

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1 or self.sources < 1:
            raise ValueError("a limit allows something: rate, burst and sources are positive")


#: For answers to everybody together: one source with one name.
_EVERYBODY = ""


class SharedLimiter:
    """Answers to each source, and to all together: sources that are forged have no number."""

    def __init__(self, each: RateLimit, together: RateLimit | None = None) -> None:
        self._each = RateLimiter(each)
        self._together = None if together is None else RateLimiter(together)

    def allows(self, source: str, now: float) -> bool:
        """Whether an answer is within both limits. Who asks too often takes nothing from others."""
        if not self._each.allows(source, now):
            return False
        return self._together is None or self._together.allows(_EVERYBODY, now)


class RateLimiter:
    """One number per source: when it will have used up nothing of its burst again.

    A source whose number lies in the past is as good as unknown, so forgetting it loses nothing.
    The bound holds for every source, whatever others do.
    """

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self._interval_s = 1.0 / limit.per_second
        self._tolerance_s = (limit.burst - 1) * self._interval_s + _ROUNDING_S
        #: In the order in which they are looked at when room is needed.
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._free_at)

    def allows(self, source: str, now: float) -> bool:
        """Whether an answer to ``source`` is within the limit; if so, it is counted."""
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
        """Make room by an old source that there is nothing to remember of.

        One that is still active gives way to the next, so that it is not always looked at.
        """
        for _ in range(_TRIES):
            source, free_at = next(iter(self._free_at.items()))
            if free_at <= now:
                del self._free_at[source]
                return True
            self._free_at.move_to_end(source)
        return False
