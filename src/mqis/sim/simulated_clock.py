"""The simulated clock: it jumps to the next event."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from mqis.sim.run_trace import Violation

#: Limit on events, many times those of the longest runs.
MAX_EVENTS = 400_000


class EventClock:
    """The time in simulated seconds, and the actions to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._done = 0

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._events, (self.now + delay_s, self._order, action))

    def run_until(self, time: float) -> None:
        """Performs all actions up to a time; too many of them are a violation."""
        while self._events and self._events[0][0] <= time:
            self.now, _, action = heappop(self._events)
            self._done += 1
            if self._done > self.max_events():
                raise Violation("bounded traffic", "the enterprise never comes to rest")
            action()
        self.now = max(self.now, time)

    def max_events(self) -> float:
        return MAX_EVENTS
