"""Client and server on loopback sockets: calls, faults, callbacks, handles, time."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from mqis.client.servers import located
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient, RpcTimeoutError
from mqis.runtime.rpc.typed import invoke
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests.runtime.rpc.desk import (
    ASK,
    CLOSE,
    COUNT,
    DESK,
    FAIL,
    FILL,
    HOST,
    MEASURE,
    OPEN,
    WAIT,
    Blob,
    Desk,
    Number,
    Ticket,
    connected,
    count,
    refused,
    serving,
)
from tests.waiting import DEADLINE_S, run, until

#: Milliseconds that no test waits for.
LONG = Number(900_000)


@pytest.mark.parametrize("transfer", [NDR20, NDR64])
def test_typed_calls_in_both_syntaxes(transfer: SyntaxId) -> None:
    async def main() -> None:
        async with (
            serving() as (server, port),
            await connected(port, transfers=[transfer]) as client,
        ):
            assert client.transfer(DESK.syntax) == transfer
            assert await count(client, 41) == 42
            assert await invoke(client, DESK, WAIT, Number(1)) == Number(1)
            assert await invoke(client, DESK, FILL, Number(100_000)) == Blob(bytes(100_000))
            assert await invoke(client, DESK, MEASURE, Blob(bytes(100_000))) == Number(100_000)
            assert server.connections == 1

    run(main())


def test_on_uvloop_too() -> None:
    async def main() -> None:
        async with serving() as (_, port), await connected(port) as client:
            assert await count(client, 41) == 42
            assert await invoke(client, DESK, WAIT, Number(1)) == Number(1)
            assert await invoke(client, DESK, MEASURE, Blob(bytes(100_000))) == Number(100_000)

    uvloop.run(main())


@pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_authenticated_calls(auth_type: AuthType, level: AuthLevel) -> None:
    async def main() -> None:
        credentials = Credentials(SharedSecret(), auth_type, level, "host/server")
        async with (
            serving(authenticator=SharedSecret()) as (_, port),
            await connected(port, credentials=credentials) as client,
        ):
            assert await count(client) == 2
            assert await invoke(client, DESK, MEASURE, Blob(bytes(20_000))) == Number(20_000)

    run(main())


@pytest.mark.parametrize(
    "level", [None, AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]
)
def test_what_a_handler_knows_of_its_call(level: AuthLevel | None) -> None:
    async def main() -> None:
        desk, credentials = Desk(), None
        target = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
        if level is not None:
            credentials = Credentials(SharedSecret(name="me"), AuthType.SPNEGO, level, "host/x")
        async with (
            serving(desk, authenticator=SharedSecret()) as (_, port),
            await connected(port, credentials=credentials) as client,
        ):
            call = invoke(client, DESK, WAIT, LONG, target=target, timeout_s=None)
            task = asyncio.create_task(call)
            await until(lambda: desk.started == 1)
            known = desk.waiting
            assert known is not None
            assert (known.opnum, known.peer, known.target) == (WAIT.opnum, HOST, target)
            assert known.level == (level or AuthLevel.NONE)
            assert (known.identity is None) is (level is None or level < AuthLevel.INTEGRITY)
            assert known.identity is None or known.identity.name == "me"
            assert not known.call.cancelled
            task.cancel()
            await until(lambda: known.call.cancelled)

    run(main())


def test_the_wrong_secret() -> None:
    async def main() -> None:
        provider = SharedSecret(b"wrong")
        async with serving(authenticator=SharedSecret()) as (server, port):
            for kind in (AuthType.SPNEGO, AuthType.KERBEROS):
                with pytest.raises(RpcConnectionError, match=r"refused|prove"):
                    await connected(port, credentials=Credentials(provider, kind, 5, "host/x"))
            await until(lambda: server.connections == 0)

    run(main())


# --- how calls fail -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["at once", "later"])
def test_exceptions_become_faults(how: str, caplog: pytest.LogCaptureFixture) -> None:
    first = 0 if how == "at once" else 10

    async def main() -> None:
        async with serving() as (_, port), await connected(port) as client:
            await refused(0xC00E0006, invoke(client, DESK, FAIL, Number(first)))
            assert caplog.records == []
            await refused(FaultStatus.UNSPEC, invoke(client, DESK, FAIL, Number(first + 1)))
            assert await count(client) == 2

    with caplog.at_level(logging.WARNING, "mqis"):
        run(main())
    (record,) = caplog.records
    assert record.getMessage() == "operation 2 of desk failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


@pytest.mark.parametrize("how", ["at once", "later"])
def test_a_service_that_does_not_answer_with_bytes(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Desk):
        def dispatch(self, incoming: IncomingCall) -> Any:
            async def later() -> Any:
                return "text"

            if incoming.opnum == COUNT.opnum:
                return super().dispatch(incoming)
            return later() if how == "later" else None

    async def main() -> None:
        async with serving(Odd()) as (_, port), await connected(port) as client:
            await refused(FaultStatus.UNSPEC, invoke(client, DESK, WAIT, Number(0)))
            assert await count(client) == 2

    with caplog.at_level(logging.WARNING, "mqis"):
        run(main())
    assert [record.getMessage() for record in caplog.records] == ["operation 1 of desk failed"]


@pytest.mark.parametrize(
    ("opnum", "stub", "status"),
    [
        (0, b"", FaultStatus.BAD_STUB_DATA),
        (0, b"\1\0\0", FaultStatus.BAD_STUB_DATA),
        (0, struct.pack("<I", 1_000_001), FaultStatus.BAD_STUB_DATA),
        (8, b"", FaultStatus.OP_RNG_ERROR),
        (9, b"", FaultStatus.OP_RNG_ERROR),
        (0xFFFF, b"", FaultStatus.OP_RNG_ERROR),
    ],
)
def test_stubs_and_operations_that_are_none(opnum: int, stub: bytes, status: int) -> None:
    async def main() -> None:
        async with serving() as (_, port), await connected(port, transfers=[NDR20]) as client:
            await refused(status, client.call(DESK.syntax, opnum, stub))
            surplus = await client.call(DESK.syntax, 0, struct.pack("<II", 1, 99))
            assert surplus.stub == struct.pack("<I", 2)

    run(main())


def test_an_interface_that_is_not_offered() -> None:
    async def main() -> None:
        async with serving() as (server, port):
            with pytest.raises(RpcConnectionError, match="does not offer e1af8308"):
                await RpcClient.connect(HOST, port, [epmapper.SYNTAX])
            await until(lambda: server.connections == 0)

    run(main())


def test_interfaces_are_added_on_the_same_association() -> None:
    async def main() -> None:
        async with serving() as (server, port), await connected(port) as client:
            await asyncio.gather(
                client.add_interface(mgmt.SYNTAX), client.add_interface(DESK.syntax)
            )
            listening = await invoke(client, mgmt.MGMT, mgmt.IS_SERVER_LISTENING, mgmt.Nothing())
            assert listening == mgmt.Listening(0, 1)
            with pytest.raises(RpcConnectionError, match="does not offer"):
                await client.add_interface(epmapper.SYNTAX)
            assert await count(client) == 2
            assert server.connections == 1

    run(main())


def test_nobody_listens() -> None:
    async def main() -> None:
        async with serving() as (_, port):
            pass
        with pytest.raises(RpcConnectionError, match="cannot connect"):
            await connected(port)

    run(main())


@asynccontextmanager
async def saying(words: bytes) -> AsyncIterator[int]:
    """A server of something else."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await reader.read(-1)
        writer.close()

    async with await asyncio.start_server(greet, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.sleep(0.01)


def test_a_server_that_says_nothing() -> None:
    async def main() -> None:
        async with saying(b"") as port:
            with pytest.raises(RpcTimeoutError) as caught:
                await connected(port, timeout_s=0.1)
            text = f"no answer from {HOST}:{port} in 100 ms"
            assert located("ds1", caught.value) == str(caught.value) == text

    run(main())


def test_a_server_that_says_nonsense() -> None:
    async def main() -> None:
        async with saying(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
            with pytest.raises(RpcConnectionError, match="a PDU of"):
                await connected(port)

    run(main())


def test_a_server_that_begins_to_say_nonsense_is_left() -> None:
    async def main() -> None:
        async with serving() as (server, port):
            client = await connected(port)
            assert server.connections == 1
            client.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            with pytest.raises(RpcConnectionError, match="a PDU of"):
                await count(client)
            await until(lambda: server.connections == 0)

    run(main())


# --- time -----------------------------------------------------------------------------------------


def test_a_call_that_takes_too_long_is_given_up() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (_, port), await connected(port) as client:
            slow = invoke(client, DESK, WAIT, LONG, timeout_s=0.05)
            with pytest.raises(RpcTimeoutError, match="no answer to call 1"):
                await slow
            assert await count(client) == 2  # the association lives on
            desk.release.set()
            await until(lambda: desk.finished == 1)
            await asyncio.sleep(0.05)
            assert await count(client) == 2  # and the late answer did no harm

    run(main())


def test_a_caller_that_is_cancelled() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (_, port), await connected(port) as client:
            task = asyncio.create_task(invoke(client, DESK, WAIT, Number(100)))
            await until(lambda: desk.started == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await count(client) == 2

    run(main())


def test_calls_overlap() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (_, port), await connected(port) as client:
            slow = [asyncio.create_task(invoke(client, DESK, WAIT, LONG)) for _ in range(20)]
            await until(lambda: desk.started == 20)
            assert await count(client) == 2
            assert desk.finished == 0
            desk.release.set()
            assert await asyncio.gather(*slow) == [LONG] * 20

    run(main())


def test_idle_clients_are_let_go() -> None:
    async def main() -> None:
        async with serving(limits=RpcLimits(idle_timeout_s=0.5)) as (server, port):
            client = await connected(port)
            await until(lambda: server.connections == 0)
            assert not client.usable
            with pytest.raises(RpcConnectionError):
                await count(client)

    run(main())


def test_a_long_call_is_not_idle() -> None:
    async def main() -> None:
        desk, limits = Desk(), RpcLimits(idle_timeout_s=0.5)
        async with serving(desk, limits=limits) as (_, port), await connected(port) as client:
            slow = asyncio.create_task(invoke(client, DESK, WAIT, LONG))
            await until(lambda: desk.started == 1)
            await asyncio.sleep(3 * limits.idle_timeout_s)
            desk.release.set()
            assert await slow == LONG

    run(main())


# --- the client goes away -------------------------------------------------------------------------


def test_a_client_that_leaves_in_a_call() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            client = await connected(port)
            call = asyncio.create_task(invoke(client, DESK, WAIT, LONG))
            await until(lambda: desk.started == 1)
            client.abort()
            with pytest.raises(RpcConnectionError, match="closed"):
                await call
            await until(lambda: desk.cancelled == 1)
            assert server.connections == 0
            async with await connected(port) as other:
                assert await count(other) == 2

    run(main())


def test_a_client_that_leaves_in_a_callback() -> None:
    async def main() -> None:
        desk = Desk()
        asked = asyncio.Event()

        async def never(_context: AgreedContext, _opnum: int, _stub: bytes, _big: bool) -> bytes:
            asked.set()
            await asyncio.sleep(60)
            return b""

        async with serving(desk) as (server, port):
            client = await connected(port, callbacks=never)
            call = asyncio.create_task(invoke(client, DESK, ASK, Number(1)))
            await asked.wait()
            client.abort()
            with pytest.raises(RpcConnectionError):
                await call
            await until(lambda: server.connections == 0)

    run(main())


def test_handles_are_run_down_with_the_last_connection_of_their_group() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            first = await connected(port)
            opened = [await invoke(first, DESK, OPEN, Number(n)) for n in (1, 2, 3)]
            second = await connected(port, group_id=first.group_id)
            other = await connected(port)
            await first.close()
            await until(lambda: server.connections == 2)
            assert desk.run_down == []
            await refused(FaultStatus.CONTEXT_MISMATCH, invoke(other, DESK, CLOSE, opened[0]))
            assert await invoke(second, DESK, CLOSE, opened[0]) == Ticket(ContextHandle.NULL)
            await refused(FaultStatus.CONTEXT_MISMATCH, invoke(second, DESK, CLOSE, opened[0]))
            await second.close()
            await until(lambda: desk.run_down == [2, 3])
            await other.close()

    run(main())


def test_a_rundown_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            client = await connected(port)
            await invoke(client, DESK, OPEN, Number(1))
            await invoke(client, DESK, OPEN, Number(2))
            desk.run_down = None  # type: ignore[assignment]
            await client.close()
            await until(lambda: server.connections == 0)

    with caplog.at_level(logging.WARNING, "mqis"):
        run(main())
    assert [r.getMessage() for r in caplog.records] == ["rundown of a context handle failed"] * 2


# --- callbacks ------------------------------------------------------------------------------------


def add_one(_context: AgreedContext, _opnum: int, stub: bytes, _big: bool) -> bytes:
    return struct.pack("<I", struct.unpack("<I", stub)[0] + 1)


def test_callbacks() -> None:
    async def add_later(context: AgreedContext, opnum: int, stub: bytes, big: bool) -> bytes:
        await asyncio.sleep(0.001)
        return add_one(context, opnum, stub, big)

    async def main() -> None:
        async with serving() as (_, port):
            for callbacks in (add_one, add_later):
                async with await connected(port, callbacks=callbacks) as client:
                    calls = [invoke(client, DESK, ASK, Number(n)) for n in (0, 1, 5, 20)]
                    assert await asyncio.gather(*calls) == [Number(n) for n in (0, 1, 5, 20)]

    run(main())


def test_a_callback_that_calls_the_server() -> None:
    async def main() -> None:
        async def ask_the_server(
            _context: AgreedContext, _opnum: int, stub: bytes, _big: bool
        ) -> bytes:
            (n,) = struct.unpack("<I", stub)
            return struct.pack("<I", await count(client, n))

        async with serving() as (_, port):
            client = await connected(port, callbacks=ask_the_server)
            assert await invoke(client, DESK, ASK, Number(3)) == Number(3)
            await client.close()

    run(main())


@pytest.mark.parametrize("how", ["none", "fault", "unexpected"])
def test_callbacks_that_fail(how: str, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_context: AgreedContext, _opnum: int, _stub: bytes, _big: bool) -> bytes:
        raise RpcFault(0xC00E0006) if how == "fault" else KeyError("unexpected")

    statuses = {
        "none": FaultStatus.OP_RNG_ERROR,
        "fault": 0xC00E0006,
        "unexpected": FaultStatus.UNSPEC,
    }

    async def main() -> None:
        async with (
            serving() as (_, port),
            await connected(port, callbacks=None if how == "none" else fail) as client,
        ):
            await refused(statuses[how], invoke(client, DESK, ASK, Number(1)))
            assert await count(client) == 2

    with caplog.at_level(logging.WARNING, "mqis"):
        run(main())
    assert [r.getMessage() for r in caplog.records] == (
        ["callback 0 failed"] if how == "unexpected" else []
    )


# --- closing --------------------------------------------------------------------------------------


def test_shutdown_lets_calls_end() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            busy, idle = await connected(port), await connected(port)
            call = asyncio.create_task(invoke(busy, DESK, WAIT, LONG))
            await until(lambda: desk.started == 1)
            closing = asyncio.create_task(server.close(DEADLINE_S))
            await until(lambda: not idle.usable and not busy.usable)
            with pytest.raises(RpcConnectionError):
                await count(idle)
            with pytest.raises(RpcConnectionError, match="shutting down"):
                await count(busy)
            with pytest.raises(RpcConnectionError, match="cannot connect"):
                await connected(port)
            desk.release.set()
            assert await call == LONG
            await closing
            assert server.connections == 0

    run(main())


def test_shutdown_does_not_wait_for_ever() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            client = await connected(port)
            call = asyncio.create_task(invoke(client, DESK, WAIT, LONG))
            await until(lambda: desk.started == 1)
            await server.close(grace_s=0.05)
            with pytest.raises(RpcConnectionError):
                await call
            assert desk.cancelled == 1

    run(main())
