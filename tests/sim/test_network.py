"""The simulated network itself."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from types import SimpleNamespace
from typing import cast

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.sim.keys import Keyring
from mqis.sim.network import MessageNetwork
from mqis.sim.run_trace import SimTrace
from mqis.sim.scenario import Weather
from mqis.wire.mqqb.identifier import MessageIdentifier
from tests.builders import guid


class Timers:
    """A clock that jumps from one timer to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        heappush(self._heap, (self.now + delay_s, next(self._order), action))

    def run(self) -> None:
        while self._heap:
            self.now, _, action = heappop(self._heap)
            action()


def test_copies_of_a_message_that_is_turned_away_do_not_multiply() -> None:
    """The sender tries again with one message, however many copies the network has made of it."""
    timers, trace = Timers(), SimTrace()
    network = MessageNetwork(timers, trace, 1, Weather(duplicate=1.0), QueueingLimits())
    sender = network.attach("A", guid(1), lambda: None, None)
    stranger = SimpleNamespace(admits=lambda source, certificate, name: False)
    network.attach("B", guid(2), lambda: None, cast("Keyring", stranger))
    message = QueuedMessage(bytes(64), lifetime_s=150)
    sender.send("B", message, 0.0, 0, MessageIdentifier(guid(1), 1))
    timers.run()
    assert trace.counts["fault duplicate"] == 10
    assert trace.counts["turned away"] == 20
