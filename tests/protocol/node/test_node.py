"""The node between transport and replication: what it passes to whom."""

from __future__ import annotations

from mqis.protocol.clock import Instant
from mqis.protocol.node.node import Node
from mqis.protocol.queueing.events import Connect, Notified, SessionOpened
from mqis.protocol.queueing.message import Message, PrivateQueue
from mqis.protocol.replication.effects import Refusal, Send
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.server import Role, Server
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from tests.protocol.queueing.wires import PSC1, PSC2, Wires, manager
from tests.protocol.replication.enterprise import CountedEntropy

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
            Send("not a name", identifiers[0], Message(b"x")),
            Send("psc2", identifiers[1], Message(b"y")),
        ],
        AT,
    )
    assert [type(outcome) for outcome in left] == [Refusal]
    assert made.queue.queued("psc2") == 1
    assert [effect.machine for effect in made.queue.effects() if isinstance(effect, Connect)] == [
        "psc2"
    ]


def test_notices_are_the_applications() -> None:
    made = node()
    net = Wires(made.queue, manager(PSC2, "psc2"))
    net.send("psc2", "psc1", Message(b"told", queue=PrivateQueue(PSC1, NOTIFY_QUEUE_ID)))
    while net.act() or net.carry():
        pass
    assert made.operations(AT) == []
    opened, notice = made.committed([], AT)
    assert isinstance(opened, SessionOpened)
    assert isinstance(notice, Notified)
    assert notice.body == b"told"
    assert made.committed([], AT) == []
