"""The order of messages that take a detour, because their next hop failed."""

from __future__ import annotations

from mqis.protocol.queueing.events import Arrived
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import PrivateQueue
from tests.protocol.queueing.routed import QUEUE, Enterprise
from tests.protocol.routing.worlds import World, guid

#: Two gates on either side.
DOUBLE = World("A-B 1", a="A gate", b="A gate", x="A", c="B gate", d="B gate", y="B")


def test_messages_in_flight_lead_the_detour() -> None:
    """Two were sent and not acknowledged when the hop died; two more waited behind them."""
    net = Enterprise(DOUBLE.snapshot, limits=QueueingLimits(window=2))
    sent = [b"first", b"second", b"third", b"fourth"]
    for body in sent:
        net.post(guid("x"), PrivateQueue(guid("y"), QUEUE), body)
    net.until(lambda: net.managers["x"].statistics.sent == 2)
    net.down = {"a"}
    net.cut()
    net.run()

    assert [event.body for event in net.of("y", Arrived)] == sent
