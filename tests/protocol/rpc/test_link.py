"""Client and server machines joined without a socket."""

from __future__ import annotations

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
    Faulted,
)
from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.server_calls import Call
from mqis.protocol.rpc.server_side import CallbackReturned
from mqis.testing.rpc import MachinePair
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests.protocol.rpc.talk import ECHO, OTHER, STRICT, UNKNOWN, make_endpoint


def upper(call: Call) -> bytes:
    return call.stub.upper()


def bound(link: MachinePair, *interfaces: SyntaxId, **bind: object) -> tuple[AgreedContext, ...]:
    link.client.bind(interfaces or [ECHO.syntax], **bind)  # type: ignore[arg-type]
    (event,) = link.run()
    assert isinstance(event, Bound)
    return event.contexts


@pytest.mark.parametrize("transfers", [(NDR20,), (NDR64,), (NDR20, NDR64), (NDR64, NDR20)])
def test_transfer_syntaxes(transfers: tuple[SyntaxId, ...]) -> None:
    link = MachinePair(make_endpoint(), upper)
    echo, strict = bound(link, ECHO.syntax, STRICT.syntax, transfers=(*transfers, NDR20))[:2]
    assert echo.transfer == (NDR64 if NDR64 in transfers else NDR20)
    assert strict.transfer == NDR20
    for context in (echo, strict):
        call = link.client.request(context, 1, b"stub")
        assert link.run() == [CallReturned(call, b"STUB", False)]
    seen = [event.call.context.transfer for event in link.server_events]
    assert seen == [echo.transfer, NDR20]


def test_an_interface_that_the_server_does_not_have() -> None:
    link = MachinePair(make_endpoint(), upper)
    assert bound(link, UNKNOWN) == ()
    link.client.alter([OTHER.syntax], [NDR20])
    (event,) = link.run()
    assert isinstance(event, Bound)
    call = link.client.request(
        event.contexts[0], 1, b"stub", Guid.parse("11111111-2222-3333-4444-555555555555")
    )
    assert link.run() == [CallReturned(call, b"STUB", False)]


@given(
    st.sampled_from([None, AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS]),
    st.sampled_from([AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]),
    st.lists(st.binary(max_size=7000), min_size=1, max_size=4),
    st.sampled_from([1, 7, 100, 65536]),
    st.sampled_from([2048, 4280, 5840]),
)
def test_calls_in_every_combination(
    auth_type: AuthType | None, level: AuthLevel, stubs: list[bytes], chunk: int, frag: int
) -> None:
    link = MachinePair(
        make_endpoint(SharedSecret()), upper, chunk=chunk, client=ClientConnection(max_frag=frag)
    )
    channel = None
    if auth_type is not None:
        initiator = SharedSecret(name="me").initiator(auth_type, level, "host/server")
        channel = Channel(3, auth_type, level, initiator)
    (context,) = bound(link, channel=channel)
    calls = [link.client.request(context, 1, stub) for stub in stubs]
    events = link.run()
    assert events == [CallReturned(c, s.upper(), False) for c, s in zip(calls, stubs, strict=True)]
    for event in link.server_events:
        identity = link.server.identity(event.call)
        assert (None if identity is None else identity.name) == (None if channel is None else "me")


@pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS])
def test_the_wrong_secret(auth_type: AuthType) -> None:
    link = MachinePair(make_endpoint(SharedSecret(b"right")), upper)
    initiator = SharedSecret(b"wrong").initiator(auth_type, AuthLevel.INTEGRITY, "host/server")
    link.client.bind([ECHO.syntax], channel=Channel(1, auth_type, AuthLevel.INTEGRITY, initiator))
    events = link.run()
    if auth_type == AuthType.NTLM:  # auth3 has no answer; the first call gets it
        (event,) = events
        assert isinstance(event, Bound)
        call = link.client.request(event.contexts[0], 1, b"stub")
        assert link.run() == [Faulted(call, FaultStatus.ACCESS_DENIED, True)]
    else:
        assert link.client.closed is not None
    assert link.server.closing
    assert link.server_events == []


def test_callbacks_both_ways() -> None:
    asked: list[bytes] = []

    def ask_back(call: Call) -> None:
        link.server.callback(call, 2, b"who " + call.stub)

    def tell(opnum: int, stub: bytes) -> bytes:
        asked.append(stub)
        return b"%d" % opnum + bytes(10_000)

    link = MachinePair(make_endpoint(), ask_back, callbacks=tell)
    (context,) = bound(link)
    call = link.client.request(context, 1, b"are you")
    assert [type(event) for event in link.run()] == [CalledBack]
    returned = link.server_events[-1]
    assert isinstance(returned, CallbackReturned)
    assert (asked, len(returned.stub)) == ([b"who are you"], 10_001)
    link.answer(returned.call, b"done")
    assert link.run() == [CallReturned(call, b"done", False)]


def test_pipelined_calls_beyond_the_limit_are_all_answered() -> None:
    link = MachinePair(make_endpoint(max_calls=4), upper)
    (context,) = bound(link)
    calls = [link.client.request(context, 1, b"%d" % n) for n in range(50)]
    assert link.run() == [CallReturned(c, b"%d" % n, False) for n, c in enumerate(calls)]


def test_two_connections_share_a_group() -> None:
    endpoint = make_endpoint()
    one, two = MachinePair(endpoint, upper), MachinePair(endpoint, upper)
    bound(one)
    bound(two, group_id=one.client.group_id)
    assert one.server.group is two.server.group
    stranger = MachinePair(endpoint, upper, peer="stranger")
    stranger.client.bind([ECHO.syntax], group_id=one.client.group_id)
    assert stranger.run() == []
    assert stranger.client.closed is not None


def test_a_call_that_is_given_up() -> None:
    link = MachinePair(make_endpoint(), lambda _call: None)
    (context,) = bound(link)
    call = link.client.request(context, 1, b"slow")
    link.run()
    link.client.orphan(call)
    link.run()
    running = link.server_events[0].call
    assert running.cancelled
    link.answer(running, b"late")
    assert link.run() == []
    assert link.client.closed is None
    again = link.client.request(context, 1, b"next")
    link.run()
    link.fault(link.server_events[-1].call, 5)
    assert link.run() == [Faulted(again, 5, True)]


@pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS])
def test_an_orphan_s_answer_is_dropped_but_its_signature_counts(auth_type: AuthType) -> None:
    link = MachinePair(make_endpoint(SharedSecret()), lambda _call: None)
    initiator = SharedSecret().initiator(auth_type, AuthLevel.PRIVACY, "host/server")
    (context,) = bound(link, channel=Channel(1, auth_type, AuthLevel.PRIVACY, initiator))
    orphan = link.client.request(context, 1, b"slow")
    asking = link.client.request(context, 1, b"asks back")
    last = link.client.request(context, 1, b"next")
    link.run()
    calls = [event.call for event in link.server_events]
    link.client.orphan(orphan)
    link.client.orphan(asking)
    link.run()
    link.answer(calls[0], bytes(10_000))
    link.server.callback(calls[1], 1, bytes(10_000))
    link.run()
    link.fault(calls[1], 5)
    link.answer(calls[2], b"answer")
    assert link.run() == [CallReturned(last, b"answer", False)]
