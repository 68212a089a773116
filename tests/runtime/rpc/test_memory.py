"""Server memory held by connections: it is charged, refused beyond the limit, and given back."""

from __future__ import annotations

import asyncio

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.budget import Quota
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.budgets import Budgets
from mqis.runtime.rpc import server_connection as driver
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.runtime.rpc.typed import DECODED_AT_ONCE, invoke
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.pdu_header import PfcFlags
from tests.runtime.rpc.desk import (
    DESK,
    FILL,
    MEASURE,
    WAIT,
    Blob,
    Desk,
    Number,
    connected,
    serving,
)
from tests.runtime.rpc.desk import count as counted
from tests.runtime.rpc.test_hostile import bound, request
from tests.waiting import run, until

MB = 1 << 20


def bounded(connection: int, process: int) -> Budgets:
    budgets = Budgets()
    budgets.memory.quota = Quota(connection, process, process, process)
    return budgets


@pytest.mark.req("SEC-7-04")
def test_fragments_are_charged_until_their_client_is_gone() -> None:
    async def main() -> None:
        budgets = bounded(MB, 2 * MB)
        async with serving(budgets=budgets) as (_, port):
            raw = await bound(port)
            await raw.send(request(0, flags=PfcFlags.FIRST, stub=bytes(1000)))
            for _ in range(99):
                await raw.send(request(0, flags=0, stub=bytes(1000)))
            await until(lambda: budgets.memory.used == 100_000)
            await raw.close()
            await until(lambda: budgets.memory.used == 0)

    run(main())


@pytest.mark.req("SEC-7-04")
def test_a_connection_with_too_many_fragments_is_told_and_ended() -> None:
    async def main() -> None:
        budgets = bounded(MB // 2, MB)
        async with serving(budgets=budgets) as (server, port):
            raw = await bound(port)
            await raw.send(request(0, flags=PfcFlags.FIRST, stub=bytes(1000)))
            answer = asyncio.ensure_future(raw.rest())
            while not answer.done():
                raw.writer.write(request(0, flags=0, stub=bytes(1000)) * 10)
                await asyncio.sleep(0)
            status = int.from_bytes((await answer)[24:28], "little")
            assert status == FaultStatus.SERVER_TOO_BUSY
            await raw.close()
            await until(lambda: server.connections == 0)
            assert budgets.memory.used == 0

    run(main())


@pytest.mark.req("SEC-7-04")
def test_a_stub_is_dropped_when_it_is_decoded_and_its_request_is_charged() -> None:
    async def main() -> None:
        budgets, desk = bounded(MB, MB), Desk()
        async with serving(desk, budgets=budgets) as (_, port), await connected(port) as client:
            call = asyncio.ensure_future(invoke(client, DESK, WAIT, Number(900_000)))
            await until(lambda: desk.waiting is not None)
            assert desk.waiting is not None
            assert desk.waiting.call.stub == b""
            assert budgets.memory.used == driver.DECODED * 4
            desk.release.set()
            await call
            await until(lambda: budgets.memory.used == 0)

    run(main())


@pytest.mark.req("SEC-7-04")
def test_a_large_call_is_refused_where_there_is_no_room_for_what_it_becomes() -> None:
    async def main() -> None:
        budgets = bounded(MB, MB)
        async with serving(budgets=budgets) as (_, port), await connected(port) as client:
            with pytest.raises(RpcFault) as caught:
                await invoke(client, DESK, MEASURE, Blob(bytes(100_000)))
            assert caught.value.status == FaultStatus.SERVER_TOO_BUSY
            for size in (10_000, DECODED_AT_ONCE + 1):
                assert await invoke(client, DESK, MEASURE, Blob(bytes(size))) == Number(size)
            await until(lambda: budgets.memory.used == 0)

    run(main())


def test_what_a_thread_cannot_decode_is_a_fault_as_ever() -> None:
    async def main() -> None:
        async with serving() as (_, port), await connected(port) as client:
            stub = b"\xff" * (DECODED_AT_ONCE + 4)
            with pytest.raises(RpcFault) as caught:
                await client.call(DESK.syntax, MEASURE.opnum, stub)
            assert caught.value.status != FaultStatus.UNSPEC
            assert await counted(client) == 2

    run(main())


@pytest.mark.req("SEC-7-04")
def test_a_client_that_does_not_read_its_answers_is_ended_where_memory_is_short() -> None:
    async def main() -> None:
        budgets = bounded(60_000, 8 * MB)  # less than the transport holds before it blocks
        async with serving(budgets=budgets) as (server, port):
            raw = await bound(port)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await raw.send(request(FILL.opnum, 1_000_000) * 64)
            await until(lambda: server.connections == 0)
            assert budgets.memory.used == 0
            async with await connected(port) as other:
                assert await counted(other) == 2
            raw.abort()

    run(main())


def test_a_client_that_does_not_read_its_answers_is_not_read_either() -> None:
    """Else what it sends would fill the memory of the server instead of the network."""

    async def main() -> None:
        async with serving() as (server, port):
            raw = await bound(port)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            raw.writer.write(request(FILL.opnum, 1_000_000) * 64)
            raw.writer.write(request(FILL.opnum, 1) * 800_000)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(raw.writer.drain(), 2)
            assert server.connections == 1
            raw.abort()

    run(main())


@pytest.mark.req("SEC-7-05")
def test_who_logs_on_leaves_the_account_of_strangers() -> None:
    async def main() -> None:
        budgets = Budgets()
        budgets.memory.quota = Quota(MB, MB, 10, MB)
        provider = SharedSecret()
        credentials = Credentials(provider, AuthType.NTLM, AuthLevel.INTEGRITY, "host")
        async with serving(budgets=budgets, authenticator=provider) as (_, port):
            async with await connected(port) as stranger:
                with pytest.raises(RpcConnectionError):
                    await invoke(stranger, DESK, WAIT, Number(50))
            async with await connected(port, credentials=credentials) as known:
                assert await invoke(known, DESK, WAIT, Number(50)) == Number(50)

    run(main())
