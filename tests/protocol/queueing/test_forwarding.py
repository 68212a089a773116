"""Messages by public and private format names: delivered, forwarded or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.queueing.events import Arrived, Nacked, Refused
from mqis.protocol.queueing.forwarding import Forwarder, Rejection, Relay, Verdict
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import DuplicateTable, SentMessage, SentTable
from mqis.protocol.queueing.queued_message import PublicQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID
from mqis.protocol.queueing.routed_messages import negative
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.route_trace import HOP_LIMIT
from mqis.protocol.routing.router import DirectoryRouter
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import SessionHeader
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import Acknowledge, MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader
from mqis.wire.mqqb.userheader import MAX_HOPS, UserHeader
from tests.protocol.queueing.routed import ADMIN, QUEUE
from tests.protocol.routing.worlds import World, guid

WORLD = World("A-B 1", r="A gate", c="A", s="A", d="B", g="B gate")
#: Public queues: of the router, of the client, of a far machine.
MINE, HIS, FAR = guid("queue1"), guid("queue2"), guid("queue3")
OWNERS = {MINE: guid("r"), HIS: guid("c"), FAR: guid("d")}


def forwarder(machine: str = "r", sent: SentTable | None = None) -> Forwarder:
    me = guid(machine)
    keeper = RoutingTableKeeper(me, lambda: WORLD.snapshot, 0.0)
    return Forwarder(
        me,
        DirectoryRouter(me, keeper, OWNERS.get, (QUEUE, ADMIN)),
        QueueingLimits(),
        duplicates=DuplicateTable(QueueingLimits()),
        sent=sent or SentTable(QueueingLimits()),
        policy=SigningPolicy.ACCEPT,
        signer=None,
    )


def private(number: int = QUEUE) -> QueueName:
    return QueueName.at_destination(number)


def public(queue: Guid) -> QueueName:
    return QueueName(QueueKind.PUBLIC, guid=queue)


def message(
    name: QueueName,
    address: Guid = Guid.NULL,
    *,
    source: str = "s",
    hops: int = 0,
    message_class: int = MessageClass.NORMAL,
    transaction: bytes | None = None,
    encrypted: bool = False,
) -> UserMessage:
    header = UserHeader(guid(source), 7, name, address, hops=hops, admin=QueueName.at_source(ADMIN))
    properties = MessageProperties(b"body", message_class, acknowledge=Acknowledge.NEGATIVE_ARRIVAL)
    security = SecurityHeader(encrypted=True) if encrypted else None
    return UserMessage(header, properties, security, transaction=transaction)


def judge(one: UserMessage, machine: str = "r") -> Verdict:
    return forwarder(machine).judge(one, guid("s"), 3, 100.0)


NOWHERE = guid("nobody")


# --- who it is for --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "address", "concerned"),
    [
        (QueueName.of_direct("OS:r\\private$\\mqis_queue$"), Guid.NULL, False),
        (QueueName.of_direct("OS:elsewhere\\private$\\mqis_queue$"), Guid.NULL, False),
        (QueueName.NONE, Guid.NULL, False),
        (private(), Guid.NULL, False),
        (private(MQIS_QUEUE_ID), guid("r"), False),
        (private(NOTIFY_QUEUE_ID), guid("r"), False),
        (private(MQIS_QUEUE_ID), guid("d"), True),
        (private(NOTIFY_QUEUE_ID), guid("d"), True),
        (private(), guid("r"), True),
        (private(), guid("d"), True),
        (public(MINE), Guid.NULL, True),
        (public(FAR), guid("d"), True),
    ],
)
def test_direct_names_and_the_queues_with_rules_of_their_own_do_not_concern_it(
    name: QueueName, address: Guid, concerned: bool
) -> None:
    assert forwarder().concerns(message(name, address).header) is concerned


@pytest.mark.parametrize(
    ("name", "address", "verdict"),
    [
        (private(), guid("r"), Arrived),
        (private(99), guid("r"), Refused),
        (private(), guid("d"), Relay),
        (private(99), guid("d"), Relay),
        (private(MQIS_QUEUE_ID), guid("d"), Relay),
        (private(), NOWHERE, Relay),
        (public(MINE), guid("r"), Arrived),
        (public(MINE), Guid.NULL, Arrived),
        (public(MINE), guid("d"), Arrived),
        (public(FAR), guid("d"), Relay),
        (public(FAR), Guid.NULL, Relay),
        (public(FAR), guid("r"), Refused),
        (public(NOWHERE), Guid.NULL, Refused),
        (public(NOWHERE), guid("d"), Relay),
    ],
)
@pytest.mark.parametrize("machine", ["r", "c"])
def test_every_destination_at_a_routing_server_and_at_another(
    machine: str, name: QueueName, address: Guid, verdict: type[Verdict]
) -> None:
    """The same seen from c: its own queue instead of the router's, and nothing is passed on."""
    if machine == "c":
        address = guid("c") if address == guid("r") else address
        name = public(HIS) if name == public(MINE) else name
        verdict = Refused if verdict is Relay else verdict
    found = judge(message(name, address), machine)

    assert type(found) is verdict
    if isinstance(found, Refused) and address in (guid("d"), NOWHERE):
        assert "no routing server" in found.reason


def test_an_address_is_filled_in_when_the_directory_knows_it() -> None:
    relay = judge(message(public(FAR)))

    assert isinstance(relay, Relay)
    assert relay.target == relay.message.header.address == guid("d")


@pytest.mark.parametrize("address", [guid("r"), guid("d")])
def test_only_machines_of_the_directory_may_send(address: Guid) -> None:
    found = judge(message(private(), address, source="stranger"))

    assert isinstance(found, Refused)
    assert "not in the directory" in found.reason


# --- passing on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("hops", [0, 1, 0x1C])
def test_nothing_but_the_hop_count_changes(hops: int) -> None:
    came = replace(
        message(private(), guid("d"), hops=hops, transaction=bytes(20), encrypted=True),
        session=SessionHeader(1, 0, 0, 1, 64),
        priority=6,
        time_to_reach_queue=77,
        trace=True,
    )
    relay = judge(came)

    assert isinstance(relay, Relay)
    expected = replace(came, session=None, header=replace(came.header, hops=hops + 1))
    assert decode_packet(relay.message.to_bytes()) == expected


@pytest.mark.parametrize("hops", [0x1D, 0x1E, 0x1F])
def test_a_hop_count_above_29_is_refused(hops: int) -> None:
    assert MAX_HOPS == HOP_LIMIT == 0x1D
    found = judge(message(private(), guid("d"), hops=hops))

    assert isinstance(found, Rejection)
    assert found.message_class is MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert "hop count" in found.refused.reason
    assert isinstance(judge(message(private(), guid("r"), hops=hops)), Arrived), "it is there"


def test_a_repetition_is_dropped_and_a_round_trip_is_not() -> None:
    judges = forwarder()

    def verdict(hops: int) -> Verdict:
        return judges.judge(message(private(), guid("d"), hops=hops), guid("s"), 3, 100.0)

    assert isinstance(verdict(0), Relay)
    assert verdict(0) == Refused(MessageIdentifier(guid("s"), 7), 3, "duplicate", duplicate=True)
    assert isinstance(verdict(2), Relay), "it has been round, and has two hops more"
    assert isinstance(verdict(2), Refused)


# --- taking ---------------------------------------------------------------------------------------


def test_what_arrives_tells_who_brought_it() -> None:
    found = judge(message(private(), guid("r"), hops=4))

    name = MessageIdentifier(guid("s"), 7)
    assert found == Arrived(name, private(), b"body", 3, 0, False, 4, guid("s"), 3)


def test_it_arrives_once() -> None:
    judges = forwarder()
    first, second = (
        judges.judge(message(private(), guid("r"), hops=hops), guid("s"), 3, 100.0)
        for hops in (1, 2)
    )
    assert isinstance(first, Arrived)
    assert isinstance(second, Refused)
    assert second.reason == "duplicate"


def test_what_this_machine_cannot_take() -> None:
    transactional = judge(message(private(), guid("r"), transaction=bytes(20)))
    encrypted = judge(message(private(), guid("r"), encrypted=True))

    assert isinstance(transactional, Rejection)
    assert transactional.message_class is MessageClass.NACK_NOT_TRANSACTIONAL_Q
    assert isinstance(encrypted, Refused)


# --- negative acknowledgements --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("admin", "address", "destination"),
    [
        (QueueName.at_source(5), guid("s"), private(5)),
        (QueueName.at_destination(5), guid("d"), private(5)),
        (QueueName(QueueKind.PRIVATE, private_id=5, guid=guid("g")), guid("g"), private(5)),
        (public(HIS), guid("c"), public(HIS)),
    ],
)
def test_where_a_negative_acknowledgement_goes(
    admin: QueueName, address: Guid, destination: QueueName
) -> None:
    one = message(private(), guid("d"))
    one = replace(one, header=replace(one.header, admin=admin, recoverable=True))
    nack = negative(one, 0x8005, MessageIdentifier(guid("r"), 9), OWNERS.get)

    assert nack is not None
    header, properties = nack.header, nack.properties
    assert (header.source, header.message_id) == (guid("r"), 9)
    assert (header.address, header.destination) == (address, destination)
    assert header.recoverable, "as the original"
    assert header.response == QueueName(QueueKind.PRIVATE, private_id=QUEUE, guid=guid("d"))
    assert header.admin is QueueName.NONE
    assert properties.acknowledge == header.hops == 0
    assert (properties.message_class, properties.body) == (0x8005, b"body")
    assert MessageIdentifier.from_bytes(properties.correlation_id) == MessageIdentifier(
        guid("s"), 7
    )


def test_nobody_is_told_under_a_name_that_no_route_leads_to() -> None:
    for admin in (QueueName.of_direct("OS:s\\private$\\a"), public(NOWHERE), QueueName.NONE):
        one = message(private(), guid("d"))
        one = replace(one, header=replace(one.header, admin=admin))
        assert negative(one, 0x8005, MessageIdentifier(guid("r"), 9), OWNERS.get) is None


def test_what_was_encrypted_does_not_come_back() -> None:
    one = message(private(), guid("d"), encrypted=True)
    nack = negative(one, 0x8005, MessageIdentifier(guid("r"), 9), OWNERS.get)
    assert nack is not None
    assert nack.properties.body == b""


@pytest.mark.parametrize(
    ("subject", "queue", "believed"),
    [
        (MessageIdentifier(guid("r"), 5), PublicQueue(guid("d"), FAR), True),
        (MessageIdentifier(guid("r"), 6), PublicQueue(guid("d"), FAR), False),
        (MessageIdentifier(guid("c"), 5), PublicQueue(guid("d"), FAR), False),
        (MessageIdentifier(guid("r"), 5), None, False),
    ],
)
def test_a_negative_acknowledgement_is_believed_about_own_routed_messages_only(
    subject: MessageIdentifier, queue: PublicQueue | None, believed: bool
) -> None:
    sent = SentTable(QueueingLimits())
    original = QueuedMessage(b"mine", acknowledge=True, queue=queue)
    sent.add(5, SentMessage("g", original, guid("g"), 1000.0), 0.0)
    one = message(private(ADMIN), guid("r"), message_class=0x8005)
    one = replace(
        one, properties=replace(one.properties, correlation_id=subject.to_bytes(), body=b"forged")
    )
    judges = forwarder(sent=sent)
    found = judges.judge(one, guid("g"), 3, 100.0)

    if believed:
        assert found == Nacked(subject, "g", original, 0x8005, local=False, routed=True)
        again = judges.judge(one, guid("g"), 3, 100.0)
        assert isinstance(again, Refused), "once"
    else:
        assert isinstance(found, Refused)
