"""An RPC client on asyncio: one association with overlapping calls and callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from mqis.protocol.authentication import AuthenticationError, AuthLevel, Initiator
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
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.negotiation import MAX_FRAG
from mqis.runtime.peers import reason_of
from mqis.texts import duration, host_port
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr.stream import NdrError
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId

log = logging.getLogger(__name__)

#: Seconds that the server has to close after this side has closed.
CLOSE_S = 5.0

#: Answers a callback: (interface it belongs to, opnum, stub, big-endian) to the stub of the answer.
CallbackHandler = Callable[[AgreedContext, int, bytes, bool], "bytes | Awaitable[bytes]"]


class UnreachableError(RpcConnectionError):
    """No connection to an address; ``reason`` is the text without the address."""

    names_peer = True

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.address = host_port(host, port)
        self.reason = reason
        super().__init__(f"cannot connect to {self.address}: {reason}")
        self._where = host, port

    def __reduce__(self) -> tuple[type[UnreachableError], tuple[str, int, str]]:
        return type(self), (*self._where, self.reason)


class RpcTimeoutError(RpcConnectionError):
    """No answer in time; the call may have run or not."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The provider, type and level of authentication, and the expected server."""

    initiator: Initiator
    auth_type: int
    level: int
    target: str


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The stub of an answer, its transfer syntax and its byte order."""

    stub: bytes
    transfer: SyntaxId
    big_endian: bool


class CallOutcome(Protocol):
    """The receiver of a call's result: a future, or an object that is called at once."""

    def done(self) -> bool: ...

    def set_result(self, result: CallReturned, /) -> None: ...

    def set_exception(self, exception: Exception, /) -> None: ...


class RpcClient(asyncio.Protocol):
    """One association. Made by ``RpcClient.connect``; ``async with`` closes it."""

    def __init__(self, callbacks: CallbackHandler | None = None, max_frag: int = MAX_FRAG) -> None:
        self._machine = ClientConnection(max_frag)
        self._callbacks = callbacks
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._bound: asyncio.Future[tuple[AgreedContext, ...]] = self._loop.create_future()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._calls: dict[int, CallOutcome] = {}
        self._open: dict[int, AgreedContext] = {}
        self._contexts: dict[SyntaxId, AgreedContext] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._binding = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        interfaces: Sequence[SyntaxId],
        *,
        transfers: Sequence[SyntaxId] = (NDR20, NDR64),
        credentials: Credentials | None = None,
        callbacks: CallbackHandler | None = None,
        group_id: int = 0,
        max_frag: int = MAX_FRAG,
        timeout_s: float = 10.0,
    ) -> RpcClient:
        """Connects, binds and authenticates, all within ``timeout_s``."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                _, client = await loop.create_connection(
                    lambda: cls(callbacks, max_frag), host, port
                )
                try:
                    await client.bind(interfaces, transfers, credentials, group_id)
                except BaseException:
                    client.abort()
                    raise
        except TimeoutError:
            late = RpcTimeoutError(
                f"no answer from {host_port(host, port)} in {duration(timeout_s)}"
            )
            late.names_peer = True
            raise late from None
        except OSError as error:
            raise UnreachableError(host, port, reason_of(error)) from error
        return client

    async def bind(
        self,
        interfaces: Sequence[SyntaxId],
        transfers: Sequence[SyntaxId],
        credentials: Credentials | None,
        group_id: int,
    ) -> None:
        channel = None
        if credentials is not None and credentials.level > AuthLevel.NONE:
            kind, level = credentials.auth_type, credentials.level
            context = credentials.initiator.initiator(kind, level, credentials.target)
            channel = Channel(1, kind, level, context)
        self._machine.bind(interfaces, transfers=transfers, group_id=group_id, channel=channel)
        self._flush()
        self._add_contexts(await self._bound, interfaces)

    async def add_interface(
        self, interface: SyntaxId, transfers: Sequence[SyntaxId] = (NDR20, NDR64)
    ) -> None:
        """Binds one more interface on the same association."""
        async with self._binding:
            self._check_usable()
            self._bound = self._loop.create_future()
            self._machine.alter([interface], transfers)
            self._flush()
            self._add_contexts(await self._bound, [interface])

    def _add_contexts(self, contexts: Sequence[AgreedContext], wanted: Sequence[SyntaxId]) -> None:
        self._contexts.update({context.interface: context for context in contexts})
        missing = [str(interface) for interface in wanted if interface not in self._contexts]
        if missing:
            raise RpcConnectionError(f"the server does not offer {', '.join(missing)}")

    async def __aenter__(self) -> RpcClient:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    @property
    def usable(self) -> bool:
        """True if a call can be made now."""
        return self._machine.closed is None and not self._leaving and not self._lost.done()

    @property
    def group_id(self) -> int:
        """The group that another connection names to share context handles with this one."""
        return self._machine.group_id

    def offers(self, interface: SyntaxId) -> bool:
        """Returns whether an interface is bound on this association."""
        return interface in self._contexts

    def transfer(self, interface: SyntaxId) -> SyntaxId:
        """The transfer syntax that was agreed for an interface."""
        return self._contexts[interface].transfer

    async def call(
        self,
        interface: SyntaxId,
        opnum: int,
        stub: bytes,
        *,
        target: Guid | None = None,
        timeout_s: float | None = 60.0,
    ) -> CallAnswer:
        """Calls an operation; ``RpcFault`` if it fails, ``RpcTimeoutError`` without an answer."""
        future: asyncio.Future[CallReturned] = self._loop.create_future()
        call_id = self.start(interface, opnum, stub, future, target=target)
        try:
            if timeout_s is None:
                answered = await future
            else:
                async with asyncio.timeout(timeout_s):
                    answered = await future
        except TimeoutError:
            self.give_up(call_id)
            waited = duration(timeout_s or 0.0)
            raise RpcTimeoutError(f"no answer to call {opnum} in {waited}") from None
        except asyncio.CancelledError:
            self.give_up(call_id)
            raise
        finally:
            self.forget(call_id)
        return CallAnswer(answered.stub, self.transfer(interface), answered.big_endian)

    def start(
        self,
        interface: SyntaxId,
        opnum: int,
        stub: bytes,
        outcome: CallOutcome,
        *,
        target: Guid | None = None,
    ) -> int:
        """Calls an operation without waiting; ``forget`` the number once ``outcome`` is known."""
        context = self._contexts[interface]
        self._check_usable()
        call_id = self._machine.request(context, opnum, stub, target)
        self._calls[call_id] = outcome
        self._open[call_id] = context
        self._flush()
        return call_id

    def forget(self, call_id: int) -> None:
        self._calls.pop(call_id, None)
        self._open.pop(call_id, None)
        self._leave_if_idle()

    def _check_usable(self) -> None:
        if self._machine.closed is not None:
            raise self._machine.closed
        if self._leaving:
            raise RpcConnectionError("the server is shutting down")
        if self._lost.done():
            raise RpcConnectionError("the connection is closed")

    def give_up(self, call_id: int) -> None:
        """Abandons a call; its answer is dropped."""
        if self._machine.closed is None:
            self._machine.orphan(call_id)
            self._flush()

    def _leave_if_idle(self) -> None:
        """Closes the idle connection if the server has asked for it."""
        if self._leaving and not self._calls and self._transport is not None:
            self._transport.close()

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        await asyncio.wait([self._lost], timeout=CLOSE_S)
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own

    def data_received(self, data: bytes) -> None:
        for event in self._machine.receive(data):
            self._handle(event)
        self._flush()
        if self._machine.closed is not None:
            self._fail(self._machine.closed)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f": {exc}" if exc else ""
        self._fail(self._machine.closed or RpcConnectionError(f"the server closed{reason}"))
        if not self._lost.done():
            self._lost.set_result(None)
        for task in self._tasks:
            task.cancel()

    def _fail(self, error: RpcConnectionError) -> None:
        waiting: list[Any] = [self._bound, *self._calls.values()]
        for outcome in waiting:
            if not outcome.done():
                outcome.set_exception(error)
        if self._bound.done() and not self._bound.cancelled():
            self._bound.exception()  # marks it as retrieved: perhaps no task waits for it

    def _flush(self) -> None:
        data = self._machine.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _handle(self, event: Event) -> None:
        if isinstance(event, CallReturned):
            self._settle(event.call_id, event)
        elif isinstance(event, Faulted):
            self._settle(event.call_id, RpcFault(event.status))
        elif isinstance(event, Bound):
            if not self._bound.done():
                self._bound.set_result(event.contexts)
        elif isinstance(event, CalledBack):
            task = self._loop.create_task(self._answer(event))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(event, ShutdownAsked):
            self._leaving = True
            self._leave_if_idle()

    def _settle(self, call_id: int, outcome: CallReturned | RpcFault) -> None:
        future = self._calls.get(call_id)
        if future is None or future.done():
            return
        if isinstance(outcome, RpcFault):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    async def _answer(self, event: CalledBack) -> None:
        """Serves a callback; every error becomes a fault, so that the server gets an answer."""
        context = self._open.get(event.call_id)
        try:
            if self._callbacks is None or context is None:
                raise RpcFault(FaultStatus.OP_RNG_ERROR)
            answer = self._callbacks(context, event.opnum, event.stub, event.big_endian)
            stub = answer if isinstance(answer, bytes) else await answer
        except RpcFault as fault:
            self._machine.fault_callback(event.call_id, fault.status)
        except WireError as error:
            status = error.status if isinstance(error, NdrError) else FaultStatus.BAD_STUB_DATA
            self._machine.fault_callback(event.call_id, status)
        except AuthenticationError:
            self._machine.fault_callback(event.call_id, FaultStatus.SEC_PKG_ERROR)
        except Exception:
            log.exception("callback %d failed", event.opnum)
            self._machine.fault_callback(event.call_id, FaultStatus.UNSPEC)
        else:
            self._machine.answer_callback(event.call_id, stub)
        finally:
            self._flush()
