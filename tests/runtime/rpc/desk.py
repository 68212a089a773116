"""A small interface, its service, and ways to reach it: what the tests of this directory call."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from mqis.protocol.rpc.faults import RpcFault
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService, invoke
from mqis.wire.guid import Guid
from mqis.wire.ndr import CONTEXT_HANDLE, U8, U32, Conformant, ContextHandle, Parameters, Range
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.rpc.pdu_header import Header

HOST = "127.0.0.1"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    n: int


@dataclass(frozen=True, slots=True)
class Blob:
    octets: bytes


@dataclass(frozen=True, slots=True)
class Ticket:
    handle: ContextHandle


_NUMBER = Parameters(Number, n=Range(U32, 0, 1_000_000))
_BLOB = Parameters(Blob, size=U32, octets=Conformant(U8, size_is="size"))
_TICKET = Parameters(Ticket, handle=CONTEXT_HANDLE)

#: n + 1, at once.
COUNT: Operation[Number, Number] = Operation(0, "count", _NUMBER, _NUMBER)
#: n, after as many milliseconds.
WAIT: Operation[Number, Number] = Operation(1, "wait", _NUMBER, _NUMBER)
#: Fails in the n-th way.
FAIL: Operation[Number, Number] = Operation(2, "fail", _NUMBER, _NUMBER)
#: As many bytes.
FILL: Operation[Number, Blob] = Operation(3, "fill", _NUMBER, _BLOB)
OPEN: Operation[Number, Ticket] = Operation(4, "open", _NUMBER, _TICKET)
CLOSE: Operation[Ticket, Ticket] = Operation(5, "close", _TICKET, _TICKET)
#: Asks the client n times for the sum.
ASK: Operation[Number, Number] = Operation(6, "ask", _NUMBER, _NUMBER)
#: How many bytes came.
MEASURE: Operation[Blob, Number] = Operation(7, "measure", _BLOB, _NUMBER)

DESK = InterfaceDescription(
    "desk",
    SyntaxId(Guid.parse("dddddddd-0000-0000-0000-000000000001"), 1),
    (COUNT, WAIT, FAIL, FILL, OPEN, CLOSE, ASK, MEASURE),
    opnums=9,
)


class Desk(TypedService):
    """The service. What happens to its calls and handles can be looked at."""

    def __init__(self) -> None:
        self.started = 0
        self.finished = 0
        self.cancelled = 0
        self.run_down: list[int] = []
        #: Ends calls that wait before their time.
        self.release = asyncio.Event()
        #: The last call that waits.
        self.waiting: IncomingCall | None = None
        super().__init__(
            DESK,
            {
                COUNT: lambda _call, request: Number(request.n + 1),
                WAIT: self._wait,
                FAIL: self._fail,
                FILL: lambda _call, request: Blob(bytes(request.n)),
                OPEN: self._open,
                CLOSE: self._close,
                ASK: self._ask,
                MEASURE: lambda _call, request: Number(len(request.octets)),
            },
        )

    async def _wait(self, call: IncomingCall, request: Number) -> Number:
        self.started += 1
        self.waiting = call
        try:
            async with asyncio.timeout(request.n / 1000):
                await self.release.wait()
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.finished += 1
        return request

    def _fail(self, _call: IncomingCall, request: Number) -> Number | Awaitable[Number]:
        error: Exception = RpcFault(0xC00E0006)
        if request.n % 10 == 1:
            error = KeyError("unexpected")
        if request.n < 10:
            raise error

        async def later() -> Number:
            await asyncio.sleep(0)
            raise error

        return later()

    def _open(self, call: IncomingCall, request: Number) -> Ticket:
        n = request.n
        handle = call.create_handle(n, lambda: self.run_down.append(n))
        return Ticket(ContextHandle(handle))

    def _close(self, call: IncomingCall, request: Ticket) -> Ticket:
        call.group.close_handle(request.handle.uuid, call.interface)
        return Ticket(ContextHandle.NULL)

    async def _ask(self, call: IncomingCall, request: Number) -> Number:
        total = 0
        for _ in range(request.n):
            stub, _ = await call.call_back(0, struct.pack("<I", total))
            (total,) = struct.unpack("<I", stub)
        return Number(total)


@asynccontextmanager
async def serving(
    desk: Desk | None = None, port: int = 0, limits: RpcLimits | None = None, **options: Any
) -> AsyncIterator[tuple[RpcServer, int]]:
    def endpoint() -> Any:
        return server.endpoint

    server = RpcServer(
        [desk or Desk(), ManagementService(endpoint)], SystemEntropy(), limits=limits, **options
    )
    async with server:
        yield server, await server.listen(HOST, port)


async def connected(port: int, **options: Any) -> RpcClient:
    return await RpcClient.connect(HOST, port, [DESK.syntax], **options)


async def count(client: RpcClient, n: int = 1) -> int:
    return (await invoke(client, DESK, COUNT, Number(n))).n


async def refused(status: int, call: Awaitable[Any]) -> None:
    """The call ends in this fault."""
    with pytest.raises(RpcFault) as caught:
        await call
    assert caught.value.status == status


class Raw:
    """A connection for bytes that no client would send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> Raw:
        return cls(*await asyncio.open_connection(HOST, port))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def pdu(self) -> bytes:
        head = await self.reader.readexactly(16)
        return head + await self.reader.readexactly(Header.decode(head).frag_length - 16)

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        try:
            return await self.reader.read(-1)
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    def abort(self) -> None:
        self.writer.transport.abort()
