"""Whole queue managers: delivery, repetition, expiry, acknowledgements, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.queueing.events import (
    Acknowledged,
    Close,
    Connect,
    Delivered,
    Dropped,
    Nacked,
    Notified,
    Refused,
    SessionClosed,
    SessionOpened,
    Write,
    Written,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import (
    REQUEST_LIFETIME_S,
    REQUEST_PRIORITY,
    PrivateQueue,
    QueuedMessage,
)
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.baseheader import INFINITE, BaseHeader
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection, SessionAck
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqqb.properties import MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.reader import Reader
from tests.protocol.queueing.wires import PSC1, PSC2, UNIX_TIME, Hook, Wires, manager, pair

OTHER = Guid.parse("11111111-0001-0002-0003-040506070809")
NACK_ME = QueuedMessage(b"tell me", acknowledge=True)


def bodies(wires: Wires, machine: str) -> list[bytes]:
    return [event.body for event in wires.of(machine, Delivered)]


# --- delivery -------------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-3.1.7.2.1-05", "MQDSRP-3.1.7.2.1-06")
def test_messages_reach_the_other_machine_over_one_session() -> None:
    wires, one, _ = pair()
    names = [wires.send("psc1", "PSC2", QueuedMessage(bytes([n]))) for n in range(3)]
    assert one.queued("PSC2") == 3, "nothing has happened yet, and nobody waited"
    wires.run()
    wires.send("psc1", "psc2.example.com", QueuedMessage(b"more"))
    wires.run()
    assert bodies(wires, "psc2") == [b"\0", b"\1", b"\2", b"more"]
    assert len(wires.attempts) == 1
    (opened,) = wires.of("psc1", SessionOpened)
    assert (opened.peer, opened.machine, opened.address) == (PSC2, "PSC2", "address of psc2")
    (accepted,) = wires.of("psc2", SessionOpened)
    assert (accepted.peer, accepted.machine, accepted.address) == (PSC1, None, "address of psc1")
    first = wires.of("psc2", Delivered)[0]
    assert first == Delivered(names[0], b"\0", 3, False, accepted.session)
    written = [event.identifier for event in wires.of("psc1", Written)]
    assert written[:3] == names


def test_nothing_is_kept_of_connections_that_were_served() -> None:
    """A server that runs for months has many of them."""
    wires, *managers = pair()
    for number in range(5):
        wires.send("psc1", "PSC2", QueuedMessage(bytes([number])))
        wires.run()
        wires.cut()
        wires.advance(60)
    assert len(bodies(wires, "psc2")) == 5
    for one in managers:
        assert not one._dirty
        assert len(one._links) <= 1


def test_acknowledgements_follow_within_ten_seconds() -> None:
    wires, one, _ = pair()
    names = tuple(wires.send("psc1", "PSC2", QueuedMessage(bytes([n]))) for n in range(3))
    wires.advance(9.9)
    assert one.queued("PSC2") == 3
    wires.advance(0.1)
    (event,) = wires.of("psc1", Acknowledged)
    assert (event.identifiers, event.machine) == (names, "PSC2")
    assert one.queued("PSC2") == 0
    assert one.statistics.acknowledged == 3


def test_both_ways_at_once() -> None:
    wires, _, _ = pair()
    for n in range(100):
        wires.send("psc1", "PSC2", QueuedMessage(b"to 2: %d" % n))
        wires.send("psc2", "PSC1", QueuedMessage(b"to 1: %d" % n))
    wires.advance(10)
    assert bodies(wires, "psc2") == [b"to 2: %d" % n for n in range(100)]
    assert bodies(wires, "psc1") == [b"to 1: %d" % n for n in range(100)]
    assert len(wires.attempts) == 2, "a session for each direction"


def test_scenario_18_priority_7_overtakes_what_waits() -> None:
    wires, _, _ = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"slow"))
    wires.send("psc1", "PSC2", QueuedMessage(b"fast", REQUEST_PRIORITY, REQUEST_LIFETIME_S))
    wires.run()
    assert [(e.body, e.priority) for e in wires.of("psc2", Delivered)] == [
        (b"fast", 7),
        (b"slow", 3),
    ]


def test_a_message_to_the_own_machine_goes_nowhere() -> None:
    wires, one, _ = pair()
    name = wires.send("psc1", "psc1.example.com", QueuedMessage(b"me"))
    wires.run()
    assert wires.of("psc1", Delivered) == [Delivered(name, b"me", 3, True, 0)]
    assert wires.attempts == []
    assert one.queued("PSC1") == 0


@pytest.mark.parametrize("skew", [-100_000, 100_000])
def test_scenario_18_clocks_may_differ(skew: int) -> None:
    """A message that lives ten seconds, sent a day ago or a day from now."""
    wires, _, _ = pair()
    wires.skew["psc1"] = skew
    wires.send("psc1", "PSC2", QueuedMessage(b"x", REQUEST_PRIORITY, REQUEST_LIFETIME_S))
    wires.run()
    assert bodies(wires, "psc2") == [b"x"]


def test_the_packet_says_when_it_was_sent() -> None:
    wires, _, _ = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.run()
    stream = bytes(wires.written["psc1", 1])
    message = decode_packet(stream[572 + 32 :])
    assert isinstance(message, UserMessage)
    assert message.header.sent_time == UNIX_TIME + 5000
    assert message.header.message_id == 1


# --- repetition -----------------------------------------------------------------------------------


def test_scenario_18_broken_after_the_message_and_before_its_acknowledgement() -> None:
    """One delivery, one acknowledgement, the same MessageID twice on the wire."""
    wires, one, two = pair()
    name = wires.send("psc1", "PSC2", QueuedMessage(b"once"))
    wires.run()
    assert bodies(wires, "psc2") == [b"once"]
    wires.cut()
    wires.advance(5)
    assert two.statistics.received == 2
    assert two.statistics.duplicates == 1
    assert [event.reason for event in wires.of("psc2", Refused)] == ["duplicate"]
    wires.advance(10)
    assert bodies(wires, "psc2") == [b"once"]
    assert one.queued("PSC2") == 0, "the repetition is acknowledged, although it was discarded"
    assert [event.identifier for event in wires.of("psc1", Written)] == [name, name]
    assert [event.identifiers for event in wires.of("psc1", Acknowledged)] == [(name,)]


def test_broken_before_the_message_arrives() -> None:
    wires, one, _ = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"first"))
    wires.run()
    wires.send("psc1", "PSC2", QueuedMessage(b"second"))
    wires.act()
    wires.cut()
    wires.send("psc1", "PSC2", QueuedMessage(b"third"))
    wires.advance(20)
    assert bodies(wires, "psc2") == [b"first", b"second", b"third"]
    assert one.queued("PSC2") == 0


def test_a_peer_that_falls_silent_is_left_and_tried_again() -> None:
    wires, one, _ = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.until(lambda: one.statistics.sent == 1)
    wires.act()
    # The session is open and the message written; nothing is carried any more.
    for end in wires.ends.values():
        end.other = None
        end.inbound.clear()
    wires.advance(39)
    assert wires.of("psc1", SessionClosed) == []
    wires.advance(2)
    assert [event.reason for event in wires.of("psc1", SessionClosed)] == [
        "nothing was acknowledged"
    ]
    wires.advance(5)
    assert bodies(wires, "psc2") == [b"x"]
    wires.advance(10)
    assert one.queued("PSC2") == 0


def test_the_duplicate_table_outlives_a_queue_manager() -> None:
    wires, one, two = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"once"))
    wires.run()
    wires.cut()
    again = manager(PSC2, "PSC2", duplicates=two.duplicates)
    wires.managers["psc2"] = again
    wires.advance(20)
    assert bodies(wires, "psc2") == [b"once"]
    assert again.statistics.duplicates == 1
    assert one.queued("PSC2") == 0


# --- connecting -----------------------------------------------------------------------------------


def test_retries_back_off_to_a_minute() -> None:
    wires, _, _ = pair()
    wires.down.add("psc2")
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.advance(300)
    times = [when - 5000 for when, _, _ in wires.attempts]
    assert times == [0, 5, 15, 35, 75, 135, 195, 255]
    wires.down.clear()
    wires.advance(20)
    assert bodies(wires, "psc2") == [b"x"]
    wires.send("psc1", "PSC2", QueuedMessage(b"y"))
    wires.down.add("psc2")
    wires.act()
    wires.cut()
    wires.advance(6)
    assert [round(when - wires.now + 6, 6) for when, _, _ in wires.attempts[-1:]] == [5]


def test_a_new_message_does_not_shorten_the_wait() -> None:
    wires, _, _ = pair()
    wires.down.add("psc2")
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.advance(1)
    wires.send("psc1", "PSC2", QueuedMessage(b"y"))
    wires.advance(3)
    assert len(wires.attempts) == 1


def test_a_connection_that_takes_too_long_is_given_up() -> None:
    one = manager(PSC1, "PSC1")
    one.send("PSC2", QueuedMessage(b"x"), 0.0, 0)
    assert one.effects() == [Connect(1, "PSC2")]
    one.handle_timer(60.0)
    assert one.effects() == [Close(1)]
    assert isinstance(event := one.next_event(), SessionClosed)
    assert event.reason == "connecting took too long"
    one.connected(1, "late", 61.0)
    assert one.effects() == [Close(1)]
    one.handle_timer(65.0)
    assert one.effects() == [Connect(2, "PSC2")]


def test_a_refusal_is_retried() -> None:
    admitted = False
    wires, one, _ = pair(
        peers=Hook(lambda _guid, machine, _address: admitted or machine is not None)
    )
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.run()
    assert [e.reason for e in wires.of("psc1", SessionClosed)] == ["the peer refused the session"]
    assert [e.reason for e in wires.of("psc2", SessionClosed)] == [
        f"refused: {PSC1} is not among the peers"
    ]
    admitted = True
    wires.advance(5)
    assert bodies(wires, "psc2") == [b"x"]
    assert one.queued("PSC2") == 1


def test_who_is_asked_about_peers() -> None:
    asked: list[tuple[Guid, str | None, str]] = []

    def admits(guid: Guid, machine: str | None, address: str) -> bool:
        asked.append((guid, machine, address))
        return True

    wires, _, _ = pair(peers=Hook(admits))
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.run()
    assert sorted(asked, key=str) == sorted(
        [(PSC1, None, "address of psc1"), (PSC2, "PSC2", "address of psc2")], key=str
    )


def test_an_impostor_at_the_address_gets_nothing() -> None:
    one = manager(PSC1, "PSC1", peers=Hook(lambda guid, _machine, _address: guid == PSC2))
    wires = Wires(one, manager(OTHER, "PSC2"))
    wires.send("psc1", "PSC2", QueuedMessage(b"secret"))
    wires.run()
    assert bodies(wires, "psc2") == []
    assert b"secret" not in bytes(wires.written["psc1", 1])


def test_idle_sessions_close_and_leave_nothing_behind() -> None:
    wires, one, two = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.advance(320)
    assert [event.reason for event in wires.of("psc1", SessionClosed)] in (["idle"], ["closed"])
    assert one._links == two._links == {}
    assert one._destinations == {}
    assert one.next_timer() is None
    wires.send("psc1", "PSC2", QueuedMessage(b"y"))
    wires.run()
    assert bodies(wires, "psc2") == [b"x", b"y"]


# --- expiry, quota and negative acknowledgements --------------------------------------------------


@pytest.mark.parametrize("asked", [True, False])
def test_a_message_that_does_not_arrive_in_time(asked: bool) -> None:
    wires, one, _ = pair()
    wires.down.add("psc2")
    message = QueuedMessage(b"x", REQUEST_PRIORITY, REQUEST_LIFETIME_S, acknowledge=asked)
    name = wires.send("psc1", "PSC2", message)
    wires.advance(9.9)
    assert wires.of("psc1", Nacked) == []
    assert wires.of("psc1", Dropped) == []
    wires.advance(0.1)
    timeout = MessageClass.NACK_REACH_QUEUE_TIMEOUT
    nacks = [Nacked(name, "PSC2", message, timeout, True)] if asked else []
    drops = [] if asked else [Dropped(name, "PSC2", message, timeout)]
    assert wires.of("psc1", Nacked) == nacks
    assert wires.of("psc1", Dropped) == drops
    assert one.queued("PSC2") == 0
    assert one.statistics.undelivered == 1
    wires.advance(120)
    assert one.next_timer() is None, "nothing to send, nothing to try"
    assert one._destinations == {}


def test_a_message_in_flight_does_not_expire_but_its_repetition_does() -> None:
    wires, _, _ = pair()
    wires.send("psc1", "PSC2", replace(NACK_ME, lifetime_s=8))
    wires.run()
    wires.advance(9)
    assert wires.of("psc1", Nacked) == []
    wires.down.add("psc2")
    wires.cut()
    wires.run()
    (nack,) = wires.of("psc1", Nacked)
    assert nack.local


def test_a_message_without_end_waits_for_ever() -> None:
    wires, one, _ = pair()
    wires.down.add("psc2")
    wires.send("psc1", "PSC2", replace(NACK_ME, lifetime_s=INFINITE))
    wires.advance(100_000)
    assert one.queued("PSC2") == 1


@pytest.mark.parametrize(
    "limits",
    [
        QueueingLimits(max_queued_messages=2),
        QueueingLimits(max_queued_bytes=2 * 224),
    ],
)
def test_a_full_queue_drops_and_says_so(limits: QueueingLimits) -> None:
    wires, one, _ = pair(limits)
    wires.down.add("psc2")
    names = [wires.send("psc1", "PSC2", NACK_ME) for _ in range(3)]
    wires.run()
    (nack,) = wires.of("psc1", Nacked)
    quota = MessageClass.NACK_Q_EXCEED_QUOTA
    assert nack == Nacked(names[2], "PSC2", NACK_ME, quota, True)
    assert one.queued("PSC2") == 2
    wires.down.clear()
    wires.advance(20)
    assert bodies(wires, "psc2") == [b"tell me"] * 2


def test_too_many_destinations() -> None:
    wires, _, _ = pair(QueueingLimits(max_destinations=1))
    wires.down |= {"a", "b"}
    wires.send("psc1", "A", NACK_ME)
    wires.send("psc1", "B", NACK_ME)
    assert [event.machine for event in wires.of("psc1", Nacked)] == ["B"]


class Peer:
    """A peer made of packets, with an open session that it accepted or began."""

    def __init__(
        self, target: QueueingMachine, guid: Guid = PSC2, now: float = 0.0, source: str = "here"
    ) -> None:
        self.target, self.guid, self.now = target, guid, now
        number = target.accepted(source, now)
        assert number is not None
        self.number = number
        self.write(EstablishConnection(guid, Guid.NULL, 0).to_bytes())
        self.write(ConnectionParameters(500, 20_000).to_bytes())
        self.received = b""
        self.closed = False
        self.read()

    def write(self, data: bytes) -> None:
        self.target.receive(self.number, data, self.now)

    def read(self) -> bytes:
        for effect in self.target.effects():
            if isinstance(effect, Write) and effect.connection == self.number:
                self.received += effect.data
            elif isinstance(effect, Close) and effect.connection == self.number:
                self.closed = True
        return self.received

    def events(self) -> list[Any]:
        found = []
        while (event := self.target.next_event()) is not None:
            found.append(event)
        return [event for event in found if not isinstance(event, SessionOpened)]


def nack(
    subject: MessageIdentifier,
    source: Guid = PSC2,
    message_class: int = MessageClass.NACK_BAD_SIGNATURE,
    **header: Any,
) -> UserMessage:
    fields: dict[str, Any] = {"destination": QueueName.at_destination(1), "address": PSC1, **header}
    return UserMessage(
        UserHeader(source, 77, **fields),
        MessageProperties(b"not this", message_class, correlation_id=subject.to_bytes()),
    )


def sent_to_psc2() -> tuple[QueueingMachine, MessageIdentifier]:
    """A queue manager that has written a message to PSC2, told apart from one that waits."""
    wires, one, _ = pair()
    name = wires.send("psc1", "PSC2", NACK_ME)
    wires.advance(11)
    assert one.queued("PSC2") == 0
    wires.cut()
    wires.drain()
    one.effects()
    return one, name


@pytest.mark.parametrize(
    "message_class", [0x8000, 0x8003, 0x8004, 0x8006, 0x8007, 0xC000, 0xC001, 0xC002, 0xC003]
)
def test_a_negative_acknowledgement_brings_back_the_own_message(message_class: int) -> None:
    one, name = sent_to_psc2()
    peer = Peer(one, now=5020.0)
    peer.write(nack(name, message_class=message_class).to_bytes())
    expected = Nacked(name, "PSC2", NACK_ME, message_class, local=False)
    assert peer.events() == [expected]
    peer.write(replace(nack(name), header=replace(nack(name).header, message_id=78)).to_bytes())
    (event,) = peer.events()
    assert isinstance(event, Refused), "one answer is enough"


def test_a_negative_acknowledgement_that_is_not_believed() -> None:
    one, name = sent_to_psc2()
    stranger = Peer(one, OTHER, now=5020.0)
    peer = Peer(one, now=5020.0)
    stranger.write(nack(name, OTHER).to_bytes())
    stranger.write(nack(name, PSC2).to_bytes())
    peer.write(nack(replace(name, ordinal=name.ordinal + 1)).to_bytes())
    peer.write(nack(replace(name, source=OTHER)).to_bytes())
    reasons = [event.reason for event in peer.events()]
    nothing = "acknowledges nothing that was sent to its sender"
    assert reasons == [nothing, f"from {PSC2} on the session of {OTHER}", nothing, nothing]


def test_a_negative_acknowledgement_that_comes_too_late() -> None:
    one, name = sent_to_psc2()
    late = Peer(one, now=5000.0 + 1200 + 300)
    late.write(nack(name).to_bytes())
    assert [type(event) for event in late.events()] == [Refused]


# --- what is not delivered ------------------------------------------------------------------------


def normal(**fields: Any) -> UserMessage:
    header = UserHeader(PSC2, 5, QueueName.of_direct("OS:PSC1\\private$\\mqis_queue$"))
    message = UserMessage(header, MessageProperties(b"body"), SecurityHeader(2, PSC2.raw))
    return replace(message, **fields)


def addressed(queue: QueueName, address: Guid = Guid.NULL) -> UserMessage:
    message = normal()
    return replace(message, header=replace(message.header, destination=queue, address=address))


@pytest.mark.parametrize(
    "message",
    [
        normal(),
        normal(security=None),
        addressed(QueueName.of_direct("OS:psc1.example.com\\PRIVATE$\\mqis_queue$")),
        pytest.param(
            addressed(QueueName.at_destination(1), PSC1),
            marks=pytest.mark.req("MQDSRP-3.1.3.3-01"),
        ),
    ],
)
def test_what_is_delivered(message: UserMessage) -> None:
    peer = Peer(manager(PSC1, "PSC1"))
    peer.write(message.to_bytes())
    (event,) = peer.events()
    assert event == Delivered(MessageIdentifier(PSC2, 5), b"body", 3, False, peer.number)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (normal(transaction=bytes(20)), "transactional"),
        (normal(security=SecurityHeader(2, PSC2.raw, encrypted=True)), "encrypted"),
        (addressed(QueueName.of_direct("OS:PSC3\\private$\\mqis_queue$")), "not for the"),
        (addressed(QueueName.of_direct("OS:PSC1\\private$\\other")), "not for the"),
        (addressed(QueueName.at_destination(2), PSC1), "not for the"),
        (addressed(QueueName.at_destination(1), PSC2), "not for the"),
        (addressed(QueueName.at_destination(1)), "not for the"),
        (addressed(QueueName.NONE, PSC1), "not for the"),
        pytest.param(
            normal(properties=MessageProperties(b"", MessageClass.ACK_REACH_QUEUE)),
            "class 0x0002",
            marks=pytest.mark.req("MQDSRP-3.1.5.1-06"),
        ),
        (normal(header=replace(normal().header, source=OTHER)), "on the session of"),
    ],
)
def test_what_is_refused_is_counted_all_the_same(message: UserMessage, reason: str) -> None:
    one = manager(PSC1, "PSC1")
    peer = Peer(one)
    peer.write(message.to_bytes())
    (event,) = peer.events()
    assert isinstance(event, Refused)
    assert reason in event.reason
    assert not peer.closed
    one.handle_timer(10.0)
    ack = decode_packet(peer.read()[-36:])
    assert isinstance(ack, SessionAck)
    assert ack.header.ack_seq == 1


# --- limits ---------------------------------------------------------------------------------------


def test_malformed_packets_close_their_session_and_nothing_else() -> None:
    one = manager(PSC1, "PSC1")
    good, bad = Peer(one), Peer(one, OTHER)
    bad.write(normal().to_bytes()[:100] + b"\xff" * 200)
    good.read()
    bad.read()
    assert bad.number not in one._links
    good.write(normal().to_bytes())
    assert b"body" in [e.body for e in good.events() if isinstance(e, Delivered)]
    bad.write(normal().to_bytes())
    assert good.events() == []


def test_more_sessions_than_allowed_are_refused_in_words_then_unread() -> None:
    one = manager(PSC1, "PSC1", QueueingLimits(max_sessions=2, max_connections=3))
    peers = [Peer(one), Peer(one, OTHER)]
    assert one.ping(Ping(1, PSC2).to_bytes()) == Ping(1, PSC1, refused=True).to_bytes()
    third = one.accepted("here", 0.0)
    assert third is not None
    assert one.accepted("here", 0.0) is None
    one.receive(third, EstablishConnection(PSC2, Guid.NULL, 0).to_bytes(), 0.0)
    refusal = EstablishConnection(PSC2, PSC1, 0, refused=True).to_bytes()
    assert one.effects() == [Write(third, refusal), Close(third)]
    one.connection_lost(peers[0].number, 1.0)
    Peer(one, now=1.0)
    assert one.statistics.refused_connections == 1
    assert one.statistics.closed_connections == 1, "the peer ended the other one"


def test_incomplete_packets_are_bounded_over_all_sessions() -> None:
    one = manager(PSC1, "PSC1", QueueingLimits(max_buffered=1000))
    peers = [Peer(one) for _ in range(3)]
    octets = normal(properties=MessageProperties(bytes(5000))).to_bytes()
    peers[0].write(octets[:600])
    peers[1].write(octets[:300])
    peers[2].write(octets[:200])
    reasons = [e.reason for e in peers[0].events() if isinstance(e, SessionClosed)]
    assert reasons == ["too much is buffered for incomplete packets"]
    assert list(one._links) == [peers[0].number, peers[1].number]
    assert one._buffered == 900
    one.connection_lost(peers[0].number, 1.0)
    assert one._buffered == 300
    peers[1].write(octets[300:])
    assert one._buffered == 0
    assert [type(e) for e in peers[1].events()] == [SessionClosed, Delivered]


@pytest.mark.parametrize(
    "limits", [QueueingLimits(max_events=10), QueueingLimits(max_event_bytes=40)]
)
def test_nothing_is_read_while_the_application_takes_nothing(limits: QueueingLimits) -> None:
    one = manager(PSC1, "PSC1", limits)
    peer = Peer(one)
    assert one.wants_data
    ordinal = 0
    while one.wants_data:
        ordinal += 1
        peer.write(normal(header=replace(normal().header, message_id=ordinal)).to_bytes())
    assert ordinal in (9, 10)
    assert one.accepted("here", 0.0) is None
    one.next_event()
    one.next_event()
    assert one.wants_data


@pytest.mark.untraced
def test_memory_does_not_grow_with_traffic() -> None:
    limits = QueueingLimits(sent_entries=10, duplicate_entries=50)
    wires, one, two = pair(limits, limits)
    for n in range(3000):
        wires.send("psc1", "PSC2", QueuedMessage(b"%d" % n, acknowledge=True))
        wires.run()
        wires.written.clear()
    assert len(bodies(wires, "psc2")) == 3000
    assert len(two.duplicates) == 50
    assert len(one._sent) == 10
    assert len(one._timers._heap) < 50
    destination = one._destinations["psc2"]
    assert destination.queue.messages <= 64
    assert len(destination.queue._expiry) < 1200


# --- the rest -------------------------------------------------------------------------------------


def test_ping() -> None:
    one = manager(PSC1, "PSC1")
    for client in (False, True):
        request = Ping(0xDEADBEEF, PSC2, client=client, refused=True).to_bytes()
        assert one.ping(request) == Ping(0xDEADBEEF, PSC1, client=client).to_bytes()
    for garbage in (b"", b"x" * 24, Ping(1, PSC2).to_bytes() + b"\0"):
        assert one.ping(garbage) is None


def test_closing_acknowledges_and_closes_everything() -> None:
    wires, one, two = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.run()
    wires.send("psc2", "PSC3", QueuedMessage(b"x"))
    assert one.queued("PSC2") == 1
    two.close()
    wires.run()
    assert one.queued("PSC2") == 0
    assert two._links == {}
    assert two.accepted("here", wires.now) is None
    with pytest.raises(ValueError, match="closed"):
        two.send("PSC1", QueuedMessage(b""), 0.0, 0)
    ping = two.ping(Ping(1, PSC1).to_bytes())
    assert ping is not None
    assert Ping.from_bytes(ping).refused


def test_closing_gives_up_connecting() -> None:
    one = manager(PSC1, "PSC1")
    one.send("PSC2", QueuedMessage(b"x"), 0.0, 0)
    one.close()
    assert one.effects() == [Connect(1, "PSC2"), Close(1)]


def test_calls_about_connections_that_are_gone_do_nothing() -> None:
    one = manager(PSC1, "PSC1")
    one.receive(99, b"x", 0.0)
    one.connection_lost(99, 0.0)
    one.connect_failed(99, "x", 0.0)
    one.handle_timer(1e9)
    assert one.effects() == []
    assert one.next_event() is None


def test_unwritten_counts_what_an_open_session_could_take() -> None:
    wires, one, _ = pair(QueueingLimits(window=2))
    for _n in range(5):
        wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    assert one.unwritten == 0
    wires.until(lambda: one.statistics.sent > 0)
    assert one.unwritten == 3
    wires.advance(60)
    assert one.unwritten == 0
    assert len(bodies(wires, "psc2")) == 5


@pytest.mark.parametrize("machine", ["", "a b", "x" * 257])
def test_names_that_are_none(machine: str) -> None:
    with pytest.raises(ValueError, match="machine name"):
        QueueingMachine(PSC1, machine, MessageIdCounter(0))
    with pytest.raises(ValueError, match="machine name"):
        manager(PSC1, "PSC1").send(machine, QueuedMessage(b""), 0.0, 0)


def test_a_body_beyond_the_packet_limit_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="are allowed"):
        manager(PSC1, "PSC1").send("PSC2", QueuedMessage(bytes(4 * 1024 * 1024)), 0.0, 0)


def test_the_streams_are_packets() -> None:
    """Nothing but whole packets leaves a queue manager."""
    wires, _, _ = pair()
    for n in range(100):
        wires.send("psc1", "PSC2", QueuedMessage(bytes(n)))
    wires.advance(20)
    for stream in wires.written.values():
        at = 0
        while at < len(stream):
            length = BaseHeader.decode(Reader(bytes(stream), at)).length
            decode_packet(bytes(stream[at : at + length]))
            at += length
        assert at == len(stream)


def test_a_session_alone_does_not_open_the_replication_queue() -> None:
    """Routing servers give sessions to machines that replication takes nothing from."""
    two = manager(PSC2, "PSC2", counts=lambda guid: guid != PSC1)
    wires = Wires(manager(PSC1, "PSC1"), two)
    notice = PrivateQueue(PSC2, NOTIFY_QUEUE_ID)
    for message in (QueuedMessage(b"a change"), QueuedMessage(b"a notice", queue=notice)):
        wires.send("psc1", "PSC2", message)
    wires.run()
    reasons = [event.reason for event in wires.of("psc2", Refused)]
    assert reasons == [f"{PSC1} is no server of the directory"] * 2
    assert (two.statistics.delivered, two.statistics.refused) == (0, 2)
    assert not wires.of("psc2", Delivered)
    assert not wires.of("psc2", Notified)


# --- strangers ------------------------------------------------------------------------------------


def test_a_stranger_that_hoards_incomplete_packets_gives_way_to_a_server() -> None:
    one = manager(PSC1, "PSC1", QueueingLimits(max_buffered=1000))
    octets = normal(properties=MessageProperties(bytes(5000))).to_bytes()
    hoarder = Peer(one, source="stranger")
    hoarder.write(octets[:900])
    server = Peer(one)
    server.write(octets[:300])
    server.read()
    assert list(one._links) == [server.number]
    assert one._buffered == 300
    server.write(octets[300:])
    assert [type(e) for e in server.events()] == [SessionClosed, Delivered]


def test_a_session_that_delivered_something_is_not_given_to_another() -> None:
    one = manager(PSC1, "PSC1", QueueingLimits(max_sessions=2))
    proved, idle = Peer(one, source="a"), Peer(one, source="a")
    proved.write(normal().to_bytes())
    newcomer = Peer(one, OTHER, source="b")
    assert list(one._links) == [proved.number, newcomer.number]
    another = Peer(one, source="c")
    assert idle.number not in one._links
    assert list(one._links) == [proved.number, another.number]


def test_the_first_packet_has_less_time_than_the_rest_of_the_set_up() -> None:
    one = manager(PSC1, "PSC1", QueueingLimits(silence_timeout_s=5.0, init_timeout_s=60.0))
    silent, begun = one.accepted("a", 0.0), one.accepted("b", 0.0)
    assert silent is not None
    assert begun is not None
    one.receive(begun, EstablishConnection(PSC2, Guid.NULL, 0).to_bytes(), 1.0)
    one.handle_timer(5.0)
    assert list(one._links) == [begun]
    one.handle_timer(59.0)
    assert list(one._links) == [begun]
    one.handle_timer(60.0)
    assert list(one._links) == []
