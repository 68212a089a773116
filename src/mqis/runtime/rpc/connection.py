"""The asyncio driver of one server connection. It decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from mqis.protocol.rpc.calls import Call
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.server import (
    CallbackFaulted,
    CallbackReturned,
    CallReceived,
    Event,
    ServerConnection,
)
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.errors import WireError

if TYPE_CHECKING:
    from mqis.runtime.rpc.server import RpcServer

log = logging.getLogger(__name__)


class ServerProtocol(asyncio.Protocol):
    """Bytes to the machine, events to the services, answers back."""

    def __init__(self, server: RpcServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._machine: ServerConnection | None = None
        self.peer = ""
        self._tasks: dict[asyncio.Task[bytes], Call] = {}
        self._answers: dict[int, asyncio.Future[tuple[bytes, bool]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._blocked = False

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if address else ""
        if not self._server.admit(self):
            self._transport.abort()
            return
        now = self._loop.time()
        self._machine = ServerConnection(self._server.endpoint, ("tcp", self.peer), now)
        self._arm()

    def data_received(self, data: bytes) -> None:
        if self._machine is None:
            return
        self._process(self._machine.receive(data, self._loop.time()))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._server.forget(self)
        if self._machine is None:
            return
        for handle in self._machine.connection_lost():
            if handle.rundown is not None:
                try:
                    handle.rundown()
                except Exception:
                    log.exception("rundown of a context handle failed")
        for task in self._tasks:
            task.cancel()
        gone = RpcConnectionError("the client is gone")
        for future in self._answers.values():
            if not future.done():
                future.set_exception(gone)

    def pause_writing(self) -> None:
        """The client does not read its answers: take no more calls from it."""
        self._blocked = True
        self._regulate()

    def resume_writing(self) -> None:
        self._blocked = False
        self._regulate()

    # --- the machine ------------------------------------------------------------------------------

    def _process(self, events: list[Event]) -> None:
        assert self._machine is not None
        pending = deque(events)
        while pending:
            event = pending.popleft()
            if isinstance(event, CallReceived):
                pending.extend(self._run(event.call))
            elif isinstance(event, CallbackReturned):
                self._settle(event.call, (event.stub, event.big_endian))
            elif isinstance(event, CallbackFaulted):
                self._settle(event.call, RpcFault(event.status, "the client refused a callback"))
        self._flush()

    def _run(self, call: Call) -> list[Event]:
        """Answer a call now if its service can, else when its task is done."""
        machine = self._machine
        assert machine is not None
        assert machine.group is not None
        identity = machine.identity(call)
        incoming = IncomingCall(call, machine.group, identity, self.peer, self._call_back)
        service = self._server.service_for(call.context.interface)
        try:
            answer = service.dispatch(incoming)
        except Exception as error:
            return machine.fault(call, self._status_of(error, call))
        if isinstance(answer, bytes):
            return machine.respond(call, answer)
        task = self._loop.create_task(_awaited(answer))
        self._tasks[task] = call
        task.add_done_callback(self._done)
        return []

    def _done(self, task: asyncio.Task[bytes]) -> None:
        call = self._tasks.pop(task)
        machine = self._machine
        assert machine is not None
        if task.cancelled():
            events = machine.fault(call, FaultStatus.CANCEL)
        elif (error := task.exception()) is not None:
            events = machine.fault(call, self._status_of(error, call))
        else:
            events = machine.respond(call, task.result())
        self._process(events)

    def _status_of(self, error: BaseException, call: Call) -> int:
        if isinstance(error, RpcFault):
            return error.status
        if isinstance(error, WireError):
            return int(getattr(error, "status", FaultStatus.BAD_STUB_DATA))
        name = call.context.interface.name
        log.error("operation %d of %s failed", call.opnum, name, exc_info=error)
        return FaultStatus.UNSPEC

    async def _call_back(self, call: Call, opnum: int, stub: bytes) -> tuple[bytes, bool]:
        if self._machine is None or self._machine.closing:
            raise RpcConnectionError("the client is gone")
        future: asyncio.Future[tuple[bytes, bool]] = self._loop.create_future()
        self._answers[id(call)] = future
        self._machine.callback(call, opnum, stub)
        self._flush()
        return await future

    def _settle(self, call: Call, answer: tuple[bytes, bool] | RpcFault) -> None:
        future = self._answers.pop(id(call), None)
        if future is None or future.done():
            return
        if isinstance(answer, RpcFault):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _flush(self) -> None:
        machine, transport = self._machine, self._transport
        assert machine is not None
        assert transport is not None
        data = machine.data_to_send()
        if data and not transport.is_closing():
            transport.write(data)
        if machine.closing:
            transport.close()
            return
        self._regulate()

    def _regulate(self) -> None:
        transport, machine = self._transport, self._machine
        if transport is None or machine is None or transport.is_closing():
            return
        if self._blocked or not machine.wants_data:
            transport.pause_reading()
        elif not transport.is_reading():
            transport.resume_reading()

    # --- time -------------------------------------------------------------------------------------

    def _arm(self) -> None:
        machine = self._machine
        deadline = None if machine is None else machine.next_timer()
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        assert self._machine is not None
        self._machine.handle_timer(self._loop.time())
        self._flush()
        self._arm()

    # --- the server -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    def shut_down(self) -> None:
        """Ask the client to leave."""
        if self._machine is not None:
            self._machine.shut_down()
            self._flush()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def _awaited(answer: Awaitable[bytes]) -> bytes:
    return await answer
