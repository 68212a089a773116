"""Messages for the notification queue, and a machine that shows that it is alive."""

from __future__ import annotations

import pytest

from mqis.protocol.queueing.events import Delivered, Notified, Refused
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage, build_packet
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.queuename import QueueKind
from tests.protocol.queueing.wires import PSC1, PSC2, Wires, manager


def wires() -> Wires:
    return Wires(manager(PSC1, "psc1"), manager(PSC2, "psc2"))


def test_the_packet_names_the_queue_by_its_number() -> None:
    message = QueuedMessage(b"told", queue=PrivateQueue(PSC2, NOTIFY_QUEUE_ID))
    packet = decode_packet(build_packet(message, MessageIdentifier(PSC1, 7), "psc2", 0, None))
    assert isinstance(packet, UserMessage)
    name = packet.header.destination
    assert (name.kind, name.private_id) == (QueueKind.PRIVATE_AT_DESTINATION, 3)
    assert packet.header.address == PSC2


def test_a_notice_is_told_apart_from_replication() -> None:
    net = wires()
    net.send("psc1", "psc2", QueuedMessage(b"told", queue=PrivateQueue(PSC2, NOTIFY_QUEUE_ID)))
    net.send("psc1", "psc2", QueuedMessage(b"replicated"))
    net.run()
    [notified] = net.of("psc2", Notified)
    assert notified.body == b"told"
    assert [event.body for event in net.of("psc2", Delivered)] == [b"replicated"]


@pytest.mark.parametrize(
    "queue", [PrivateQueue(Guid(b"x" * 16), NOTIFY_QUEUE_ID), PrivateQueue(PSC2, 2)]
)
def test_another_queue_is_refused(queue: PrivateQueue) -> None:
    net = wires()
    net.send("psc1", "psc2", QueuedMessage(b"told", queue=queue))
    net.run()
    assert net.of("psc2", Notified) == []
    [refused] = net.of("psc2", Refused)
    assert "not for the replication queue" in refused.reason


def test_who_is_alive_is_tried_at_once() -> None:
    """The wait between attempts grows to a minute; a sign of life ends it."""
    net = wires()
    net.down.add("psc2")
    net.send("psc1", "psc2", QueuedMessage(b"x"))
    net.advance(100)
    net.down.clear()
    attempts = len(net.attempts)
    net.managers["psc1"].hurry("PSC2.example", net.now)
    net.run()
    assert len(net.attempts) == attempts + 1
    assert [event.body for event in net.of("psc2", Delivered)] == [b"x"]


def test_if_it_is_not_the_next_attempt_comes_soon() -> None:
    net = wires()
    net.down.add("psc2")
    net.send("psc1", "psc2", QueuedMessage(b"x"))
    net.advance(100)
    attempts = len(net.attempts)
    net.managers["psc1"].hurry("psc2", net.now)
    net.run()
    net.advance(6)
    assert len(net.attempts) == attempts + 2
    net.managers["psc1"].hurry("nobody", net.now)
