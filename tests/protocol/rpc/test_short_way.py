"""The short way of a call: what arrives in one piece has the same effects as what is reassembled.

A PDU that arrives in two pieces always goes the ordinary way, through ``decode_pdu``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.protocol.rpc import server_side as machine
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.negotiation import PresentationContext
from mqis.protocol.rpc.server_calls import Call, fragments, whole_answer
from mqis.testing.rpc import encode_verification, header_command
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.pdu import STUB_OFFSET
from mqis.wire.rpc.pdu_bodies import Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.rpc.verification import Verification
from tests.protocol.rpc.talk import (
    ECHO,
    LAST,
    SIGN,
    Talk,
    alter_pdu,
    authenticated,
    bare_pdu,
    make_endpoint,
    overpadded,
    request_pdu,
    signed,
)

TYPES = (AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS)
LEVELS = (AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY)
PROTECTED = LEVELS[1:]
RIGHT = encode_verification(Verification(True, ECHO.syntax, NDR20, header_command(7, 0, 1)))
WRONG = encode_verification(Verification(True, ECHO.syntax, NDR20, header_command(8, 0, 1)))
MANGLED = RIGHT[:-3]


class Session(NamedTuple):
    """A client's connection to a server, and the client's end of its security context."""

    talk: Talk
    channel: Channel
    sign_header: bool

    def signed(self, stub: bytes = b"stub", *, context_id: int = 0, opnum: int = 1) -> bytes:
        request = Request(context_id, opnum, stub)
        return b"".join(signed(self.channel, request, sign_header=self.sign_header))


def session(auth_type: int, level: int, flags: int = FIRST_LAST, **options: Any) -> Session:
    """Every session of one kind has the same keys."""
    respond = options.pop("respond", None)
    talk = Talk(make_endpoint(SharedSecret(), **options), respond=respond)
    channel = authenticated(talk, level, auth_type, flags=flags)
    return Session(talk, channel, bool(flags & SIGN))


def effects(talk: Talk, received: bytes) -> tuple[Any, ...]:
    """Everything that a client, a service or an operator can notice."""
    calls = [
        (call.id, call.opnum, call.context.id, call.stub, talk.server.identity(call))
        for call in talk.calls
    ]
    events = [type(event).__name__ for event in talk.events]
    server = talk.server
    state = (server.closing, server.held, server.wants_data, server.next_timer())
    return received, calls, events, state, asdict(talk.endpoint.statistics)


def sent_in_pieces(talk: Talk, pdus: list[bytes], pieces: int) -> bytes:
    received = b""
    for pdu in pdus:
        talk.now += 1
        cut = 0 if pieces == 1 else max(1, len(pdu) // 2)
        for piece in (pdu[:cut], pdu[cut:]):
            if piece:
                received += b"".join(answer.data for answer in talk.pdus(piece))
    return received


def sent_alone(talk: Talk, pdus: list[bytes]) -> bytes:
    """As a driver does that answers each call alone where it can."""
    received = b""
    for pdu in pdus:
        talk.now += 1
        call = talk.server.at_once(pdu, talk.now)
        if call is None:
            received += b"".join(answer.data for answer in talk.pdus(pdu))
            continue
        talk.events.append(machine.CallReceived(call))
        answer = talk.respond_to(call)
        if answer is None:
            talk.server.begin(call)
            continue
        alone = talk.server.answer_alone(call, answer, talk.now)
        if alone is None:
            talk.server.begin(call)
            talk.take(talk.server.respond(call, answer, talk.now))
        received += talk.server.data_to_send() if alone is None else alone
    return received


# --- all ways, with anything that a client may send -----------------------------------------------


Making = Callable[[Session], bytes]


def flipped(data: bytes, at: int, bit: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def with_auth_length(data: bytes, length: int) -> bytes:
    return data[:10] + length.to_bytes(2, "little") + data[12:]


stubs = st.sampled_from(
    [b"", b"a", b"sixteen bytes 16", b"x" * 40, b"y" * 8 + RIGHT, b"y" * 8 + WRONG, MANGLED]
)
requests: st.SearchStrategy[Making] = st.one_of(
    st.builds(lambda stub: lambda s: s.signed(stub), stubs),
    st.builds(lambda stub: lambda s: request_pdu(stub), stubs),
    st.builds(
        lambda context, opnum: lambda s: s.signed(context_id=context, opnum=opnum),
        st.integers(0, 1),
        st.sampled_from([0, 3, 4, 9]),
    ),
    st.builds(
        lambda auth: lambda s: request_pdu(bytes(16), auth=auth),
        st.builds(
            AuthTrailer,
            st.sampled_from([9, 10, 16]),
            st.integers(1, 7),
            st.sampled_from([5, 6]),
            st.sampled_from([bytes(16), b"\x01" + bytes(15), bytes(15), bytes(2000)]),
            st.integers(0, 20),
        ),
    ),
)
damages: st.SearchStrategy[Callable[[bytes], bytes]] = st.one_of(
    st.just(lambda data: data),
    st.builds(
        lambda at, bit: lambda data: flipped(data, at, bit), st.integers(0, 200), st.integers(0, 7)
    ),
    st.builds(
        lambda length: lambda data: with_auth_length(data, length),
        st.sampled_from([0, 1, 15, 17, 40, 0x8000, 0xFFFF]),
    ),
    st.builds(lambda pad: lambda data: overpadded(data, pad), st.integers(0, 255)),
    st.builds(lambda count: lambda data: data * count, st.integers(2, 3)),  # a replay
)
others: st.SearchStrategy[Making] = st.sampled_from(
    [
        lambda s: alter_pdu(),
        lambda s: alter_pdu(auth=AuthTrailer(10, 5, 6, b"hello x")),
        lambda s: bare_pdu(18),
        lambda s: request_pdu(b"first", flags=PfcFlags.FIRST),
        lambda s: request_pdu(b"last", flags=LAST),
        lambda s: s.signed(b"left out") and s.signed(b"comes too early"),
    ]
)


@given(
    st.sampled_from(TYPES),
    st.sampled_from(LEVELS),
    st.booleans(),
    st.lists(st.one_of(st.tuples(requests, damages), others), min_size=1, max_size=5),
    st.sampled_from([{}, {"max_calls": 2, "respond": lambda _call: None}, {"min_level": 6}]),
)
def test_all_ways_have_the_same_effects(
    auth_type: int, level: int, headers: bool, script: list[Any], options: dict[str, Any]
) -> None:
    def effects_of(send: Callable[[Talk, list[bytes]], bytes]) -> tuple[Any, ...]:
        flags = FIRST_LAST | (SIGN if headers else 0)
        client = session(auth_type, level, flags, **options)
        pdus = []
        for step in script:
            make, damage = step if isinstance(step, tuple) else (step, lambda data: data)
            pdus.append(damage(make(client)))
        return effects(client.talk, send(client.talk, pdus))

    ordinary = effects_of(partial(sent_in_pieces, pieces=2))
    assert effects_of(partial(sent_in_pieces, pieces=1)) == ordinary
    assert effects_of(sent_alone) == ordinary


def test_an_answer_that_cannot_be_signed_is_left_to_the_ordinary_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which ends the connection: the context was spoiled while the call ran."""
    client = session(AuthType.NTLM, AuthLevel.INTEGRITY)
    server = client.talk.server
    call = server.at_once(client.signed(), 1.0)
    assert call is not None

    def spoiled(*_arguments: object, **_options: object) -> bytes:
        raise AuthenticationError("spoiled")

    monkeypatch.setattr(Channel, "protect", spoiled)
    assert server.answer_alone(call, b"answer", 2.0) is None
    server.begin(call)
    assert server.respond(call, b"answer", 2.0) == []
    assert server.closing


# --- the short way is taken, and only then --------------------------------------------------------


def refuse_to_decode(*_arguments: object) -> None:
    raise AssertionError("this call should have taken the short way")


@pytest.mark.parametrize("auth_type", TYPES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_whole_call_is_not_decoded_piece_by_piece(
    auth_type: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = session(auth_type, level)
    monkeypatch.setattr(machine, "decode_pdu", refuse_to_decode)
    monkeypatch.setattr(machine, "fragments", refuse_to_decode)
    server = client.talk.server
    for number in range(3):
        [event] = server.receive(client.signed(b"%d" % number), 1.0)
        assert isinstance(event, machine.CallReceived)
        assert event.call.stub == b"%d" % number
        assert server.respond(event.call, b"answer", 2.0) == []
        assert server.data_to_send()


@pytest.mark.parametrize("auth_type", TYPES)
@pytest.mark.parametrize("level", PROTECTED)
@pytest.mark.parametrize("part", ["header", "stub", "trailer", "token"])
def test_a_forged_call_never_runs_and_ends_the_connection(
    auth_type: int, level: int, part: str
) -> None:
    client = session(auth_type, level, FIRST_LAST | SIGN)
    data = client.signed(b"sixteen bytes 16")
    at = {"header": 12, "stub": STUB_OFFSET, "trailer": STUB_OFFSET + 16 + 3, "token": -1}[part]
    changed = bytearray(data)
    changed[at] ^= 1
    said = client.talk.say(bytes(changed))
    call_id = changed[12]
    assert said == [f"fault sec_pkg_error context 0 call {call_id}", "closed"]
    assert client.talk.calls == []
    assert client.talk.endpoint.statistics.calls_in == 0


@pytest.mark.parametrize("level", PROTECTED)
def test_a_forged_call_that_comes_alone_is_refused_the_same(level: int) -> None:
    def refused(send: Callable[[Talk, list[bytes]], bytes]) -> tuple[Any, ...]:
        client = session(AuthType.NTLM, level)
        data = client.signed()
        return effects(client.talk, send(client.talk, [data[:-1] + bytes([data[-1] ^ 1])]))

    assert refused(sent_alone) == refused(partial(sent_in_pieces, pieces=2))


@pytest.mark.parametrize("level", PROTECTED)
def test_a_replayed_call_runs_once(level: int) -> None:
    client = session(AuthType.NTLM, level)
    data = client.signed()
    assert len(client.talk.pdus(data)) == 1
    assert client.talk.say(data) == ["fault sec_pkg_error context 0 call 7", "closed"]
    assert len(client.talk.calls) == 1


@pytest.mark.parametrize("level", PROTECTED)
def test_calls_in_another_order_are_refused(level: int) -> None:
    client = session(AuthType.NTLM, level)
    _first, second = client.signed(), client.signed()
    assert client.talk.say(second) == ["fault sec_pkg_error context 0 call 7", "closed"]
    assert client.talk.calls == []


@pytest.mark.parametrize("level", PROTECTED)
def test_a_wrong_verification_trailer_is_denied(level: int) -> None:
    client = session(AuthType.NTLM, level, FIRST_LAST | SIGN)
    assert client.talk.pdus(client.signed(b"y" * 8 + RIGHT))
    assert client.talk.calls[-1].stub == b"y" * 8
    said = client.talk.say(client.signed(b"y" * 8 + WRONG))
    assert said == ["fault access_denied context 0 call 7", "closed"]


@pytest.mark.parametrize("level", PROTECTED)
@pytest.mark.parametrize("min_level", PROTECTED)
def test_an_identity_counts_only_from_the_minimum_level_on(level: int, min_level: int) -> None:
    client = session(AuthType.NTLM, level, min_level=min_level)
    client.talk.pdus(client.signed())
    identity = client.talk.server.identity(client.talk.calls[-1])
    assert (identity is not None) is (level >= min_level)


def test_an_unsigned_call_beside_a_signed_context_is_nobodys() -> None:
    client = session(AuthType.NTLM, AuthLevel.INTEGRITY)
    assert client.talk.say(request_pdu(b"a")) == ["response A call 7"]
    assert client.talk.server.identity(client.talk.calls[-1]) is None


def test_an_unsigned_call_after_a_failed_logon_is_denied() -> None:
    client = session(AuthType.NTLM, AuthLevel.CONNECT)
    assert client.talk.say(request_pdu(b"a")) == ["response A call 7"]
    client.talk.server._binding.security.spoiled = True
    assert client.talk.say(request_pdu(b"a")) == ["fault access_denied context 0 call 7", "closed"]


def test_an_unsigned_call_between_two_legs_is_refused() -> None:
    client = session(AuthType.NTLM, AuthLevel.CONNECT)
    client.talk.pdus(alter_pdu(auth=AuthTrailer(10, 5, 6, b"hello x")))
    said = client.talk.say(request_pdu(b"a"))
    assert said == ["fault+ proto_error context 0 call 7", "closed"]


@pytest.mark.parametrize("token", [b"", b"\x01" + bytes(15), b"anything"])
def test_a_call_that_names_its_connect_level_context(token: bytes) -> None:
    """Nothing protects it, so nothing is verified; its padding is removed."""
    client = session(AuthType.NTLM, AuthLevel.CONNECT)
    auth = AuthTrailer(10, AuthLevel.CONNECT, 5, token or b"\0", 12)
    assert client.talk.say(request_pdu(b"abcd", auth=auth)) == ["response ABCD call 7"]


@pytest.mark.parametrize(
    ("field", "value"), [("type", 16), ("level", 6), ("level", 2), ("context_id", 6)]
)
def test_a_trailer_of_another_context(field: str, value: int) -> None:
    client = session(AuthType.NTLM, AuthLevel.INTEGRITY)
    trailer = {"type": 10, "level": 5, "context_id": 5, "token": bytes(16), field: value}
    said = client.talk.say(request_pdu(bytes(16), auth=AuthTrailer(**trailer)))  # type: ignore[arg-type]
    assert said == ["fault access_denied context 0 call 7", "closed"]
    assert client.talk.calls == []


# --- answers --------------------------------------------------------------------------------------


@given(st.sampled_from([None, *LEVELS]), st.integers(0, 200), st.integers(80, 220), st.booleans())
def test_a_whole_answer_is_the_only_fragment(
    level: int | None, size: int, max_frag: int, headers: bool
) -> None:
    """Both are equal wherever one fragment is enough, and there is no whole answer elsewhere."""
    stub, context = bytes(range(size)), PresentationContext(0, ECHO, NDR20)

    def channel() -> Channel | None:
        if level is None:
            return None
        return session(AuthType.NTLM, level).channel

    call = Call(7, context, 1, None, False, channel())
    whole = whole_answer(call, stub, max_frag, sign_header=headers)
    pieces = list(
        fragments(
            Response(0, stub),
            call_id=7,
            max_frag=max_frag,
            channel=channel(),
            sign_header=headers,
        )
    )
    assert (whole is not None) is (len(pieces) == 1)
    if whole is not None:
        assert whole == pieces[0]


@pytest.mark.parametrize("size", [10, 20_000])
def test_an_answer_of_a_spoiled_context_ends_the_connection(size: int) -> None:
    """A forged PDU of another call can spoil the context while a call runs."""
    client = session(AuthType.NTLM, AuthLevel.PRIVACY, respond=lambda _call: None)
    client.talk.pdus(client.signed())
    [call] = client.talk.calls
    assert call.channel is not None
    call.channel.context = Spoiled()  # type: ignore[assignment]
    assert client.talk.respond(call, bytes(size)) == ["closed"]


class Spoiled:
    def signature_size(self, _level: int) -> int:
        return 16

    def protect(self, *_arguments: object) -> None:
        raise AuthenticationError("the context is not usable")
