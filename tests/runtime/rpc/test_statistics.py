"""Statistics of calls."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.histogram import TIMED_EVERY, Served
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService, invoke
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ndr import U32, Parameters
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from tests.runtime.rpc.desk import COUNT, DESK, FAIL, HOST, WAIT, Desk, Number


def by_name(served: Served) -> dict[str, tuple[int, int]]:
    """Calls, and how many of them were timed."""
    counted = enumerate(served.operations)
    return {served.name_of(n): (c.calls, c.seconds.count) for n, c in counted if c.calls}


def test_all_calls_are_counted_and_those_that_wait_are_timed() -> None:
    async def run() -> RpcServer:
        server = RpcServer([Desk()], SystemEntropy())
        async with server:
            port = await server.listen(HOST)
            async with await RpcClient.connect(HOST, port, [DESK.syntax]) as client:
                for _ in range(2 * TIMED_EVERY + 1):
                    await invoke(client, DESK, COUNT, Number(1))
                for _ in range(3):
                    await invoke(client, DESK, WAIT, Number(20))
                for way in (0, 1, 10, 11):  # at once and later, meant and not
                    with suppress(RpcFault):
                        await invoke(client, DESK, FAIL, Number(way))
        return server

    server = asyncio.run(run())
    (served,) = server.statistics()
    assert by_name(served) == {"count": (17, 2), "wait": (3, 3), "fail": (4, 2)}
    waited = served.operations[WAIT.opnum].seconds
    assert waited.total >= 0.06
    assert dict(waited.buckets())[0.01] == 0
    assert server.accepted == 1
    statuses = server.endpoint.statistics.fault_statuses
    assert statuses == {0: 2, FaultStatus.UNSPEC: 2}, "a status without a name, and a failure"


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    n: int


@dataclass(frozen=True, slots=True)
class Told:
    result: int


_ASKED, _TOLD = Parameters(Asked, n=U32), Parameters(Told, result=U32)
NOW: Operation[Asked, Told] = Operation(0, "now", _ASKED, _TOLD)
LATER: Operation[Asked, Told] = Operation(1, "later", _ASKED, _TOLD)
ORACLE = InterfaceDescription(
    "oracle",
    SyntaxId(Guid.parse("dddddddd-0000-0000-0000-000000000002"), 1),
    (NOW, LATER),
    opnums=2,
)


async def _later(_call: object, request: Asked) -> Told:
    return Told(request.n)


def test_answers_that_tell_of_errors() -> None:
    service = TypedService(ORACLE, {NOW: lambda _c, request: Told(request.n), LATER: _later})

    async def run() -> None:
        async with RpcServer([service], SystemEntropy()) as server:
            port = await server.listen(HOST)
            async with await RpcClient.connect(HOST, port, [ORACLE.syntax]) as client:
                information = 0x400E0001
                for result in (0, information, HResult.MQ_ERROR, HResult.MQ_ERROR, 0x89ABCDEF):
                    await invoke(client, ORACLE, NOW, Asked(result))
                await invoke(client, ORACLE, LATER, Asked(HResult.MQ_ERROR_ACCESS_DENIED))

    asyncio.run(run())
    assert service.failures == {
        NOW.opnum: {HResult.MQ_ERROR: 2, 0: 1},
        LATER.opnum: {HResult.MQ_ERROR_ACCESS_DENIED: 1},
    }
    assert service.operation_names == {0: "now", 1: "later"}
