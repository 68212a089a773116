"""Clients that do not answer a callback, and stubs in a form that does not exist."""

from __future__ import annotations

import asyncio

import pytest

from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.guid import Guid
from mqis.wire.rpc import mgmt
from mqis.wire.rpc.interfaces import NDR64, SyntaxId
from mqis.wire.rpc.pdu import decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import Bind, ContextElement, Fault, Request
from mqis.wire.rpc.pdu_header import FIRST_LAST
from tests.waiting import DEADLINE_S, in_time

ASKING = SyntaxId(Guid.parse("5f2ad2f4-0001-4b1f-9d55-6c7c1b1f0a01"), 1)


class Asking:
    """Calls back before it answers, and tells how that went."""

    interface = Interface("asking", ASKING, 1)

    async def dispatch(self, incoming: IncomingCall) -> bytes:
        try:
            await incoming.call_back(0, b"")
        except RpcConnectionError:
            return b"gave up"
        return b"answered"


def test_a_callback_that_is_never_answered_does_not_hold_its_call_for_ever() -> None:
    async def never(_context: AgreedContext, _opnum: int, _stub: bytes, _big: bool) -> bytes:
        await asyncio.sleep(3600)
        return b""

    async def run() -> bytes:
        limits = RpcLimits(call_timeout_s=0.2)
        async with RpcServer([Asking()], SystemEntropy(), limits=limits) as server:
            port = await server.listen("127.0.0.1")
            async with await RpcClient.connect(
                "127.0.0.1", port, [ASKING], callbacks=never
            ) as client:
                return (await client.call(ASKING, 0, b"", timeout_s=DEADLINE_S)).stub

    assert asyncio.run(run()) == b"gave up"


def test_ndr64_is_never_big_endian(caplog: pytest.LogCaptureFixture) -> None:
    """Such a call is a fault, and no reason to fill a log."""

    async def run() -> Fault:
        server = RpcServer([ManagementService(lambda: server.endpoint)], SystemEntropy())
        async with server:
            port = await server.listen("127.0.0.1")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            element = ContextElement(0, mgmt.SYNTAX, (NDR64,))
            bind = Bind(5840, 5840, 0, (element,))
            writer.write(encode_pdu(bind, call_id=1, flags=FIRST_LAST))
            await _pdu(reader)
            asked = Request(0, mgmt.IS_SERVER_LISTENING.opnum, b"")
            data = bytearray(encode_pdu(asked, call_id=2, flags=FIRST_LAST))
            data[4] = 0x00  # drep: big-endian, and so are the integers of the header
            data[8:10], data[12:16] = data[8:10][::-1], data[12:16][::-1]
            data[22:24] = data[22:24][::-1]
            writer.write(bytes(data))
            answer = decode_pdu(await _pdu(reader)).body
            writer.close()
            assert isinstance(answer, Fault)
            return answer

    assert asyncio.run(run()).status == FaultStatus.PROTO_ERROR
    assert not caplog.records


async def _pdu(reader: asyncio.StreamReader) -> bytes:
    head = await in_time(reader.readexactly(16))
    return head + await reader.readexactly(int.from_bytes(head[8:10], "little") - 16)
