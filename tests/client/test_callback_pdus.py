"""Callbacks on the wire (MS-RPCE 3.3.1.5.9), heard between a client and a directory server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqis.client import DirectoryClient
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.testing.security import SharedSecret
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_bodies import AlterContext, Auth3, Bind, Fault, Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from tests.client.peers import HOST, OK, Line, Scripted, connected, demo_store, run, served
from tests.client.providers import Bulky
from tests.client.tap import Heard, Tap


def heard_during(tap: Tap, opnum: int) -> list[Heard]:
    """From the last fragment of a call to the first of its answer, both included."""
    request = next(h for h, body in tap.of(Request) if h.from_client and body.opnum == opnum)
    same = [h for h in tap.heard if h.call_id == request.call_id]
    last_asked = max(i for i, h in enumerate(same) if h.from_client and _is(h, Request))
    answered = next(i for i, h in enumerate(same) if not h.from_client and _is(h, Response))
    first, last = tap.heard.index(same[last_asked]), tap.heard.index(same[answered])
    return tap.heard[first : last + 1]


def _is(heard: Heard, kind: type) -> bool:
    return type(heard.body) is kind


async def validated(
    gss: Any = None, credentials: Credentials | None = None, authenticator: Any = None
) -> Tap:
    store = await asyncio.to_thread(demo_store)
    gss = gss or SharedSecret()
    async with (
        served(store, gss=gss, authenticator=authenticator) as server,
        Tap(server.port) as tap,
        connected(tap.address, gss=gss, credentials=credentials) as client,
    ):
        await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="ams-app1\\orders")
    return tap


@pytest.mark.req("MQDS-3.2.4-06", "MQDS-3.2.4-07", "MQDS-3.2.4-11")
def test_a_request_from_the_server_and_a_response_from_the_client() -> None:
    """On the same connection, under the call's id and context, with no bind in between."""
    tap = run(validated())
    outer, *callbacks, answer = heard_during(tap, dscomm.VALIDATE_SERVER.opnum)
    assert [(h.from_client, type(h.body)) for h in callbacks] == [
        (False, Request),
        (True, Response),
    ] * 2  # two legs, after each of which the client goes on reading
    assert {h.call_id for h in callbacks} == {outer.call_id} == {answer.call_id}
    assert {h.body.context_id for h in callbacks} == {outer.body.context_id}
    assert [h.body.opnum for h in callbacks if _is(h, Request)] == [2, 2]
    assert len(tap.of(Bind)) == 1
    assert not tap.of(AlterContext)


@pytest.mark.req("MQDS-3.2.4-08")
def test_no_callback_comes_before_the_call_or_after_its_answer() -> None:
    tap = run(validated())
    during = heard_during(tap, dscomm.VALIDATE_SERVER.opnum)
    from_server = [h for h, _ in tap.of(Request) if not h.from_client]
    assert from_server
    assert all(h in during for h in from_server)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.req("MQDS-3.2.4-08")
def test_a_server_cannot_call_back_once_it_has_answered(waits: bool) -> None:
    """Neither in a call that it answered at once, nor in one that took its time."""

    async def main() -> None:
        kept: list[IncomingCall] = []

        def at_once(call: IncomingCall, _request: object) -> dscomm.DirectoryResult:
            kept.append(call)
            return dscomm.DirectoryResult(OK)

        async def later(call: IncomingCall, request: object) -> dscomm.DirectoryResult:
            await asyncio.sleep(0.001)
            return at_once(call, request)

        line: Line = later if waits else at_once
        async with (
            Scripted({dscomm.DELETE_OBJECT: line}) as peer,
            Tap(peer.port) as tap,
            connected(tap.address) as client,
        ):
            await client.delete(ObjectType.QUEUE, path="c14\\q")
            with pytest.raises(ValueError, match="runs"):
                await kept[0].call_back(2, b"")
            await client.delete(ObjectType.QUEUE, path="c14\\r")
        assert not [h for h, _ in tap.of(Request) if not h.from_client]

    run(main())


@pytest.mark.parametrize("call_id", [0, 1, 2, 999])
@pytest.mark.req("MQDS-3.2.4-09")
def test_a_callback_that_no_call_waits_for_is_not_served(call_id: int) -> None:
    """The connection ends, and nothing was signed."""

    async def main() -> None:
        def never(_digest: bytes) -> bytes:
            raise AssertionError("nobody may ask")

        async with Scripted() as peer, Tap(peer.port) as tap:
            client = await DirectoryClient.connect([tap.address], signer=never)
            stub = bytes(64)
            tap.say_to_client(encode_pdu(Request(0, 2, stub), call_id=call_id, flags=FIRST_LAST))
            while client.usable:
                await asyncio.sleep(0.005)
            assert not [h for h in tap.heard if h.from_client and _is(h, Response)]
            await client.close()

    run(main())


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
@pytest.mark.req("MQDS-3.2.4-10")
def test_callbacks_are_protected_as_their_call_is(level: AuthLevel) -> None:
    """The provider numbers what each side sends, so a number out of turn would not verify."""
    secret = SharedSecret(b"outer")
    credentials = Credentials(secret, AuthType.NTLM, level, HOST)
    tap = run(validated(SharedSecret(b"inner"), credentials, secret))
    outer, *callbacks, _answer = heard_during(tap, dscomm.VALIDATE_SERVER.opnum)
    assert len(callbacks) == 4
    trailers = [h.pdu.auth for h in (outer, *callbacks)]
    assert all(trailer is not None and trailer.token for trailer in trailers)
    kinds = {(t.type, t.level, t.context_id) for t in trailers if t is not None}
    assert kinds == {(AuthType.NTLM, level, 1)}
    assert len(tap.of(Auth3)) == 1


@pytest.mark.req("MQDS-3.2.4-12")
def test_large_tokens_go_in_fragments() -> None:
    tap = run(validated(Bulky(60_000)))
    during = heard_during(tap, dscomm.VALIDATE_SERVER.opnum)[1:-1]
    for from_client, kind in ((False, Request), (True, Response)):
        pdus = [h for h in during if h.from_client is from_client and _is(h, kind)]
        flags = [h.pdu.header.flags & FIRST_LAST for h in pdus]
        assert flags.count(PfcFlags.FIRST) == flags.count(PfcFlags.LAST) >= 1
        assert flags.count(0) > 5
        assert sum(len(h.body.stub) for h in pdus) > 60_000
    assert not tap.of(Fault)
