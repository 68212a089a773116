"""Next hops that could not be reached, and the times of the next attempts."""

from __future__ import annotations

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.wire.guid import Guid


class Outages:
    """The back-off of unreachable next hops: longer after each failure, reset by a success."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        self._until: dict[Guid, float] = {}
        self._delay: dict[Guid, float] = {}

    def failed(self, hop: Guid, now: float) -> None:
        delay = self._delay.get(hop, self._limits.retry_s)
        self._until[hop] = now + delay
        self._delay[hop] = min(2 * delay, self._limits.retry_max_s)

    def works(self, hop: Guid) -> None:
        self._until.pop(hop, None)
        self._delay.pop(hop, None)

    def is_out(self, hop: Guid, now: float) -> bool:
        return self._until.get(hop, now) > now

    def next_trial(self, now: float) -> float:
        """The time at which a hop may be retried; ``retry_s`` from now at the latest."""
        times = [until for until in self._until.values() if until > now]
        return min([*times, now + self._limits.retry_s])
