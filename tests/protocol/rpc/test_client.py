"""The client machine against bytes written by hand: what it sends, takes, and does not take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import (
    AgreedContext,
    Bound,
    CalledBack,
    CallReturned,
    ClientConnection,
    Event,
    Faulted,
    ShutdownAsked,
)
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.interfaces import NDR20, NDR64
from mqis.wire.rpc.pdu import Body, encode_pdu
from mqis.wire.rpc.pdu_bodies import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    CoCancel,
    ContextResult,
    Fault,
    NakReason,
    Orphaned,
    Request,
    Response,
    Shutdown,
)
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.rpc.talk import ECHO, FIRST, LAST, MPX, OTHER, SIGN, bare_pdu, split

ACCEPTED = ContextResult(0, 0, NDR20)
REJECTED = ContextResult(2, 2)


def pdu(
    body: Body, call_id: int, flags: int = FIRST_LAST, auth: AuthTrailer | None = None
) -> bytes:
    return encode_pdu(body, call_id=call_id, flags=flags, auth=auth)


def ack(*results: ContextResult, flags: int = FIRST_LAST | MPX, frag: int = 5840) -> bytes:
    return pdu(BindAck(frag, frag, 77, "135", results or (ACCEPTED,)), 1, flags)


def bound(
    flags: int = FIRST_LAST | MPX, frag: int = 5840
) -> tuple[ClientConnection, AgreedContext]:
    client = ClientConnection()
    client.bind([ECHO.syntax], transfers=[NDR20])
    client.data_to_send()
    (event,) = client.receive(ack(flags=flags, frag=frag))
    assert isinstance(event, Bound)
    return client, event.contexts[0]


def calling(count: int = 1, flags: int = FIRST_LAST | MPX) -> tuple[ClientConnection, list[int]]:
    client, context = bound(flags)
    calls = [client.request(context, 1, b"stub") for _ in range(count)]
    client.data_to_send()
    return client, calls


def why_closed(client: ClientConnection) -> str:
    assert client.closed is not None
    return str(client.closed)


# --- binding --------------------------------------------------------------------------------------


def test_a_bind_proposes_an_element_for_each_interface_and_syntax() -> None:
    client = ClientConnection()
    client.bind([ECHO.syntax, OTHER.syntax], group_id=5)
    (sent,) = split(client.data_to_send())
    assert isinstance(sent.body, Bind)
    assert sent.header.flags == FIRST_LAST | MPX
    assert (sent.body.max_xmit_frag, sent.body.assoc_group_id) == (5840, 5)
    proposed = [(e.context_id, e.abstract, e.transfers) for e in sent.body.contexts]
    assert proposed == [
        (0, ECHO.syntax, (NDR20,)),
        (1, ECHO.syntax, (NDR64,)),
        (2, OTHER.syntax, (NDR20,)),
        (3, OTHER.syntax, (NDR64,)),
    ]
    results = (REJECTED, ContextResult(0, 0, NDR64), ContextResult(2, 1), ContextResult(2, 1))
    assert client.receive(ack(*results)) == [Bound((AgreedContext(1, ECHO.syntax, NDR64),))]
    assert (client.group_id, client.multiplexed) == (77, True)


def test_an_alter_adds_contexts() -> None:
    client, _ = bound()
    client.alter([OTHER.syntax], [NDR64])
    (sent,) = split(client.data_to_send())
    assert isinstance(sent.body, AlterContext)
    assert [e.context_id for e in sent.body.contexts] == [1]
    with pytest.raises(ValueError, match="not answered"):
        client.alter([OTHER.syntax], [NDR20])
    resp = AlterContextResp(5840, 5840, 77, "", (ContextResult(0, 0, NDR64),))
    assert client.receive(pdu(resp, sent.header.call_id)) == [
        Bound((AgreedContext(1, OTHER.syntax, NDR64),))
    ]


@pytest.mark.parametrize("reason", [*NakReason, 99])
def test_a_refused_bind(reason: int) -> None:
    client = ClientConnection()
    client.bind([ECHO.syntax])
    assert client.receive(pdu(BindNak(reason), 1)) == []
    words = f"reason {reason}" if reason == 99 else NakReason(reason).name.lower().replace("_", " ")
    assert why_closed(client) == f"the server refused the bind: {words}"
    with pytest.raises(RpcConnectionError, match="refused the bind"):
        client.request(AgreedContext(0, ECHO.syntax, NDR20), 0, b"")


def test_a_fault_in_place_of_an_ack() -> None:
    client = ClientConnection()
    client.bind([ECHO.syntax])
    client.receive(pdu(Fault(0, FaultStatus.ACCESS_DENIED), 1))
    assert "refused the bind" in why_closed(client)
    assert "access_denied" in why_closed(client)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (pdu(BindAck(5840, 5840, 1, "", (ACCEPTED,)), 9), "that was not sent"),
        (pdu(AlterContextResp(5840, 5840, 1, "", (ACCEPTED,)), 1), "that was not sent"),
        (ack(ACCEPTED, ACCEPTED), "another number of contexts"),
        (pdu(BindAck(5840, 5840, 1, "", ()), 1), "another number of contexts"),
    ],
    ids=["call_id", "type", "too many", "none"],
)
def test_acks_that_do_not_fit(answer: bytes, why: str) -> None:
    client = ClientConnection()
    client.bind([ECHO.syntax], transfers=[NDR20])
    assert client.receive(answer) == []
    assert why in why_closed(client)


@pytest.mark.parametrize("call_id", [0, 1, 2])
@pytest.mark.parametrize("kind", [BindAck, AlterContextResp])
def test_an_ack_out_of_the_blue(kind: type[BindAck], call_id: int) -> None:
    client, _ = bound()
    assert client.receive(pdu(kind(5840, 5840, 666, "", (ACCEPTED,)), call_id)) == []
    assert "not sent" in why_closed(client)
    assert client.group_id == 77


def authenticating(
    auth_type: int, level: int = AuthLevel.INTEGRITY
) -> tuple[ClientConnection, Channel]:
    client = ClientConnection()
    context = SharedSecret().initiator(auth_type, level, "host/server")
    channel = Channel(1, auth_type, level, context)
    client.bind([ECHO.syntax], transfers=[NDR20], channel=channel)
    return client, channel


def test_ntlm_ends_with_auth3_and_goes_on_at_once() -> None:
    client, channel = authenticating(AuthType.NTLM)
    (bind,) = split(client.data_to_send())
    assert bind.header.flags & SIGN
    assert bind.auth == AuthTrailer(AuthType.NTLM, 5, 1, b"hello somebody")
    body = BindAck(5840, 5840, 77, "135", (ACCEPTED,))
    events = client.receive(pdu(body, 1, FIRST_LAST | SIGN, channel.trailer(0, b"challenge 1")))
    assert [type(event) for event in events] == [Bound]
    (auth3,) = split(client.data_to_send())
    assert isinstance(auth3.body, Auth3)
    assert auth3.header.call_id == 1


def test_the_server_does_not_go_on_with_authentication() -> None:
    client, _ = authenticating(AuthType.NTLM)
    client.receive(ack())
    assert "did not go on" in why_closed(client)


def test_the_server_does_not_prove_itself() -> None:
    client, channel = authenticating(AuthType.KERBEROS)
    body = BindAck(5840, 5840, 77, "135", (ACCEPTED,))
    client.receive(pdu(body, 1, auth=channel.trailer(0, b"no proof")))
    assert "did not authenticate itself" in why_closed(client)


def test_nothing_is_left_to_authenticate_for() -> None:
    client, channel = authenticating(AuthType.SPNEGO)
    body = BindAck(5840, 5840, 77, "135", (REJECTED,))
    client.receive(pdu(body, 1, auth=channel.trailer(0, b"challenge 1")))
    assert "accepted no context" in why_closed(client)


def test_headers_are_signed_only_if_asked_for() -> None:
    client, _ = authenticating(AuthType.KERBEROS, AuthLevel.CONNECT)
    (bind,) = split(client.data_to_send())
    assert not bind.header.flags & SIGN


# --- calls ----------------------------------------------------------------------------------------


def test_a_call_and_its_answer() -> None:
    client, context = bound()
    call = client.request(context, 3, b"stub")
    (sent,) = split(client.data_to_send())
    assert (sent.header.call_id, sent.header.flags) == (call, FIRST_LAST)
    assert sent.body == Request(0, 3, b"stub", alloc_hint=4)
    assert client.receive(pdu(Response(0, b"answer"), call)) == [
        CallReturned(call, b"answer", False)
    ]


def test_an_answer_in_fragments() -> None:
    client, (call,) = calling()
    parts = [pdu(Response(0, b"ab"), call, flags) for flags in (FIRST, 0, LAST)]
    assert client.receive(b"".join(parts)) == [CallReturned(call, b"ababab", False)]


def test_requests_keep_to_the_size_that_the_server_takes() -> None:
    client, context = bound(frag=2048)
    client.request(context, 1, bytes(5000))
    assert [len(p.data) for p in split(client.data_to_send())] == [2048, 2048, 976]


@pytest.mark.parametrize(("flags", "executed"), [(0, True), (PfcFlags.DID_NOT_EXECUTE, False)])
def test_a_fault(flags: int, executed: bool) -> None:
    client, (call,) = calling()
    events = client.receive(pdu(Fault(0, 0xC00E0006), call, FIRST_LAST | flags))
    assert events == [Faulted(call, 0xC00E0006, executed)]
    assert client.closed is None


def test_answers_in_any_order() -> None:
    client, calls = calling(3)
    answers = [pdu(Response(0, b"%d" % n), n) for n in reversed(calls)]
    assert client.receive(b"".join(answers)) == [
        CallReturned(n, b"%d" % n, False) for n in reversed(calls)
    ]


def test_without_multiplexing_a_call_is_sent_after_the_answer_to_the_last() -> None:
    client, context = bound(FIRST_LAST)
    first, second, third = (client.request(context, n, b"") for n in (1, 2, 3))
    assert [p.header.call_id for p in split(client.data_to_send())] == [first]
    assert client.receive(pdu(Response(0, b""), first)) == [CallReturned(first, b"", False)]
    assert [p.header.call_id for p in split(client.data_to_send())] == [second]
    client.receive(pdu(Fault(0, 5), second))
    assert [p.header.call_id for p in split(client.data_to_send())] == [third]


def test_a_call_that_was_not_sent_is_given_up_without_a_word() -> None:
    client, context = bound(FIRST_LAST)
    first, second = (client.request(context, n, b"") for n in (1, 2))
    client.data_to_send()
    client.orphan(second)
    assert client.data_to_send() == b""
    client.receive(pdu(Response(0, b""), first))
    assert client.data_to_send() == b""


@pytest.mark.parametrize("body", [Response(0, b"late"), Fault(0, 5)])
def test_the_answer_to_an_orphan_is_dropped_once(body: Body) -> None:
    client, (call, other) = calling(2)
    client.orphan(call)
    client.orphan(call)
    assert [p.body for p in split(client.data_to_send())] == [Orphaned()]
    assert client.receive(pdu(body, call)) == []
    assert client.closed is None
    assert client.receive(pdu(Response(0, b""), other)) == [CallReturned(other, b"", False)]
    assert client.receive(pdu(body, call)) == []
    assert "was not made" in why_closed(client)


def test_shutdown() -> None:
    client, (call,) = calling()
    assert client.receive(pdu(Shutdown(), 0)) == [ShutdownAsked()]
    assert client.receive(pdu(Response(0, b""), call)) == [CallReturned(call, b"", False)]


# --- callbacks ------------------------------------------------------------------------------------


def test_a_callback_and_both_answers() -> None:
    client, (call,) = calling()
    assert client.receive(pdu(Request(0, 2, b"question"), call)) == [
        CalledBack(call, 2, b"question", False)
    ]
    client.answer_callback(call, b"answer")
    client.receive(pdu(Request(0, 2, b"again"), call))
    client.fault_callback(call, 0xC00E0006)
    answer, fault = split(client.data_to_send())
    assert (answer.header.call_id, answer.body) == (call, Response(0, b"answer", 6))
    assert (fault.header.call_id, fault.body) == (call, Fault(0, 0xC00E0006))
    assert client.receive(pdu(Response(0, b"done"), call)) == [CallReturned(call, b"done", False)]


def test_a_callback_in_fragments() -> None:
    client, (call,) = calling()
    parts = [pdu(Request(0, 2, b"ab"), call, flags) for flags in (FIRST, 0, LAST)]
    assert client.receive(b"".join(parts)) == [CalledBack(call, 2, b"ababab", False)]


def test_a_callback_of_an_orphan_is_refused() -> None:
    client, (call,) = calling()
    client.receive(pdu(Request(0, 2, b""), call))
    client.orphan(call)
    client.answer_callback(call, b"too late")
    client.fault_callback(call, 5)
    assert [type(p.body) for p in split(client.data_to_send())] == [Orphaned]
    client.receive(pdu(Request(0, 2, b""), call))
    assert [p.body for p in split(client.data_to_send())] == [Fault(0, FaultStatus.CANCEL)]


def test_a_callback_is_answered_once() -> None:
    client, (call,) = calling()
    with pytest.raises(ValueError, match="not called back"):
        client.answer_callback(call, b"")


# --- servers that break the protocol --------------------------------------------------------------

Breach = tuple[str, Callable[[int], bytes], str]
BREACHES: list[Breach] = [
    ("answer to no call", lambda call: pdu(Response(0, b""), call + 1), "answered call 3, which"),
    ("fault to no call", lambda call: pdu(Fault(0, 5), call + 1), "faulted call 3, which"),
    ("answer to the bind", lambda _: pdu(Response(0, b""), 1), "answered call 1, which"),
    ("callback outside", lambda call: pdu(Request(0, 0, b""), call + 1), "outside of a call"),
    (
        "callback in a callback",
        lambda call: pdu(Request(0, 0, b""), call) * 2,
        "before its last callback was answered",
    ),
    (
        "callback without its start",
        lambda call: pdu(Request(0, 0, b""), call, LAST),
        "without its first fragment",
    ),
    ("bind", lambda _: pdu(Bind(5840, 5840, 0, ()), 1), "a bind, which only clients do"),
    ("alter", lambda _: pdu(AlterContext(1, 1, 0, ()), 1), "alter_context, which only clients"),
    ("auth3", lambda _: pdu(Auth3(), 1), "auth3, which only clients do"),
    ("co_cancel", lambda call: pdu(CoCancel(), call), "co_cancel, which only clients do"),
    ("orphaned", lambda call: pdu(Orphaned(), call), "orphaned, which only clients do"),
    ("unknown type", lambda _: bare_pdu(99, bytes(16)), "packet type 99"),
    ("datagram type", lambda _: bare_pdu(1, bytes(16)), "packet type 1"),
    ("oversized", lambda _: bare_pdu(2, bytes(8), frag_length=5841), "a PDU of 5841 bytes"),
    ("undersized", lambda _: bare_pdu(2, bytes(8), frag_length=15), "a PDU of 15 bytes"),
    ("cut", lambda _: bare_pdu(2, bytes(7)), "broke the protocol"),
    ("token beyond", lambda _: bare_pdu(2, bytes(8), auth_length=9), "broke the protocol"),
    ("a web server", lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "a PDU of"),
]


@pytest.mark.parametrize(("breach", "why"), [b[1:] for b in BREACHES], ids=[b[0] for b in BREACHES])
def test_a_breach_ends_the_association(breach: Callable[[int], bytes], why: str) -> None:
    client, (call,) = calling()
    client.receive(breach(call))
    assert why in why_closed(client)
    assert client.receive(pdu(Response(0, b""), call)) == []
    with pytest.raises(RpcConnectionError):
        client.request(AgreedContext(0, ECHO.syntax, NDR20), 0, b"")
    with pytest.raises(RpcConnectionError):
        client.alter([ECHO.syntax], [NDR20])


def test_what_came_before_a_breach_is_told() -> None:
    client, (call,) = calling()
    events = client.receive(pdu(Response(0, b"answer"), call) + bare_pdu(99))
    assert events == [CallReturned(call, b"answer", False)]
    assert client.closed is not None


def test_an_answer_before_its_call() -> None:
    client, context = bound(FIRST_LAST)
    client.request(context, 1, b"")
    second = client.request(context, 1, b"")
    client.receive(pdu(Response(0, b""), second))
    assert "before it was sent" in why_closed(client)


@pytest.mark.parametrize("kind", [Response, Request])
def test_more_than_the_client_takes(kind: type[Response] | type[Request]) -> None:
    client = ClientConnection(max_stub=100)
    client.bind([ECHO.syntax], transfers=[NDR20])
    client.receive(ack())
    call = client.request(AgreedContext(0, ECHO.syntax, NDR20), 1, b"")
    body = Response(0, bytes(60)) if kind is Response else Request(0, 1, bytes(60))
    assert client.receive(pdu(body, call, FIRST)) == []
    assert client.closed is None
    client.receive(pdu(body, call, 0))
    assert "more than 100 bytes" in why_closed(client)


def test_unsigned_and_forged_answers() -> None:
    for tamper in (False, True):
        client, channel = authenticating(AuthType.NTLM)
        body = BindAck(5840, 5840, 77, "135", (ACCEPTED,))
        client.receive(pdu(body, 1, auth=channel.trailer(0, b"challenge 1")))
        call = client.request(AgreedContext(0, ECHO.syntax, NDR20), 1, b"")
        auth = channel.trailer(0, bytes(16)) if tamper else None
        client.receive(pdu(Response(0, bytes(16)), call, auth=auth))
        assert "broke the protocol" in why_closed(client)


SCRIPT = [
    ack(),
    pdu(Response(0, b"one"), 2),
    pdu(Response(0, b"two"), 3, FIRST),
    pdu(Response(0, b"more"), 3, LAST),
    pdu(Request(0, 1, b"back"), 4),
    pdu(Fault(0, 5), 4),
    pdu(Shutdown(), 0),
    pdu(Response(0, b"unknown"), 50),
    bare_pdu(99),
    b"\x05\0\x02\x03",
]


def heard(data: bytes, cuts: list[int]) -> tuple[list[Event], str]:
    client = ClientConnection()
    client.bind([ECHO.syntax], transfers=[NDR20])
    for _ in range(3):
        client.multiplexed = True
        client.request(AgreedContext(0, ECHO.syntax, NDR20), 1, b"")
    events: list[Event] = []
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        events += client.receive(data[start:end])
    return events, str(client.closed)


@given(st.lists(st.sampled_from(SCRIPT), max_size=8), st.lists(st.integers(0, 9999), max_size=10))
def test_how_bytes_are_cut_does_not_matter(script: list[bytes], cuts: list[int]) -> None:
    data = b"".join(script)
    assert heard(data, cuts) == heard(data, [])
    assert heard(data, list(range(len(data)))) == heard(data, [])
