"""One session: every state with every packet, its counters, its timers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.outgoing import Outgoing
from mqis.protocol.queueing.queue_session import (
    Freed,
    QueueSession,
    QueueSessionState,
    SessionEvent,
    SessionReady,
)
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import BaseHeader
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)
from mqis.wire.mqqb.packet import Packet, UserMessage, decode_packet
from mqis.wire.reader import Reader

HERE = Guid.parse("f0f1f2f3-0001-0002-0003-040506070809")
THERE = Guid.parse("e0e1e2e3-0001-0002-0003-040506070809")
OTHER = Guid.parse("11111111-0001-0002-0003-040506070809")
START = 100.0

ASK = EstablishConnection(THERE, Guid.NULL, 77)
ANSWER = EstablishConnection(HERE, THERE, 77)
PARAMETERS = ConnectionParameters(500, 20_000, 64)


def outgoing(ordinal: int, size: int = 10, guid: Guid = HERE) -> Outgoing:
    identifier = MessageIdentifier(guid, ordinal)
    message = QueuedMessage(bytes(size))
    return Outgoing.of(
        identifier, message, build_packet(message, identifier, "PSC2", 0, None), START
    )


def incoming(ordinal: int, size: int = 10) -> UserMessage:
    packet = decode_packet(outgoing(ordinal, size, THERE).packet)
    assert isinstance(packet, UserMessage)
    return packet


def recoverable(ordinal: int) -> UserMessage:
    message = incoming(ordinal)
    return replace(message, header=replace(message.header, recoverable=True))


MESSAGE = incoming(1)


def packets(data: bytes) -> Iterator[Packet]:
    at = 0
    while at < len(data):
        length = BaseHeader.decode(Reader(data, at)).length
        yield decode_packet(data[at : at + length])
        at += length


def sent(session: QueueSession) -> list[Packet]:
    return list(packets(session.data_to_send()))


def session_in(state: QueueSessionState, limits: QueueingLimits | None = None) -> QueueSession:
    """A session brought there by packets alone; what it wrote on the way is gone."""
    initiator = state in (QueueSessionState.WAITING_ECR, QueueSessionState.WAITING_CPR)
    session = QueueSession(HERE, limits or QueueingLimits(), START, initiator=initiator)
    if state is QueueSessionState.WAITING_CPR:
        session.receive(ANSWER.to_bytes(), START)
    elif state in (QueueSessionState.WAITING_CP, QueueSessionState.OPEN):
        session.receive(ASK.to_bytes(), START)
    if state is QueueSessionState.OPEN:
        session.receive(PARAMETERS.to_bytes(), START)
    elif state is QueueSessionState.CLOSED:
        session.close("test")
    session.data_to_send()
    assert session.state is state
    return session


def opened(initiator: bool, limits: QueueingLimits | None = None) -> QueueSession:
    session = QueueSession(HERE, limits or QueueingLimits(), START, initiator=initiator)
    first = ANSWER if initiator else ASK
    events = session.receive(first.to_bytes() + PARAMETERS.to_bytes(), START)
    assert events == [SessionReady()]
    assert session.state is QueueSessionState.OPEN
    session.data_to_send()
    return session


# --- the table ------------------------------------------------------------------------------------

KINDS: dict[str, Packet] = {
    "request": ASK,
    "response": ANSWER,
    "parameters": PARAMETERS,
    "ack": SessionAck(SessionHeader()),
    "message": MESSAGE,
}
#: Where each packet leads that does not close the session.
NEXT = {
    (QueueSessionState.WAITING_ECR, "response"): QueueSessionState.WAITING_CPR,
    (QueueSessionState.WAITING_CPR, "parameters"): QueueSessionState.OPEN,
    (QueueSessionState.WAITING_EC, "request"): QueueSessionState.WAITING_CP,
    (QueueSessionState.WAITING_CP, "parameters"): QueueSessionState.OPEN,
    (QueueSessionState.OPEN, "ack"): QueueSessionState.OPEN,
    (QueueSessionState.OPEN, "message"): QueueSessionState.OPEN,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", QueueSessionState)
def test_every_packet_in_every_state(state: QueueSessionState, kind: str) -> None:
    session = session_in(state)
    events = session.receive(KINDS[kind].to_bytes(), START + 1)
    expected = NEXT.get((state, kind), QueueSessionState.CLOSED)
    assert session.state is expected
    assert (session.closed is not None) == (expected is QueueSessionState.CLOSED)
    if expected is QueueSessionState.CLOSED:
        assert events == []
        assert session.next_timer() is None
    if state is QueueSessionState.OPEN and kind == "message":
        assert events == [MESSAGE]
    assert (SessionReady() in events) == (
        expected is QueueSessionState.OPEN and state is not QueueSessionState.OPEN
    )


@pytest.mark.parametrize(
    "state", [state for state in QueueSessionState if state is not QueueSessionState.CLOSED]
)
@pytest.mark.parametrize(
    "octets",
    [bytes(16), b"GET / HTTP/1.1\r\n", PARAMETERS.to_bytes()[:18] + b"\x09" + bytes(13)],
    ids=["zeros", "HTTP", "internal packet of type 9"],
)
def test_malformed_bytes_close_every_state(state: QueueSessionState, octets: bytes) -> None:
    session = session_in(state)
    assert session.receive(octets, START) == []
    assert session.closed is not None
    assert session.closed.startswith("malformed packet")
    assert session.receive(ASK.to_bytes(), START) == []


@pytest.mark.parametrize(
    "state", [state for state in QueueSessionState if state is not QueueSessionState.CLOSED]
)
def test_timers_of_every_state(state: QueueSessionState) -> None:
    session = session_in(state)
    wait = {QueueSessionState.OPEN: 300.0, QueueSessionState.WAITING_EC: 10.0}.get(state, 60.0)
    assert session.next_timer() == START + wait
    session.handle_timer(START + wait - 0.1)
    assert session.closed is None
    session.handle_timer(START + wait)
    assert session.closed == (
        "idle" if state is QueueSessionState.OPEN else f"{state.value} for too long"
    )


@pytest.mark.parametrize("state", QueueSessionState)
def test_closing_every_state(state: QueueSessionState) -> None:
    session = session_in(state)
    session.close_orderly("over")
    assert session.closed == ("test" if state is QueueSessionState.CLOSED else "over")
    assert session.data_to_send() == b""
    session.handle_timer(START + 1000)
    assert not session.room


def test_what_came_before_malformed_bytes_is_told() -> None:
    session = opened(initiator=False)
    assert session.receive(MESSAGE.to_bytes() + bytes(16), START) == [MESSAGE]
    assert session.closed is not None


@given(st.lists(st.integers(1, 900), max_size=40), st.booleans())
def test_pieces_make_no_difference(sizes: list[int], initiator: bool) -> None:
    first = ANSWER if initiator else ASK
    piggy_backed = replace(incoming(2), session=SessionHeader(user_msg_seq=2))
    stream = b"".join(
        packet.to_bytes()
        for packet in (
            first,
            PARAMETERS,
            MESSAGE,
            piggy_backed,
            incoming(3),
            SessionAck(SessionHeader()),
        )
    )
    whole = QueueSession(HERE, QueueingLimits(), START, initiator=initiator)
    expected = whole.receive(stream, START)
    pieces = QueueSession(HERE, QueueingLimits(), START, initiator=initiator)
    events: list[SessionEvent] = []
    at = 0
    for size in [*sizes, len(stream)]:
        events += pieces.receive(stream[at : at + size], START)
        at += size
    assert events == expected
    assert pieces.data_to_send() == whole.data_to_send()
    assert len(expected) == 4


# --- set-up: the initiator ------------------------------------------------------------------------


def test_the_request_goes_out_with_a_null_server() -> None:
    session = QueueSession(HERE, QueueingLimits(), 74.565, initiator=True)
    assert sent(session) == [EstablishConnection(HERE, Guid.NULL, 74_565)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (replace(ANSWER, refused=True), "the peer refused the session"),
        (replace(ANSWER, client=OTHER), f"an answer for {OTHER}"),
        (replace(ANSWER, server=Guid.NULL), "the peer has no GUID"),
        (replace(ANSWER, server=HERE), "the peer is this queue manager itself"),
    ],
)
def test_answers_that_end_it(answer: EstablishConnection, reason: str) -> None:
    session = session_in(QueueSessionState.WAITING_ECR)
    session.receive(answer.to_bytes(), START)
    assert session.closed == reason


def test_any_server_that_answers_is_learned() -> None:
    session = session_in(QueueSessionState.WAITING_ECR)
    session.receive(replace(ANSWER, server=OTHER).to_bytes(), START)
    assert session.peer == OTHER


@pytest.mark.parametrize(
    ("round_trip_s", "timeout_ms"), [(0.001, 500), (0.1, 800), (10.0, 80_000), (50.0, 120_000)]
)
def test_the_recoverable_timeout_comes_from_the_round_trip(
    round_trip_s: float, timeout_ms: int
) -> None:
    session = session_in(QueueSessionState.WAITING_ECR)
    session.receive(ANSWER.to_bytes(), START + round_trip_s)
    assert sent(session) == [ConnectionParameters(timeout_ms, 20_000, 64)]


def test_refused_parameters_end_it() -> None:
    for state in (QueueSessionState.WAITING_CPR, QueueSessionState.WAITING_CP):
        session = session_in(state)
        session.receive(replace(PARAMETERS, refused=True).to_bytes(), START)
        assert session.closed == "the peer refused the session"
        assert sent(session) == []


# --- set-up: the acceptor -------------------------------------------------------------------------


@pytest.mark.parametrize("server", [Guid.NULL, HERE], ids=["null", "own"])
def test_scenario_18_a_request_for_nobody_or_for_this_one_is_accepted(server: Guid) -> None:
    session = session_in(QueueSessionState.WAITING_EC)
    session.receive(replace(ASK, server=server, no_ping=False).to_bytes(), START)
    assert sent(session) == [EstablishConnection(THERE, HERE, 77, no_ping=False)]
    assert session.peer == THERE


@pytest.mark.parametrize(
    "request_",
    [replace(ASK, server=OTHER), replace(ASK, client=Guid.NULL), replace(ASK, client=HERE)],
    ids=["for another", "from nobody", "from itself"],
)
def test_a_request_that_is_refused_in_words(request_: EstablishConnection) -> None:
    session = session_in(QueueSessionState.WAITING_EC)
    session.receive(request_.to_bytes(), START)
    assert sent(session) == [EstablishConnection(request_.client, HERE, 77, refused=True)]
    assert session.closed is not None
    assert session.closed.startswith("refused: ")


@pytest.mark.parametrize("initiator", [False, True])
def test_admission(initiator: bool) -> None:
    asked: list[Guid] = []

    def never(guid: Guid) -> str | None:
        asked.append(guid)
        return "not today"

    session = QueueSession(HERE, QueueingLimits(), START, initiator=initiator, admission=never)
    session.data_to_send()
    session.receive((ANSWER if initiator else ASK).to_bytes(), START)
    assert asked == [THERE]
    assert session.closed == ("not today" if initiator else "refused: not today")
    answers = [] if initiator else [EstablishConnection(THERE, HERE, 77, refused=True)]
    assert sent(session) == answers


def test_the_acceptor_copies_timeouts_and_keeps_to_their_range() -> None:
    """A peer that asks for an instant or for weeks gets its answer, but not its way."""
    session = session_in(QueueSessionState.WAITING_CP)
    session.receive(ConnectionParameters(1, 0xFFFFFFFF, 3).to_bytes(), START)
    assert sent(session) == [ConnectionParameters(1, 0xFFFFFFFF, 64)]
    session.receive(MESSAGE.to_bytes(), START)
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=1))]  # half of 3 is 1
    session = session_in(QueueSessionState.WAITING_CP)
    session.receive(ConnectionParameters(1, 0xFFFFFFFF, 64).to_bytes(), START)
    session.receive(MESSAGE.to_bytes(), START)
    assert session.next_timer() == START + 60.0


# --- acknowledgements of what came ----------------------------------------------------------------


def test_a_message_is_acknowledged_after_half_the_timeout() -> None:
    session = opened(initiator=False)
    session.receive(MESSAGE.to_bytes(), START)
    session.receive(incoming(2).to_bytes(), START + 9)
    assert session.next_timer() == START + 10
    session.handle_timer(START + 9.9)
    assert sent(session) == []
    session.handle_timer(START + 10)
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=2))]
    assert session.next_timer() == START + 9 + 300


def test_half_a_window_is_acknowledged_at_once() -> None:
    session = opened(initiator=True)
    for ordinal in range(1, 32):
        session.receive(incoming(ordinal).to_bytes(), START)
    assert sent(session) == []
    session.receive(incoming(32).to_bytes(), START)
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=32))]


def test_many_bytes_are_acknowledged_at_once() -> None:
    session = opened(initiator=True, limits=QueueingLimits(ack_bytes=1000))
    session.receive(incoming(1, 600).to_bytes(), START)
    assert sent(session) == []
    session.receive(incoming(2, 600).to_bytes(), START)
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=2))]


def test_a_recoverable_message_is_acknowledged_sooner() -> None:
    session = opened(initiator=False)
    session.receive(MESSAGE.to_bytes(), START)
    session.receive(recoverable(2).to_bytes(), START + 1)
    session.receive(recoverable(3).to_bytes(), START + 1.2)
    assert session.next_timer() == START + 1.5
    session.handle_timer(START + 1.5)
    header = SessionHeader(ack_seq=3, recoverable_ack_seq=1, recoverable_ack_flags=0b11)
    assert sent(session) == [SessionAck(header)]
    session.receive(recoverable(4).to_bytes(), START + 2)
    session.handle_timer(START + 3)
    header = SessionHeader(ack_seq=4, recoverable_ack_seq=3, recoverable_ack_flags=1)
    assert sent(session) == [SessionAck(header)]


def test_no_more_recoverable_messages_than_flags() -> None:
    session = session_in(QueueSessionState.WAITING_CP, QueueingLimits(window=128))
    session.receive(ConnectionParameters(500, 20_000, 128).to_bytes(), START)
    session.data_to_send()
    for ordinal in range(1, 34):
        session.receive(recoverable(ordinal).to_bytes(), START)
    header = SessionHeader(32, 1, 0xFFFFFFFF, window=128)
    assert sent(session) == [SessionAck(header)]


def test_the_last_acknowledgement_before_an_orderly_close() -> None:
    session = opened(initiator=False)
    session.receive(MESSAGE.to_bytes(), START)
    session.close_orderly("over")
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=1))]


def test_an_idle_session_says_what_it_has_before_it_closes() -> None:
    session = opened(initiator=False, limits=QueueingLimits(idle_timeout_s=5))
    session.receive(MESSAGE.to_bytes(), START)
    session.handle_timer(START + 5)
    assert session.closed == "idle"
    assert sent(session) == [SessionAck(SessionHeader(ack_seq=1))]


# --- acknowledgements of what went ----------------------------------------------------------------


def ack(count: int, **fields: int) -> bytes:
    return SessionAck(SessionHeader(ack_seq=count, **fields)).to_bytes()


@pytest.mark.parametrize("initiator", [False, True])
def test_both_ends_may_send(initiator: bool) -> None:
    session = opened(initiator)
    messages = [outgoing(n) for n in (1, 2, 3)]
    for message in messages:
        session.send(message, START)
    assert session.data_to_send() == b"".join(message.packet for message in messages)
    assert session.receive(ack(2), START) == [Freed((messages[0], messages[1]))]
    assert session.receive(ack(2), START) == []
    session.close("cut")
    assert session.unacknowledged() == [messages[2]]


def test_scenario_18_a_piggy_backed_header_acknowledges_too() -> None:
    session = opened(initiator=True)
    mine = outgoing(1)
    session.send(mine, START)
    message = replace(MESSAGE, session=SessionHeader(ack_seq=1, user_msg_seq=1))
    assert session.receive(message.to_bytes(), START) == [message, Freed((mine,))]
    assert session.miscounts == 0


def test_a_peer_that_miscounts_its_own_messages_is_forgiven() -> None:
    session = opened(initiator=True)
    session.receive(ack(0, user_msg_seq=9), START)
    assert session.closed is None
    assert session.miscounts == 1


def test_the_window_stops_the_sender() -> None:
    session = opened(initiator=True)
    for ordinal in range(1, 65):
        assert session.room
        session.send(outgoing(ordinal), START)
    assert not session.room
    with pytest.raises(ValueError, match="no room"):
        session.send(outgoing(65), START)
    session.receive(ack(1), START)
    assert session.room


@pytest.mark.parametrize(("window", "messages"), [(0, 1), (1, 1), (2, 2), (64, 64), (1000, 64)])
def test_the_peer_sets_the_window(window: int, messages: int) -> None:
    session = session_in(QueueSessionState.WAITING_CPR)
    session.receive(replace(PARAMETERS, window=window).to_bytes(), START)
    for ordinal in range(1, messages + 1):
        session.send(outgoing(ordinal), START)
    assert not session.room


def test_a_peer_that_pauses_and_goes_on() -> None:
    session = opened(initiator=True)
    session.send(outgoing(1), START)
    session.receive(ack(0, window=1), START)
    assert not session.room
    session.receive(ack(1, window=1), START)
    assert session.room
    session.send(outgoing(2), START)
    assert not session.room
    session.receive(ack(1, window=64), START)
    assert session.room


def test_bytes_in_flight_are_bounded_but_one_message_may_be() -> None:
    session = opened(initiator=True, limits=QueueingLimits(max_unacked_bytes=1000))
    session.send(outgoing(1, 5000), START)
    assert not session.room
    session.receive(ack(1), START)
    assert session.room


def test_an_acknowledgement_of_what_was_never_sent() -> None:
    session = opened(initiator=True)
    mine = outgoing(1)
    session.send(mine, START)
    assert session.receive(ack(2), START) == []
    assert session.closed == "2 messages acknowledged, 1 in flight"
    assert session.unacknowledged() == [mine]


def test_an_older_acknowledgement_changes_nothing() -> None:
    session = opened(initiator=True)
    for ordinal in range(1, 4):
        session.send(outgoing(ordinal), START)
    session.receive(ack(2), START)
    assert session.receive(ack(1), START) == []
    assert session.closed is None
    assert len(session.unacknowledged()) == 1


@pytest.mark.untraced
def test_scenario_18_counters_wrap_after_70000_messages() -> None:
    """70,000 messages there, 66,000 back: each acknowledgement counts modulo 65,536."""
    session = opened(initiator=True)
    mine, theirs = outgoing(1), MESSAGE.to_bytes()
    told = 0
    for count in range(1, 70_001):
        session.send(mine, START)
        if count % 64 == 0 or count == 70_000:
            events = session.receive(ack(count & 0xFFFF, user_msg_seq=told & 0xFFFF), START)
            assert len(events) == 1
            if told < 66_000:
                told += 64
                session.data_to_send()
                session.receive(theirs * 64, START)
                header = SessionHeader(ack_seq=told & 0xFFFF, user_msg_seq=count & 0xFFFF)
                assert decode_packet(session.data_to_send()[-36:]) == SessionAck(header)
    assert session.closed is None
    assert session.miscounts == 0
    assert session.unacknowledged() == []
    assert told == 66_048


# --- timers of an open session --------------------------------------------------------------------


def test_silence_after_a_message_closes_after_twice_the_timeout() -> None:
    session = opened(initiator=True)
    session.send(outgoing(1), START + 1)
    assert session.next_timer() == START + 41
    session.handle_timer(START + 41)
    assert session.closed == "nothing was acknowledged"


def test_any_packet_grants_another_wait() -> None:
    session = opened(initiator=True)
    session.send(outgoing(1), START)
    session.receive(MESSAGE.to_bytes(), START + 39)
    session.handle_timer(START + 40)
    assert session.closed is None
    session.handle_timer(START + 80)
    assert session.closed == "nothing was acknowledged"


def test_the_wait_starts_anew_with_an_acknowledgement() -> None:
    session = opened(initiator=True)
    session.send(outgoing(1), START)
    session.send(outgoing(2), START)
    session.receive(ack(1), START + 39)
    session.handle_timer(START + 78)
    assert session.closed is None
    session.handle_timer(START + 79)
    assert session.closed == "nothing was acknowledged"


def test_no_wait_without_anything_in_flight() -> None:
    session = opened(initiator=True)
    session.send(outgoing(1), START)
    session.receive(ack(1), START + 1)
    assert session.next_timer() == START + 300


def test_messages_either_way_keep_a_session() -> None:
    session = opened(initiator=True)
    session.receive(MESSAGE.to_bytes(), START + 200)
    session.handle_timer(START + 210)
    session.handle_timer(START + 300)
    assert session.closed is None
    session.send(outgoing(1), START + 490)
    session.receive(ack(1), START + 491)
    session.handle_timer(START + 500)
    assert session.next_timer() == START + 790


def test_acknowledgements_do_not_keep_a_session() -> None:
    session = opened(initiator=True)
    session.receive(ack(0), START + 299)
    session.handle_timer(START + 300)
    assert session.closed == "idle"


# --- hostile sizes --------------------------------------------------------------------------------


def test_a_packet_that_never_ends() -> None:
    session = opened(initiator=False)
    octets = MESSAGE.to_bytes()
    session.receive(octets[:20], START)
    session.receive(octets[20:40], START + 100)
    session.handle_timer(START + 300)
    assert session.closed == "a packet took too long"
    assert session.buffered == 0


def test_an_end_of_a_packet_restarts_its_timer() -> None:
    session = opened(initiator=False, limits=QueueingLimits(packet_timeout_s=30))
    octets = MESSAGE.to_bytes()
    session.receive(octets[:20], START)
    session.receive(octets[20:] + octets[:20], START + 29)
    session.handle_timer(START + 58)
    assert session.closed is None
    session.handle_timer(START + 59)
    assert session.closed == "a packet took too long"


def test_nobody_waits_for_a_packet_that_may_not_come() -> None:
    """The header is enough: what follows is not buffered."""
    session = session_in(QueueSessionState.WAITING_EC)
    session.receive(MESSAGE.to_bytes()[:16], START)
    assert session.closed == "a message while waiting for EstablishConnection"
    session = opened(initiator=False)
    octets = bytearray(PARAMETERS.to_bytes()[:16])
    octets[8:12] = (573).to_bytes(4, "little")
    session.receive(bytes(octets), START)
    assert session.closed == "malformed packet: an internal packet of 573 bytes at offset 8"
    session = opened(initiator=False, limits=QueueingLimits(max_packet=1000))
    session.receive(incoming(1, 900).to_bytes()[:16], START)
    assert session.closed == "malformed packet: a packet of 1112 bytes at offset 8"
