"""The node between transport and replication: what it passes to whom."""

from __future__ import annotations

from mqis.protocol.clock import Instant
from mqis.protocol.node.node import Node
from mqis.protocol.queueing.events import (
    Connect,
    Notified,
    Relayed,
    SessionOpened,
    Stranded,
)
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.replication.effects import Refusal, RefusalReason, Send
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.server_identity import Role, Server
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from tests.protocol.queueing.routed import QUEUE, Enterprise
from tests.protocol.queueing.wires import PSC1, PSC2, Wires, manager
from tests.protocol.replication.enterprise import CountedEntropy
from tests.protocol.routing.worlds import World, guid

AT = Instant(1000.0, 1_700_000_000.0)


def node() -> Node:
    entropy = CountedEntropy("node")
    me = Server("psc1", PSC1, Guid(b"s" * 16), Role.PEC, "psc1")
    return Node(Replication(me, entropy), manager(PSC1, "psc1"), entropy)


def test_a_name_that_nothing_can_be_sent_to_stops_nobody_else() -> None:
    made = node()
    identifiers = [MessageIdentifier(PSC1, n) for n in (1, 2)]
    left = made.committed(
        [
            Send("not a name", identifiers[0], QueuedMessage(b"x")),
            Send("psc2", identifiers[1], QueuedMessage(b"y")),
        ],
        AT,
    )
    (refusal,) = left
    assert isinstance(refusal, Refusal)
    assert refusal.reason is RefusalReason.UNREACHABLE
    assert made.queue.queued("psc2") == 1
    assert [effect.machine for effect in made.queue.effects() if isinstance(effect, Connect)] == [
        "psc2"
    ]


def test_notices_are_the_applications() -> None:
    made = node()
    net = Wires(made.queue, manager(PSC2, "psc2"))
    net.send("psc2", "psc1", QueuedMessage(b"told", queue=PrivateQueue(PSC1, NOTIFY_QUEUE_ID)))
    while net.act() or net.carry():
        pass
    assert made.operations(AT) == []
    opened, notice = made.committed([], AT)
    assert isinstance(opened, SessionOpened)
    assert isinstance(notice, Notified)
    assert notice.body == b"told"
    assert made.committed([], AT) == []


ROW = World("A-B 1", "B-C 1", a="A gate", b="B gate", c="C gate")


def middle(net: Enterprise) -> tuple[Node, QueueingMachine]:
    """The node of b, through whose queue manager messages go; ``net`` takes no events of it."""
    entropy = CountedEntropy("node")
    queue = net.managers["b"]
    net.drain = lambda: None  # type: ignore[method-assign]
    me = Server("b", guid("b"), guid("B"), Role.PEC, "b")
    return Node(Replication(me, entropy), queue, entropy), queue


def test_replication_hears_nothing_of_messages_that_are_passed_on() -> None:
    net = Enterprise(ROW.snapshot)
    made, queue = middle(net)
    net.post(guid("a"), PrivateQueue(guid("c"), QUEUE), b"no replication message")
    net.advance(20.0)
    assert queue.statistics.relayed == queue.statistics.acknowledged == 1
    assert made.operations(AT) == []
    assert Relayed in [type(outcome) for outcome in made.committed([], AT)]


def test_replication_hears_nothing_of_messages_that_end_here() -> None:
    """Somebody else's body is no replication message; to read it as one would stop the server."""
    net = Enterprise(ROW.snapshot)
    made, queue = middle(net)
    net.down = {"c"}
    net.post(guid("a"), PrivateQueue(guid("c"), QUEUE), b"no replication message", lifetime_s=30)
    net.post(guid("b"), PrivateQueue(guid("c"), QUEUE), b"an own one", lifetime_s=30)
    net.advance(100.0)
    assert queue.statistics.undelivered == 2
    assert made.operations(AT) == []
    assert Stranded in [type(outcome) for outcome in made.committed([], AT)]
