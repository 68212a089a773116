"""Next hops that could not be reached, and the times of the next attempts."""

from __future__ import annotations

from mqis.protocol.backoff import pause_after
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.wire.guid import Guid


class Outages:
    """The back-off of unreachable next hops: longer after each failure, reset by a success."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        self._until: dict[Guid, float] = {}
        self._failures: dict[Guid, int] = {}

    def failed(self, hop: Guid, now: float) -> None:
        self._failures[hop] = self._failures.get(hop, 0) + 1
        limits = self._limits
        self._until[hop] = now + pause_after(
            self._failures[hop], limits.retry_s, limits.retry_max_s
        )

    def works(self, hop: Guid) -> None:
        self._until.pop(hop, None)
        self._failures.pop(hop, None)

    def is_out(self, hop: Guid, now: float) -> bool:
        return self._until.get(hop, now) > now

    def next_trial(self, now: float) -> float:
        """The time at which a hop may be retried; ``retry_s`` from now at the latest."""
        times = [until for until in self._until.values() if until > now]
        return min([*times, now + self._limits.retry_s])
