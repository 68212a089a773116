"""The asyncio driver of one server connection."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Coroutine
from math import inf
from time import perf_counter, time
from types import CoroutineType
from typing import Any, NamedTuple, Protocol, cast

from mqis.protocol.authentication import NOWHERE, Addresses, Identity, has_name
from mqis.protocol.budget import Charge, Shortage
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.groups import AssociationGroup
from mqis.protocol.rpc.server_calls import Call
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.protocol.rpc.server_side import (
    CallbackFaulted,
    CallbackReturned,
    CallReceived,
    Event,
    ServerConnection,
)
from mqis.runtime.histogram import TIMED_EVERY, OperationStatistics, Served
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.texts import duration
from mqis.wire.errors import WireError
from mqis.wire.ndr.stream import NdrError

log = logging.getLogger(__name__)

#: Seconds that a client has to read its last answer and close, after this side has closed.
LINGER_S = 2.0
#: Answers are gathered up to this many bytes before they are written.
WRITE_AT = 64 * 1024


#: The most memory that a decoded request takes, in bytes for each byte of its stub: numbers of
#: two bytes become objects.
DECODED = 20
#: Requests that take less are run without a check of the memory budget.
SMALL = 128 * 1024


class _Running(NamedTuple):
    """An awaited call: its statistics, its start time, and the memory of its request."""

    call: Call
    counted: OperationStatistics
    began: float
    weight: int


class RpcSession(NamedTuple):
    """A connection, as administrators see it."""

    id: int
    address: str
    #: The callers that have logged on over it; none: a stranger.
    names: tuple[Identity, ...]
    level: int
    #: Seconds since 1970.
    since: float
    calls: int
    handles: int
    #: None before the bind.
    group: AssociationGroup | None


class ConnectionOwner(Protocol):
    """The server that connections belong to: what it offers, and what it lets each of them use."""

    endpoint: ServerEndpoint

    def served(self, interface: Interface) -> Served:
        """The service behind an interface, with its counters."""

    def admit(self, connection: ServerProtocol) -> bool:
        """Adds a connection; returns False if it exceeds a limit."""

    def forget(self, connection: ServerProtocol) -> None:
        """Removes a connection that has ended."""

    def named(self, connection: ServerProtocol) -> None:
        """Notes that a caller with a name has logged on over a connection."""

    def busy(self, connection: ServerProtocol) -> None:
        """Notes that a stranger's call is being executed."""

    def waits(self, connection: ServerProtocol) -> None:
        """Notes that a stranger's connection waits for its client."""

    def must_wait(self, connection: ServerProtocol) -> bool:
        """Returns whether a stranger's connection must wait for its turn, when it works."""

    def charge(self, connection: ServerProtocol, name: Identity | None = None) -> Charge:
        """A charge for a connection's memory; ``name``: the caller that has logged on over it."""

    def short_of_memory(self, peer: str, shortage: Shortage) -> None:
        """Takes note of a call that was refused for lack of memory."""


class ServerProtocol(asyncio.Protocol):
    """Passes bytes to the machine, its events to the services, and their answers back."""

    def __init__(self, server: ConnectionOwner) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._machine: ServerConnection | None = None
        self._addresses = NOWHERE
        #: Events that wait until the client has read answers.
        self._events: deque[Event] = deque()
        self._working = False
        #: Calls that are awaited.
        self._tasks: dict[asyncio.Task[bytes], _Running] = {}
        #: The memory charged to this connection, and the part of it that decoded requests of
        #: running calls take.
        self._charge: Charge | None = None
        self._decoded = 0
        self._answers: dict[Call, asyncio.Future[tuple[bytes, bool]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._blocked = False
        self._paused = False
        self._ending = False
        #: True once the connection is closed: it gets no more turns, and nothing is charged to it.
        self._lost = False
        #: True once a caller with a name has logged on.
        self._named = False
        #: The time at which the connection was made, in seconds since 1970, and its calls.
        self.since = time()
        self.calls = 0

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self._addresses = Addresses(
            _address(transport, "peername"), _address(transport, "sockname")
        )
        if not self._server.admit(self):
            self._transport.abort()
            return
        _keep_alive(transport)
        self._charge = self._server.charge(self)
        now = self._loop.time()
        self._machine = ServerConnection(
            self._server.endpoint, ("tcp", self.peer), now, self._addresses
        )
        self._arm()

    def data_received(self, data: bytes) -> None:
        machine = self._machine
        if machine is None or self._ending:
            return
        now = self._loop.time()
        if not self._named and self._server.must_wait(self):
            machine.keep(data, now)
            self._flush()
            return
        call = machine.at_once(data, now) if self._is_quiet() else None
        if call is not None and self._answered_alone(machine, call, now):
            return
        if call is None:
            self._events.extend(machine.receive(data, now))
        self.work()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._timer is not None:
            self._timer.cancel()
        self._server.forget(self)
        self._events.clear()
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
        assert self._charge is not None
        self._charge.end()
        gone = RpcConnectionError("the client is gone")
        for future in self._answers.values():
            if not future.done():
                future.set_exception(gone)

    def pause_writing(self) -> None:
        """Takes no more calls from a client that does not read its answers."""
        self._blocked = True
        self._regulate()

    def resume_writing(self) -> None:
        self._blocked = False
        self.work()

    # --- the machine ------------------------------------------------------------------------------

    def work(self) -> None:
        """Handles new and held-back events, as long as the client reads its answers.

        A stranger's are handled in its turns.
        """
        machine = self._machine
        if machine is None or self._working or self._lost:
            return
        self._working = True
        try:
            while not self._blocked and (self._events or (machine.stalled and machine.wants_data)):
                if not self._named and self._server.must_wait(self):
                    break
                if self._events:
                    self._handle(self._events.popleft())
                else:
                    self._events.extend(machine.receive(b"", self._loop.time()))
                if machine.unsent >= WRITE_AT:
                    self._flush()
        finally:
            self._working = False
        self._flush()

    def _handle(self, event: Event) -> None:
        if isinstance(event, CallReceived):
            self._run(event.call)
        elif isinstance(event, CallbackReturned):
            self._settle(event.call, (event.stub, event.big_endian))
        elif isinstance(event, CallbackFaulted):
            self._settle(event.call, RpcFault(event.status, "the client refused a callback"))

    def _run(self, call: Call) -> None:
        """Answers a call now if its service can, else when its task is done."""
        machine = self._machine
        assert machine is not None
        if machine.group is None or machine.closing:
            return
        weight = DECODED * len(call.stub)
        if weight > SMALL and not self._has_room(weight):
            busy = FaultStatus.SERVER_TOO_BUSY
            self._events.extend(machine.fault(call, busy, self._loop.time(), executed=False))
            return
        answer = self._dispatch(machine, call, weight)
        if answer is not None:
            self._events.extend(machine.respond(call, answer, self._loop.time()))

    def _dispatch(self, machine: ServerConnection, call: Call, weight: int) -> bytes | None:
        """The answer of the service; None if a task brings it later, or the call has failed."""
        if machine.refuses(call):
            return None
        self.calls += 1
        group, identity = machine.group_of(call), machine.identity(call)
        assert group is not None
        incoming = IncomingCall(call, group, identity, self._addresses, self._call_back)
        served = self._server.served(call.context.interface)
        counted = served.operations[call.opnum]
        calls = counted.calls = counted.calls + 1
        began = 0.0 if calls % TIMED_EVERY else perf_counter()
        try:
            answer = served.service.dispatch(incoming)
        except Exception as error:
            status = self._status_of(error, call)
            machine.begin(call)
            self._events.extend(machine.fault(call, status, self._loop.time()))
            return None
        if isinstance(answer, bytes):
            if began:
                counted.seconds.observe(perf_counter() - began)
            if not self._named:  # it begins to wait anew
                self._server.busy(self)
                self._server.waits(self)
            return answer
        machine.begin(call)
        task = self._loop.create_task(_coroutine(answer))
        self._tasks[task] = _Running(call, counted, began or perf_counter(), weight)
        self._decoded += weight
        task.add_done_callback(self._done)
        self._update_state()
        return None

    def _update_state(self) -> None:
        """Tells whether a call is being executed; one that waits for its callback is not."""
        if self._named:
            return
        if len(self._tasks) > len(self._answers):
            self._server.busy(self)
        else:
            self._server.waits(self)

    # --- calls that come alone --------------------------------------------------------------------

    def _is_quiet(self) -> bool:
        """Returns whether nothing waits or is charged, so that an answer may be written at once."""
        charge, transport, machine = self._charge, self._transport, self._machine
        assert charge is not None
        assert transport is not None
        assert machine is not None
        return not (
            charge.amount != machine.kept
            or self._blocked
            or self._paused
            or self._events
            or self._working
            or transport.get_write_buffer_size()
        )

    def _answered_alone(self, machine: ServerConnection, call: Call, now: float) -> bool:
        """Runs a call that came alone, as nearly all do; returns whether its answer is written.

        Such a call passes no queue, and its answer is not charged: it is one PDU, and the next
        call takes the ordinary way if the client has not read it until then.
        """
        transport = self._transport
        assert transport is not None
        weight = DECODED * len(call.stub)
        if weight > SMALL:
            machine.begin(call)
            self._run(call)
            return False
        answer = self._dispatch(machine, call, weight)
        if answer is None:
            return False
        pdu = machine.answer_alone(call, answer, now)
        if pdu is None:
            machine.begin(call)
            self._events.extend(machine.respond(call, answer, now))
            return False
        if not transport.is_closing():
            transport.write(pdu)
        return True

    def _done(self, task: asyncio.Task[bytes]) -> None:
        call, counted, began, weight = self._tasks.pop(task)
        self._decoded -= weight
        self._update_state()
        counted.seconds.observe(perf_counter() - began)
        machine, now = self._machine, self._loop.time()
        assert machine is not None
        if task.cancelled():
            events = machine.fault(call, FaultStatus.CANCEL, now)
        elif (error := task.exception() or _fault_of(task.result())) is not None:
            events = machine.fault(call, self._status_of(error, call), now)
        else:
            events = machine.respond(call, task.result(), now)
        self._events.extend(events)
        self.work()

    def _status_of(self, error: BaseException, call: Call) -> int:
        if isinstance(error, RpcFault):
            return error.status
        if isinstance(error, WireError):
            return error.status if isinstance(error, NdrError) else FaultStatus.BAD_STUB_DATA
        if not (call.orphaned and isinstance(error, RpcConnectionError)):
            name = call.context.interface.name
            log.error("operation %d of %s failed", call.opnum, name, exc_info=error)
        return FaultStatus.UNSPEC

    async def _call_back(self, call: Call, opnum: int, stub: bytes) -> tuple[bytes, bool]:
        if self._machine is None or self._machine.closing:
            raise RpcConnectionError("the client is gone")
        self._machine.callback(call, opnum, stub)
        future: asyncio.Future[tuple[bytes, bool]] = self._loop.create_future()
        self._answers[call] = future
        self._update_state()
        self.work()
        limit_s = self._server.endpoint.limits.call_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await future
        except TimeoutError:  # its answer, should it still come, ends the connection
            self._answers.pop(call, None)
            self._update_state()
            raise RpcConnectionError(f"no answer to a callback in {duration(limit_s)}") from None

    def _settle(self, call: Call, answer: tuple[bytes, bool] | RpcFault) -> None:
        future = self._answers.pop(call, None)
        if future is None or future.done():
            return
        self._update_state()
        if isinstance(answer, RpcFault):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _flush(self) -> None:
        machine, transport = self._machine, self._transport
        assert machine is not None
        assert transport is not None
        if not self._named and has_name(machine.name):
            self._named = True
            self._server.named(self)
        self._write()
        if self._exceeds_memory():
            machine.too_much()
            self._write()
        if machine.closing:
            self._end()
            return
        self._regulate()
        self._arm()

    def _write(self) -> None:
        machine, transport = self._machine, self._transport
        assert machine is not None
        assert transport is not None
        data = machine.data_to_send()
        if data and not transport.is_closing():
            transport.write(data)

    # --- memory -----------------------------------------------------------------------------------

    def _has_room(self, more: int) -> bool:
        """Returns whether the memory budget has ``more`` bytes for this connection."""
        charge = self._charge
        assert charge is not None
        held = charge.amount
        shortage = charge.change(held + more)
        if shortage is None:
            charge.change(held)
            return True
        self._server.short_of_memory(self.peer, shortage)
        return False

    def _exceeds_memory(self) -> bool:
        """Charges the memory that this connection holds; returns whether it exceeds the budget.

        Unread answers are held too. If they are too large, the connection has to end at once, not
        when the client has read them.
        """
        machine, transport, charge = self._machine, self._transport, self._charge
        assert machine is not None
        assert transport is not None
        assert charge is not None
        unread = transport.get_write_buffer_size()
        held = machine.held + self._decoded + unread
        if held == charge.amount:
            return False
        if charge.caller.identity is not machine.name:
            charge.end()
            charge = self._charge = self._server.charge(self, machine.name)
        shortage = charge.change(held)
        if shortage is None:
            return False
        self._server.short_of_memory(self.peer, shortage)
        if unread > machine.held:
            transport.abort()
        return True

    def _regulate(self) -> None:
        """Pauses reading while something waits, or the client does not read its answers."""
        transport, machine = self._transport, self._machine
        if transport is None or machine is None or self._ending:
            return
        pause = self._blocked or not machine.wants_data or machine.stalled
        if pause is self._paused or transport.is_closing():
            return
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()
        self._paused = pause

    def _end(self) -> None:
        """Closes in a way that lets the client read its last answer.

        A socket that is closed with unread bytes is reset, and the peer may lose data that it has
        not read. So this side sends EOF, drops what it receives, and closes when the client does,
        or after a timeout.
        """
        transport = self._transport
        if self._ending or transport is None or transport.is_closing():
            return
        self._ending = True
        self._cancel_timer()
        if self._paused:
            transport.resume_reading()
        try:
            transport.write_eof()
        except OSError:  # the client has reset the connection meanwhile
            transport.abort()
            return
        self._timer = self._loop.call_later(LINGER_S, transport.abort)

    # --- time -------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Sets a timer that expires no later than the machine's next; early does no harm."""
        due = None if self._machine is None else self._machine.next_timer()
        if due is not None and due < self._due:
            self._cancel_timer()
            self._due = due
            self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        assert self._machine is not None
        self._timer, self._due = None, inf
        self._machine.handle_timer(self._loop.time())
        self._flush()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # --- the server -------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The address of the client."""
        return self._addresses.peer

    @property
    def busy(self) -> bool:
        """True if calls run, or answers are not written yet."""
        transport = self._transport
        unwritten = transport is not None and transport.get_write_buffer_size() > 0
        return bool(self._tasks) or unwritten

    def session(self, id: int) -> RpcSession:  # noqa: A002
        """This connection for administrators."""
        machine = self._machine
        assert machine is not None
        return RpcSession(
            id,
            self.peer,
            machine.names,
            machine.level,
            self.since,
            self.calls,
            machine.handles,
            machine.group,
        )

    def judge(self) -> None:
        """Judges the logons of this connection again."""
        if self._machine is not None:
            self._machine.judge(self._loop.time())
            self._arm()

    def shut_down(self) -> None:
        """Asks the client to close."""
        if self._machine is not None:
            self._machine.shut_down()
            self._flush()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _address(transport: asyncio.BaseTransport, which: str) -> str:
    name = transport.get_extra_info(which)
    return str(name[0]) if name else ""


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    """Enables TCP keep-alive, which detects clients that have vanished."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _coroutine(answer: Awaitable[bytes]) -> Coroutine[Any, Any, bytes]:
    """The awaitable as a coroutine, which a task needs; most services return one."""
    return answer if isinstance(answer, CoroutineType) else _awaited(answer)


async def _awaited(answer: Awaitable[bytes]) -> bytes:
    return await answer


def _fault_of(stub: object) -> TypeError | None:
    if isinstance(stub, bytes):
        return None
    return TypeError(f"a service answers with bytes, not {type(stub).__name__}")
