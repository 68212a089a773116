"""tshark reads a session from set-up to teardown, both directions: nothing is malformed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.pdu_header import PacketType
from tests.interop.rpc_pcap import Conversation, Recorder, recorded
from tests.interop.test_rpc_tshark import Capture
from tests.runtime.oletx.endpoints import ALPHA, BETA, TYPE, echo
from tests.waiting import in_time, until

pytestmark = pytest.mark.interop

BODY = bytes(range(256)) * 100


def recorded_session(first: int) -> Recorder:
    """Both endpoints reach each other through proxies."""

    async def scene() -> list[Conversation]:
        resolver = FixedResolver()
        async with (
            OleTxEndpoint(ALPHA, resolver=resolver) as a,
            OleTxEndpoint(BETA, resolver=resolver) as b,
            recorded("127.0.0.1", a.port) as to_a,
            recorded("127.0.0.1", b.port) as to_b,
        ):
            resolver.add(ALPHA.cid, "127.0.0.1", to_a.port)
            resolver.add(BETA.cid, "127.0.0.1", to_b.port)
            both = (a, b)
            both[1 - first].accept(TYPE, echo)
            async with await both[first].connect(both[1 - first].name, TYPE) as connection:
                await connection.send(1, BODY)
                await connection.receive()
            await a.close()
            await until(lambda: not b.transport.machine.sessions)
        return [*to_a.conversations, *to_b.conversations]

    conversations = asyncio.run(in_time(scene()))
    for number, conversation in enumerate(conversations):
        conversation.client_port = 40_000 + number
    return Recorder(0, conversations)


@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
def test_a_whole_session(tmp_path: Path, first: int) -> None:
    seen = Capture(tmp_path / "session.pcap", recorded_session(first))

    assert seen.complaints() == []
    uuids = {Guid.parse(uuid) for uuid in seen.field("dcerpc.cn_bind_to_uuid")}
    assert uuids == {idl.SYNTAX.uuid}
    assert {Guid.parse(uuid) for uuid in seen.field("dcerpc.cn_ack_trans_id")} == {NDR20.uuid}
    called = set(seen.numbers("dcerpc.opnum", PacketType.REQUEST))
    expected = {idl.BUILD_CONTEXT_W.opnum, idl.NEGOTIATE_RESOURCES.opnum}
    expected |= {idl.SEND_RECEIVE.opnum, idl.TEAR_DOWN_CONTEXT.opnum}
    assert called == expected | ({idl.POKE_W.opnum} if first else set())
    assert seen.field("dcerpc.cn_status") == []  # no faults
