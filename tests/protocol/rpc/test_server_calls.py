"""Calls on a server connection: fragments, order, cancelling, callbacks, time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.authentication import AuthLevel, has_name
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.server_calls import Call, fragments
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.protocol.rpc.server_side import (
    CallbackFaulted,
    CallbackReturned,
    CallCancelled,
    CallReceived,
)
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.pdu import decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import Fault, Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.rpc.talk import (
    FIRST,
    LAST,
    MPX,
    Talk,
    alter_pdu,
    authenticated,
    bare_pdu,
    bind_pdu,
    element,
    make_endpoint,
    request_pdu,
    signed,
)

BOTH = FIRST_LAST | MPX


def later(_call: Call) -> None:
    """A responder that leaves all answers to the test."""


# --- fragments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("frag", [2048, 4280, 5840])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 3000])
@pytest.mark.parametrize("whole", [1, 2])
def test_answers_are_cut_where_the_client_wants(frag: int, beyond: int, whole: int) -> None:
    size = (frag - 24) * whole + beyond
    talk = Talk(respond=lambda _call: bytes(range(256)) * 100).bound(frag=frag)
    talk.respond_to = lambda _call: (bytes(range(256)) * 100)[:size]
    pdus = talk.pdus(request_pdu())
    expected = -(-size // (frag - 24))
    assert len(pdus) == expected
    assert all(len(pdu.data) == frag for pdu in pdus[:-1])
    flags = [pdu.header.flags for pdu in pdus]
    assert flags[0] & FIRST
    assert flags[-1] & LAST
    assert sum(f & FIRST for f in flags) == FIRST
    assert sum(f & LAST for f in flags) == LAST
    stubs = [pdu.body.stub for pdu in pdus if isinstance(pdu.body, Response)]
    hints = [pdu.body.alloc_hint for pdu in pdus if isinstance(pdu.body, Response)]
    assert b"".join(stubs) == (bytes(range(256)) * 100)[:size]
    assert hints == [size - (frag - 24) * number for number in range(expected)]


def test_an_empty_answer_is_a_fragment_too() -> None:
    talk = Talk(respond=lambda _call: b"").bound()
    assert talk.say(request_pdu()) == ["response  call 7"]


def test_one_byte_in_a_fragment() -> None:
    talk = Talk().bound()
    text = b"abcdefgh"
    sent = [
        request_pdu(bytes([c]), flags=(FIRST if at == 0 else 0) | (LAST if at == 7 else 0))
        for at, c in enumerate(text)
    ]
    assert talk.say(*sent) == ["response ABCDEFGH call 7"]


def test_fragments_without_a_stub() -> None:
    talk = Talk().bound()
    sent = [request_pdu(b"", flags=f) for f in (FIRST, 0, 0, LAST)]
    assert talk.say(*sent) == ["response  call 7"]


@given(
    st.binary(max_size=9000),
    st.sampled_from([2048, 4280, 5840]),
    st.booleans(),
    st.sampled_from([None, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]),
)
def test_what_is_cut_comes_together(
    stub: bytes, frag: int, has_object: bool, level: AuthLevel | None
) -> None:
    talk = Talk(make_endpoint(SharedSecret()))
    channel = None
    if level is None:
        talk.bound()
    else:
        channel = authenticated(talk, level)
    target = element().abstract.uuid if has_object else None
    body = Request(0, 3, stub, target)
    sent = list(fragments(body, call_id=9, max_frag=frag, channel=channel))
    assert all(len(pdu) <= frag for pdu in sent)
    talk.pdus(*sent)
    (call,) = talk.calls
    assert (call.id, call.opnum, call.stub, call.object) == (9, 3, stub, target)


# --- feeding --------------------------------------------------------------------------------------

_SIGNED = AuthTrailer(10, 5, 9, b"t" * 16)
#: Things that a client may say, sensible ones more often than others.
SENTENCES = [
    bind_pdu(),
    bind_pdu(flags=BOTH),
    request_pdu(),
    request_pdu(b"x" * 5000, call_id=8),
    request_pdu(b"ab", flags=FIRST),
    request_pdu(b"cd", flags=0),
    request_pdu(b"ef", flags=LAST),
    request_pdu(context_id=3),
    request_pdu(opnum=9),
    alter_pdu(),
    alter_pdu([element(1), element(2)]),
    alter_pdu(auth=AuthTrailer(10, 5, 1, b"hello x")),
    bare_pdu(18),
    bare_pdu(19),
    request_pdu(auth=_SIGNED),
    bare_pdu(2, bytes(24)),
    bare_pdu(99),
    bare_pdu(0, bytes(8), frag_length=7000),
    b"GET / HTTP/1.1\r\n\r\n",
]
scripts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8)


def told(talk: Talk, data: bytes, cuts: Sequence[int]) -> tuple[list[bytes], list[str], bool]:
    """The received bytes, stubs and events when ``data`` arrives in these pieces."""
    received = b""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        received += b"".join(pdu.data for pdu in talk.pdus(data[start:end]))
    stubs = [call.stub for call in talk.calls]
    events = [type(event).__name__ for event in talk.events]
    return [received, *stubs], events, talk.server.closing


@given(scripts, st.booleans(), st.lists(st.integers(0, 20_000), max_size=10))
def test_how_bytes_are_cut_does_not_matter(
    script: list[bytes], bound: bool, cuts: list[int]
) -> None:
    data = (bind_pdu() if bound else b"") + b"".join(script)
    whole = told(Talk(make_endpoint(SharedSecret())), data, [])
    pieces = told(Talk(make_endpoint(SharedSecret())), data, cuts)
    assert pieces == whole


@given(scripts)
def test_byte_by_byte(script: list[bytes]) -> None:
    data = bind_pdu() + b"".join(
        sentence[:60] if len(sentence) > 200 else sentence for sentence in script
    )
    whole = told(Talk(make_endpoint(SharedSecret())), data, [])
    assert told(Talk(make_endpoint(SharedSecret())), data, range(len(data))) == whole


# --- order ----------------------------------------------------------------------------------------


def test_without_multiplexing_calls_run_one_at_a_time_in_order() -> None:
    talk = Talk(respond=later).bound()
    assert talk.say(*(request_pdu(b"%d" % n, call_id=n) for n in (5, 3, 4))) == []
    assert [call.id for call in talk.calls] == [5]
    assert talk.respond(talk.calls[0], b"first") == ["response first call 5"]
    assert [call.id for call in talk.calls] == [5, 3]
    talk.take(talk.server.fault(talk.calls[1], FaultStatus.UNSPEC, 0.0))
    assert talk.say() == ["fault unspec context 0 call 3"]
    assert [call.id for call in talk.calls] == [5, 3, 4]
    assert talk.respond(talk.calls[2], b"last") == ["response last call 4"]


def test_with_multiplexing_calls_run_together_and_end_in_any_order() -> None:
    talk = Talk(respond=later).bound(BOTH)
    talk.say(*(request_pdu(b"%d" % n, call_id=n) for n in (5, 3, 4)))
    five, three, four = talk.calls
    assert talk.respond(four, b"4") == ["response 4 call 4"]
    assert talk.respond(five, b"5") == ["response 5 call 5"]
    assert talk.respond(three, b"3") == ["response 3 call 3"]


def test_two_calls_of_one_id_are_two_calls() -> None:
    talk = Talk(respond=later).bound(BOTH)
    talk.say(request_pdu(b"same"), request_pdu(b"same"))
    one, two = talk.calls
    assert one != two
    assert talk.respond(two, b"two") == ["response two call 7"]
    assert talk.respond(one, b"one") == ["response one call 7"]


@pytest.mark.parametrize("flags", [FIRST_LAST, BOTH])
def test_no_more_calls_are_taken_than_allowed(flags: int) -> None:
    talk = Talk(make_endpoint(max_calls=3), respond=later).bound(flags)
    sent = [request_pdu(b"%d" % n, call_id=n) for n in range(10)]
    assert talk.server.wants_data
    assert talk.say(b"".join(sent)) == []
    assert not talk.server.wants_data
    assert talk.server.stalled
    assert len(talk.calls) == (3 if flags == BOTH else 1)
    for number in range(10):
        call = talk.calls[number]
        assert call.id == number
        assert talk.respond(call, call.stub) == [f"response {number} call {number}"]
        open_calls = len(talk.calls) - number - 1
        assert open_calls <= 3
    assert talk.server.wants_data
    assert not talk.server.stalled


def test_a_client_that_waits_for_its_turn_is_not_timed_out() -> None:
    limits = RpcLimits(max_calls=1)
    talk = Talk(make_endpoint(max_calls=1), respond=later).bound()
    talk.say(request_pdu(call_id=1), request_pdu(call_id=2), request_pdu()[:20])
    assert talk.server.stalled
    assert talk.server.next_timer() is None
    talk.now = 10_000.0
    assert talk.respond(talk.calls[0], b"one") == ["response one call 1"]
    assert talk.server.next_timer() is None  # the second call runs, the third is partly there
    assert talk.respond(talk.calls[1], b"two") == ["response two call 2"]
    talk.take(talk.server.receive(b"", talk.now))
    assert talk.server.next_timer() == 10_000.0 + limits.pdu_timeout_s


def test_a_connection_that_ends_leaves_no_pdu_for_later() -> None:
    """A driver goes on as long as something is left: it would never stop."""
    talk = Talk(make_endpoint(max_calls=1), respond=later).bound()
    talk.say(request_pdu(call_id=1), request_pdu(call_id=2))
    assert talk.server.stalled
    talk.server.too_much()
    assert talk.server.respond(talk.calls[0], b"one", 0.0) == []
    assert talk.server.wants_data
    assert not talk.server.stalled


# --- cancelling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [18, 19], ids=["co_cancel", "orphaned"])
def test_a_cancelled_call_is_told_and_goes_on(kind: int) -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu())
    (call,) = talk.calls
    assert not call.cancelled
    assert talk.say(bare_pdu(kind)) == []
    assert call.cancelled
    assert talk.events[-1] == CallCancelled(call)
    assert talk.respond(call, b"done") == ["response done call 7"]


def test_a_call_that_waits_is_not_cancelled() -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu(call_id=1), request_pdu(call_id=2), bare_pdu(18, call_id=2))
    assert [type(event) for event in talk.events] == [CallReceived]


def test_a_call_may_end_with_the_fault_cancel() -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu(), bare_pdu(18))
    talk.take(talk.server.fault(talk.calls[0], FaultStatus.CANCEL, 0.0))
    assert talk.say() == ["fault cancel context 0 call 7"]


def test_a_fault_says_whether_the_call_was_executed() -> None:
    talk = Talk(respond=later).bound(BOTH)
    talk.say(request_pdu(), request_pdu())
    talk.take(talk.server.fault(talk.calls[0], 0xC00E0006, 0.0, executed=False))
    assert talk.say() == ["fault+ 0xc00e0006 context 0 call 7"]


def test_when_the_client_is_gone_answers_go_nowhere() -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu(call_id=1), request_pdu(call_id=2))
    (call,) = talk.calls
    talk.server.connection_lost()
    assert call.orphaned
    assert talk.server.respond(call, b"late", 0.0) == []
    assert talk.server.data_to_send() == b""
    assert len(talk.calls) == 1


def test_after_a_mistake_no_call_starts() -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu(call_id=1), request_pdu(call_id=2), bare_pdu(99))
    assert talk.respond(talk.calls[0], b"late") == ["closed"]
    assert len(talk.calls) == 1


def test_shutdown_is_a_wish() -> None:
    talk = Talk().bound()
    talk.server.shut_down()
    assert talk.say() == ["Shutdown"]
    assert talk.say(request_pdu()) == ["response STUB call 7"]
    talk.server.connection_lost()
    talk.server.shut_down()
    assert talk.server.data_to_send() == b""


# --- callbacks ------------------------------------------------------------------------------------


def answer_pdu(stub: bytes, call_id: int = 7, flags: int = FIRST_LAST) -> bytes:
    return encode_pdu(Response(0, stub), call_id=call_id, flags=flags)


def fault_pdu(status: int, call_id: int = 7) -> bytes:
    return encode_pdu(Fault(0, status), call_id=call_id, flags=FIRST_LAST)


def in_callback(flags: int = FIRST_LAST, **limits: int) -> tuple[Talk, Call]:
    talk = Talk(make_endpoint(None, **limits), respond=later).bound(flags)
    talk.say(request_pdu())
    (call,) = talk.calls
    talk.server.callback(call, 2, b"question")
    (pdu,) = talk.pdus()
    assert isinstance(pdu.body, Request)
    assert (pdu.header.call_id, pdu.body) == (7, Request(0, 2, b"question", alloc_hint=8))
    return talk, call


def test_a_callback_and_its_answer() -> None:
    talk, call = in_callback()
    assert talk.say(answer_pdu(b"answer")) == []
    assert talk.events[-1] == CallbackReturned(call, b"answer", False)
    assert talk.respond(call, b"done") == ["response done call 7"]
    assert talk.endpoint.statistics.calls_out == 1


def test_an_answer_in_fragments() -> None:
    talk, call = in_callback()
    flags = [FIRST, 0, LAST]
    talk.say(*(answer_pdu(b"ab", flags=f) for f in flags))
    assert talk.events[-1] == CallbackReturned(call, b"ababab", False)


def test_a_callback_is_cut_and_an_answer_bounded() -> None:
    talk, call = in_callback(max_stub=10_000)
    talk.say(answer_pdu(b""))
    talk.server.callback(call, 0, bytes(20_000))
    assert len(talk.pdus()) == 4
    part = answer_pdu(bytes(5000), flags=0)
    assert talk.say(answer_pdu(bytes(5000), flags=FIRST), part) == []
    assert talk.say(answer_pdu(b"x", flags=LAST)) == [
        "fault access_denied context 0 call 7",
        "closed",
    ]


def test_a_callback_answered_by_a_fault() -> None:
    talk, call = in_callback()
    assert talk.say(fault_pdu(0xC00E0006)) == []
    assert CallbackFaulted(call, 0xC00E0006) in talk.events
    talk.server.callback(call, 2, b"again")
    assert len(talk.pdus(answer_pdu(b"yes"))) == 1
    assert talk.events[-1] == CallbackReturned(call, b"yes", False)


@pytest.mark.parametrize("pdu", [answer_pdu(b"x"), fault_pdu(5), answer_pdu(b"x", call_id=8)])
def test_an_answer_to_no_callback(pdu: bytes) -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu())
    call_id = decode_pdu(pdu).header.call_id
    assert talk.say(pdu) == [f"fault+ proto_error context 0 call {call_id}", "closed"]


def test_a_second_answer() -> None:
    talk, _ = in_callback()
    assert talk.say(answer_pdu(b"x"), answer_pdu(b"x"))[-1] == "closed"


def test_one_callback_at_a_time_and_only_from_a_call_that_runs() -> None:
    talk, call = in_callback()
    with pytest.raises(ValueError, match="one callback"):
        talk.server.callback(call, 2, b"")
    talk.say(answer_pdu(b""))
    talk.respond(call, b"")
    with pytest.raises(ValueError, match="runs"):
        talk.server.callback(call, 2, b"")


@pytest.mark.parametrize("flags", [FIRST_LAST, BOTH])
def test_calls_and_callbacks_nest_to_a_limit(flags: int) -> None:
    """The client answers each callback with another call first; all have one call_id."""
    talk, outermost = in_callback(flags, max_callback_depth=3)
    for depth in (2, 3):
        talk.say(request_pdu(b"deeper"))
        assert len(talk.calls) == depth
        talk.server.callback(talk.calls[-1], 2, b"question")
        assert len(talk.pdus()) == 1
    talk.say(request_pdu(b"deepest"))
    innermost = talk.calls[-1]
    with pytest.raises(RpcFault, match="nest deeper than 3"):
        talk.server.callback(innermost, 2, b"question")
    assert talk.respond(innermost, b"4") == ["response 4 call 7"]
    for call in reversed(talk.calls[:-1]):
        assert talk.say(answer_pdu(b"answer")) == []
        assert talk.events[-1] == CallbackReturned(call, b"answer", False)
        assert talk.respond(call, b"up") == ["response up call 7"]
    assert talk.calls[0] is outermost


def test_without_multiplexing_another_call_waits_for_the_callback() -> None:
    talk, call = in_callback()
    assert talk.say(request_pdu(call_id=8)) == []
    assert talk.calls == [call]
    talk.say(answer_pdu(b"answer"))
    talk.respond(call, b"")
    assert [c.id for c in talk.calls] == [7, 8]


def test_the_answer_to_a_callback_is_read_even_if_no_more_calls_are() -> None:
    talk, call = in_callback(max_calls=1)
    assert talk.server.wants_data
    assert talk.say(request_pdu(call_id=8)) == ["fault+ server_too_busy context 0 call 8"]
    talk.say(answer_pdu(b"answer"))
    assert talk.events[-1] == CallbackReturned(call, b"answer", False)
    assert not talk.server.wants_data


def test_a_call_of_the_same_id_is_nested_only_once() -> None:
    talk, _call = in_callback(max_calls=1)
    assert talk.say(request_pdu(b"nested")) == []
    assert len(talk.calls) == 2
    assert talk.say(request_pdu(b"not")) == ["fault+ server_too_busy context 0 call 7"]


def test_callbacks_are_protected_like_their_call() -> None:
    talk = Talk(make_endpoint(SharedSecret()), respond=later)
    channel = authenticated(talk, AuthLevel.PRIVACY)
    talk.say(*signed(channel, Request(0, 1, b"stub")))
    (call,) = talk.calls
    talk.server.callback(call, 2, b"question")
    (pdu,) = talk.pdus()
    assert channel.unprotect(pdu, sign_header=False) == b"question"
    talk.say(*signed(channel, Response(0, b"answer")))
    assert talk.events[-1] == CallbackReturned(call, b"answer", False)
    talk.server.callback(call, 2, b"question")
    talk.pdus()
    assert talk.say(answer_pdu(b"unsigned")) == ["fault access_denied context 0 call 7", "closed"]


def test_a_forged_answer_to_a_callback() -> None:
    talk = Talk(make_endpoint(SharedSecret()), respond=later)
    channel = authenticated(talk, AuthLevel.INTEGRITY)
    talk.say(*signed(channel, Request(0, 1, b"stub")))
    talk.server.callback(talk.calls[0], 2, b"question")
    talk.pdus()
    forged = bytearray(signed(channel, Response(0, b"answer"))[0])
    forged[24] ^= 1
    assert talk.say(bytes(forged)) == ["fault sec_pkg_error context 0 call 7", "closed"]


# --- time -----------------------------------------------------------------------------------------

LIMITS = RpcLimits()


def ends_at(talk: Talk, deadline: float) -> None:
    assert talk.server.next_timer() == deadline
    talk.server.handle_timer(deadline - 0.01)
    assert not talk.server.closing
    talk.server.handle_timer(deadline)
    assert talk.server.closing
    assert talk.server.next_timer() is None
    assert talk.endpoint.statistics.refused == 1


def test_a_client_that_never_binds() -> None:
    talk = Talk()
    talk.now = 20.0
    talk.say(bind_pdu()[:30])
    ends_at(talk, LIMITS.bind_timeout_s)


def test_a_client_that_never_ends_its_authentication() -> None:
    talk = Talk(make_endpoint(SharedSecret()))
    talk.now = 10.0
    talk.say(bind_pdu(auth=AuthTrailer(10, 5, 1, b"hello x")))
    ends_at(talk, LIMITS.bind_timeout_s)


def test_a_later_authentication_has_a_time_of_its_own() -> None:
    talk = Talk(make_endpoint(SharedSecret())).bound()
    talk.now = 100.0
    talk.say(alter_pdu(auth=AuthTrailer(10, 5, 1, b"hello x")))
    ends_at(talk, 100.0 + LIMITS.bind_timeout_s)


def test_a_slow_pdu() -> None:
    talk = Talk().bound()
    talk.now = 100.0
    for byte in request_pdu()[:-1]:
        talk.now += 0.1
        talk.say(bytes([byte]))
    ends_at(talk, 100.1 + LIMITS.pdu_timeout_s)


def test_a_stream_of_pdus_is_not_one_slow_pdu() -> None:
    """Each piece ends in the middle of a PDU, for longer than one PDU may take."""
    talk = Talk().bound()
    stream = request_pdu() * 100
    size = len(request_pdu())
    talk.say(stream[: size // 2])
    for number in range(99):
        talk.now += 1.0
        at = size // 2 + number * size
        assert talk.say(stream[at : at + size]) == ["response STUB call 7"]
        assert talk.server.next_timer() == talk.now + LIMITS.pdu_timeout_s


def test_a_call_that_is_never_finished() -> None:
    talk = Talk().bound()
    talk.now = 50.0
    talk.say(request_pdu(flags=FIRST))
    for second in range(51, 105):
        talk.now = float(second)
        talk.say(request_pdu(b"", flags=0))
    ends_at(talk, 50.0 + LIMITS.call_timeout_s)


def test_an_idle_connection() -> None:
    talk = Talk().bound()
    talk.now = 7.0
    talk.say(request_pdu())
    ends_at(talk, 7.0 + LIMITS.idle_timeout_s)


def test_a_running_call_has_all_the_time_it_wants() -> None:
    talk = Talk(respond=later).bound()
    talk.say(request_pdu())
    assert talk.server.next_timer() is None
    talk.server.handle_timer(1e9)
    assert not talk.server.closing
    talk.now = 5000.0
    talk.respond(talk.calls[0], b"")
    assert talk.server.next_timer() == 5000.0 + LIMITS.idle_timeout_s


def test_statistics() -> None:
    talk = Talk().bound()
    talk.say(request_pdu(), request_pdu(opnum=9), request_pdu())
    counted = talk.endpoint.statistics
    assert (counted.calls_in, counted.calls_out) == (2, 0)
    assert (counted.packets_in, counted.packets_out) == (4, 4)
    assert (counted.faults, counted.refused) == (1, 0)


@pytest.mark.req("SEC-7-04")
def test_what_a_client_holds_is_counted() -> None:
    talk = Talk(respond=later).bound()
    assert talk.server.held == 0
    talk.say(request_pdu(b"one", call_id=7))  # runs, and its stub is there until it is decoded
    talk.say(request_pdu(b"four", call_id=8))  # waits for the first
    assert talk.server.held == 7
    talk.say(request_pdu(b"begun", call_id=9, flags=FIRST))
    talk.say(request_pdu(b"half of another", call_id=9, flags=0)[:10])
    assert talk.server.held == 7 + 5  # the PDU that arrives counts as part of the connection
    (event,) = talk.events[:1]
    assert isinstance(event, CallReceived)
    event.call.stub = b""
    assert talk.server.held == 4 + 5


@pytest.mark.req("SEC-7-04")
def test_a_client_that_holds_too_much_is_told_which_call_it_was() -> None:
    talk = Talk().bound()
    talk.say(request_pdu(b"begun", call_id=9, flags=FIRST))
    talk.server.too_much()
    assert talk.say() == ["fault+ server_too_busy context 0 call 9", "closed"]
    talk.server.too_much()
    assert talk.say() == ["closed"]
    silent = Talk().bound()
    silent.server.too_much()
    assert silent.say() == ["closed"]


@pytest.mark.req("SEC-7-05")
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY])
def test_a_connection_is_a_strangers_until_somebody_logs_on(level: AuthLevel) -> None:
    """A logon below the minimum level gives nobody a name: it may be a relayed one."""
    talk = Talk(make_endpoint(SharedSecret(), min_level=AuthLevel.INTEGRITY))
    assert not has_name(talk.server.name)
    authenticated(talk, level)
    assert has_name(talk.server.name) is (level is AuthLevel.INTEGRITY)


def test_nobody_is_a_stranger_although_ntlm_lets_nobody_log_on() -> None:
    talk = Talk(make_endpoint(SharedSecret()))
    authenticated(talk, AuthLevel.INTEGRITY, name="")
    assert talk.server.name is None
    assert not has_name(talk.server.name)
