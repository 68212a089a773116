"""Messages by a route that end where nobody wants to hear of it, or where it was himself."""

from __future__ import annotations

import pytest

from mqis.protocol.queueing.events import Arrived, Nacked, Refused, Stranded
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.outgoing import Outgoing, Transit
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.queueing.routed_messages import negative
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import Acknowledge, MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.userheader import UserHeader
from tests.protocol.queueing.routed import ADMIN, QUEUE, Enterprise
from tests.protocol.routing.worlds import World, guid

#: x reaches b by way of a.
WORLD = World("A-B 1", a="A gate", x="A", b="B gate")
X7 = MessageIdentifier(guid("x"), 7)


def packet(admin: QueueName, *, hops: int = 0, transaction: bytes | None = None) -> bytes:
    """A message of x for a queue of b, whose sender wants to hear that it does not arrive."""
    name = QueueName.at_destination(QUEUE)
    header = UserHeader(X7.source, X7.ordinal, name, guid("b"), admin=admin, hops=hops)
    properties = MessageProperties(acknowledge=Acknowledge.NEGATIVE_ARRIVAL)
    return UserMessage(header, properties, transaction=transaction).to_bytes()


def dispatch(net: Enterprise, data: bytes) -> None:
    routes = net.managers["x"]._routes
    assert routes is not None
    routes.dispatch(Outgoing.of(X7, QueuedMessage(b""), data, net.now, Transit(guid("b"))), net.now)
    net.run()


@pytest.mark.parametrize(
    ("admin", "told"),
    [
        (QueueName.at_source(ADMIN), 1),
        (QueueName(QueueKind.PUBLIC, guid=guid("orders")), 1),
        (QueueName(QueueKind.PUBLIC, guid=guid("unknown")), 0),
        (QueueName.of_direct("OS:x\\admin"), 0),
    ],
)
def test_an_administration_queue_that_no_route_leads_to_is_not_told(
    admin: QueueName, told: int
) -> None:
    net = Enterprise(WORLD.snapshot, owners={guid("orders"): guid("x")})
    dispatch(net, packet(admin, hops=0x1D))
    assert net.managers["a"].statistics.exhausted == 1
    assert net.managers["a"].statistics.sent == told
    assert net.of("a", Stranded) == [], "nor does anything wait for a way to it"


def test_an_own_message_that_came_back_and_ends_here_is_known_at_once() -> None:
    """a and b send it to and fro until its hop count ends it, at a, whose message it is."""
    way_by_b = World("A-B 1", "B-C 1", "A-C 9", a="A gate", b="B gate", c="C gate")
    way_by_a = World("A-B 1", "B-C 9", "A-C 1", a="A gate", b="B gate", c="C gate")
    net = Enterprise(way_by_b.snapshot, views={guid("b"): way_by_a.snapshot})
    name = net.post(guid("a"), PrivateQueue(guid("c"), QUEUE))
    net.run()

    assert net.managers["a"].statistics.exhausted == 1
    [nack] = net.of("a", Nacked)
    assert nack.identifier == name
    assert nack.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert net.of("b", Nacked) == []
    assert net.of("c", Arrived) == []


def test_without_a_way_no_more_wait_than_fit() -> None:
    net = Enterprise(
        World(sites="AB", a="A gate", b="B gate").snapshot,
        limits=QueueingLimits(max_queued_messages=2),
    )
    names = [net.post(guid("a"), PrivateQueue(guid("b"), QUEUE)) for _ in range(3)]
    net.run()

    [nack] = net.of("a", Nacked)
    assert (nack.identifier, nack.local) == (names[2], True)
    assert nack.message_class == MessageClass.NACK_Q_EXCEED_QUOTA
    net.advance(1300)
    expired = [event.identifier for event in net.of("a", Nacked)[1:]]
    assert expired == names[:2], "those that wait have their time"


def test_a_transactional_message_is_refused_and_no_hop_count_blamed() -> None:
    net = Enterprise(WORLD.snapshot)
    dispatch(net, packet(QueueName.at_source(ADMIN), transaction=bytes(20)))

    [refused] = net.of("b", Refused)
    assert (refused.identifier, refused.reason) == (X7, "transactional")
    assert net.managers["b"].statistics.exhausted == 0
    assert net.managers["b"].statistics.sent == 1, "its sender hears of it"
    assert net.of("b", Arrived) == []


@pytest.mark.parametrize("kind", [QueueKind.PUBLIC, QueueKind.PRIVATE_AT_DESTINATION])
def test_an_acknowledgement_names_the_queue_that_was_not_reached(kind: QueueKind) -> None:
    """As its response queue; a number alone would be one of the machine that gets it."""
    orders = guid("orders")
    public = QueueName(QueueKind.PUBLIC, guid=orders)
    private = QueueName.at_destination(QUEUE)
    name = public if kind is QueueKind.PUBLIC else private
    header = UserHeader(X7.source, X7.ordinal, name, guid("b"), admin=QueueName.at_source(ADMIN))
    message = UserMessage(header, MessageProperties(b"body"))
    nack = negative(message, 0x8000, MessageIdentifier(guid("a"), 1), lambda _: None)
    assert nack is not None
    expected = QueueName(QueueKind.PRIVATE, private_id=QUEUE, guid=guid("b"))
    assert nack.header.response == (public if kind is QueueKind.PUBLIC else expected)
    assert nack.header.address == guid("x")
