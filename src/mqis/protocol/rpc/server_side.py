"""The server's side of one connection.

Bytes in, events out; answers in, bytes out. The machine implements the rules of C706 and MS-RPCE
for a connection; its driver owns the socket and runs the calls.

    connection = ServerConnection(endpoint, peer, now)
    for event in connection.receive(data, now):       # CallReceived and so on
        ...
    connection.respond(call, stub, now)
    transport.write(connection.data_to_send())
    if connection.closing: ...                        # close once everything is written

A peer's errors are answered as other servers answer them (docs/interop.md): by a bind_nak, a
fault, or just the end of the connection; most of them end the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from mqis.protocol.authentication import (
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthLevel,
    Identity,
    LogonEnd,
)
from mqis.protocol.rpc.faults import Disconnect, FaultAnswer, FaultStatus, Nak, RpcFault, denied
from mqis.protocol.rpc.groups import AssociationGroup, Handle
from mqis.protocol.rpc.server_bind import Binding
from mqis.protocol.rpc.server_calls import Call, fragments, whole_answer
from mqis.protocol.rpc.server_endpoint import LOGON_BYTES, ServerEndpoint
from mqis.protocol.rpc.server_requests import Requests
from mqis.wire.errors import WireError
from mqis.wire.rpc.pdu import Pdu, decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import (
    AlterContext,
    Bind,
    BindNak,
    Fault,
    NakReason,
    Request,
    Response,
    Shutdown,
)
from mqis.wire.rpc.pdu_header import (
    FIRST_LAST,
    HEADER_SIZE,
    VERSION,
    VERSION_MINOR,
    Header,
    PacketType,
    PfcFlags,
)
from mqis.wire.rpc.trailer import TRAILER_SIZE


@dataclass(frozen=True, slots=True)
class CallReceived:
    """A call is complete and has to be answered."""

    call: Call


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The client asks to end the call early; it may end with a fault ``cancel``."""

    call: Call


@dataclass(frozen=True, slots=True)
class CallbackReturned:
    """The client answered a callback."""

    call: Call
    stub: bytes
    big_endian: bool


@dataclass(frozen=True, slots=True)
class CallbackFaulted:
    """The client answered a callback with a fault."""

    call: Call
    status: int


Event = CallReceived | CallCancelled | CallbackReturned | CallbackFaulted


#: The faults of calls whose logon has ended.
_ENDED = {
    LogonEnd.REVOKED: FaultStatus.ACCESS_DENIED,
    LogonEnd.EXPIRED: FaultStatus.CONTEXT_EXPIRED,
}

#: The PDUs that ``receive`` handles in one call: no stranger may send so many that others wait.
PDUS_AT_ONCE = 8
#: The PDU types of all DCE/RPC transports; others are not answered.
_KNOWN_TYPES = range(21)


class ServerConnection:
    """One connection of an association group."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        peer: Hashable,
        now: float,
        addresses: Addresses = NOWHERE,
    ) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.closing = False
        #: True if ``receive`` has left a PDU in the buffer for later.
        self.stalled = False
        #: The size of what ``data_to_send`` would return.
        self.unsent = 0
        #: The bytes of contexts beyond those that a logon needs; charged while it is open.
        self.kept = 0
        self._limits = endpoint.limits
        self._statistics = endpoint.statistics
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._binding = Binding(endpoint, peer, addresses)
        self._requests = Requests(self._binding, endpoint.limits.max_stub)
        #: Waiting calls, and running ones, in the order in which they arrived.
        self._waiting: deque[Call] = deque()
        self._running: dict[Call, None] = {}
        #: Running calls that wait for the answer to a callback.
        self._calling_back = 0
        self._handshake_began: float | None = now
        self._pdu_began: float | None = None
        #: The time at which a logon was found to have ended.
        self._ended_at: float | None = None
        self._last_activity = now

    # --- the driver's side ------------------------------------------------------------------------

    @property
    def group(self) -> AssociationGroup | None:
        """The association group; None before a bind is accepted and after the connection's end."""
        return self._binding.group

    def group_of(self, call: Call) -> AssociationGroup | None:
        """The group whose handles a call uses, by its caller; None after the connection's end."""
        if not self._binding.is_shared:
            return self._binding.group
        level = AuthLevel.NONE if call.channel is None else call.channel.level
        return self._binding.group_of((self.identity(call), level))

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Takes bytes from the peer; returns the events for the driver.

        PDUs after one that causes an event are left for later, and so are those after
        ``PDUS_AT_ONCE``, and all while the maximum of calls is open. If that leaves it ``stalled``,
        the driver calls it again with no data, after it has handled the events and while it
        ``wants_data``.
        """
        events: list[Event] = []
        if self.closing:
            return events
        buffer = self._buffer
        # Nearly always the bytes are exactly one whole call: nothing has to be buffered.
        if (
            not buffer
            and len(data) <= self._limits.max_frag
            and not self._full
            and self._take_whole(data, now, events)
        ):
            return events
        if data:
            buffer += data
            self._last_activity = now
        self.stalled = False
        taken = 0
        while not self.closing and len(buffer) >= HEADER_SIZE:
            if events or taken == PDUS_AT_ONCE or not self.wants_data:
                self.stalled = True
                break
            header = Header.decode(buffer)
            size = header.frag_length
            if size < HEADER_SIZE or size > self._limits.max_frag:
                self._wrong_size(header)
                break
            if len(buffer) < size:
                break
            pdu = bytes(buffer[:size])
            del buffer[:size]
            taken += 1
            if not self._take_whole(pdu, now, events):
                self._statistics.packets_in += 1
                self._handle(pdu, header, now, events)
        if not buffer or not self.wants_data:
            self._pdu_began = None
        elif taken or self._pdu_began is None:
            self._pdu_began = now
        return events

    def keep(self, data: bytes, now: float) -> None:
        """Takes bytes for later: it is ``stalled`` then."""
        self._buffer += data
        self._last_activity = now
        self.stalled = True

    def at_once(self, data: bytes, now: float) -> Call | None:
        """The call that ``data`` is, if nothing else is under way: the driver may answer it alone.

        It then writes what ``answer_alone`` returns, or makes it a call like others by ``begin``.
        None: ``receive`` takes the bytes, unless their signature was wrong and they are refused.
        """
        if (
            self._running
            or self._waiting
            or self._buffer
            or self._out
            or self.closing
            or len(data) > self._limits.max_frag
            or self._binding.worn_out
        ):
            return None
        try:
            call = self._requests.whole(data)
        except FaultAnswer as answer:
            self._statistics.packets_in += 1
            self._answer(answer, Header.decode(data).call_id)
            return None
        if call is not None:
            self._last_activity = now
            self.stalled = False
            self._statistics.packets_in += 1
            self._statistics.calls_in += 1
        return call

    def answer_alone(self, call: Call, stub: bytes, now: float) -> bytes | None:
        """The PDU that answers a call of ``at_once``; None if one does not do: ``respond`` will."""
        binding = self._binding
        try:
            pdu = whole_answer(
                call, stub, binding.frag, sign_header=binding.security.header_signing
            )
        except AuthenticationError:  # its context was spoiled since the call began
            return None
        if pdu is not None:
            self._last_activity = now
            self._statistics.packets_out += 1
        return pdu

    def begin(self, call: Call) -> None:
        """Makes a call of ``at_once`` one that ``respond`` or ``fault`` answers."""
        self._running[call] = None

    def _take_whole(self, data: bytes, now: float, events: list[Event]) -> bool:
        """Takes the short way of a call that is one PDU; returns False if that is no such call."""
        try:
            call = self._requests.whole(data)
            if call is None:
                return False
            self._admit(call, events)
        except FaultAnswer as answer:
            self._answer(answer, Header.decode(data).call_id)
        self._last_activity = now
        self.stalled = False
        self._pdu_began = None
        self._statistics.packets_in += 1
        return True

    def data_to_send(self) -> bytes:
        """The bytes to write now."""
        if not self._out:
            return b""
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self.unsent = 0
        return data

    @property
    def wants_data(self) -> bool:
        """False while the maximum of calls is open, so that no more should be read.

        The answer to a callback has to be read at all times: the call that waits for it could
        not end otherwise.
        """
        return not self._full or self._calling_back > 0

    @property
    def _full(self) -> bool:
        return len(self._running) + len(self._waiting) >= self._limits.max_calls

    @property
    def held(self) -> int:
        """Bytes of the client that wait: PDUs, fragments, stubs not decoded yet; and contexts.

        The PDU that is arriving does not count: the number of connections bounds it.
        """
        held = max(0, len(self._buffer) - self._limits.max_frag)
        held += self.kept + self._requests.held
        for call in self._waiting:
            held += len(call.stub)
        for call in self._running:
            held += len(call.stub) + len(call.returning or b"")
        return held

    @property
    def name(self) -> Identity | None:
        """The first caller with a name that has logged on over this connection."""
        return self._binding.security.name

    @property
    def names(self) -> tuple[Identity, ...]:
        """The callers with a name whose logons over this connection are valid."""
        return self._binding.security.names

    @property
    def level(self) -> int:
        """The authentication level of the usual calls."""
        principal = self._binding.security.principal
        return AuthLevel.NONE if principal is None else principal[1]

    @property
    def handles(self) -> int:
        """The open context handles of the association group."""
        group = self.group
        return 0 if group is None else len(group.handles)

    def too_much(self) -> None:
        """Ends a connection whose client holds more memory than the server can spare."""
        if self.closing:
            return
        call = self._requests.under_way
        if call is not None:
            status = FaultStatus.SERVER_TOO_BUSY
            self._send_fault(call.id, status, call.context.id, executed=False)
        self._refuse()

    def respond(self, call: Call, stub: bytes, now: float) -> list[Event]:
        """Answers a call; returns the events of waiting calls that may start now."""
        if not call.orphaned and not self.closing:
            self._send_answer(call, stub)
        return self._finish(call, now)

    def fault(self, call: Call, status: int, now: float, *, executed: bool = True) -> list[Event]:
        """Answers a call with a fault; the connection goes on."""
        if not call.orphaned and not self.closing:
            self._send_fault(call.id, status, call.context.id, executed=executed)
        return self._finish(call, now)

    def refuses(self, call: Call) -> bool:
        """Refuses a call whose logon has ended, and ends the connection; False if it may run.

        Its caller has to log on again, over a new connection. Every call is asked for here before
        it runs, also one that had to wait.
        """
        ended = self._binding.security.ended(call.channel)
        if ended is None:
            return False
        self._send_fault(call.id, _ENDED[ended], call.context.id, executed=False)
        self._running.pop(call, None)
        self._refuse()
        return True

    def judge(self, now: float) -> None:
        """Looks whether logons have ended, after a change of the accounts.

        The next call is refused; without one, the connection ends soon.
        """
        if self._ended_at is None and self._binding.security.any_ended:
            self._ended_at = now

    def callback(self, call: Call, opnum: int, stub: bytes) -> None:
        """Calls the client back while ``call`` runs; the client's answer is an event.

        ``RpcFault`` if the client has nested calls and callbacks too deeply.
        """
        if call not in self._running or self.closing:
            raise ValueError("only a call that runs can call back")
        if call.returning is not None:
            raise ValueError("one callback at a time")
        depth = sum(1 for c in self._running if c.id == call.id and c.returning is not None)
        if depth >= self._limits.max_callback_depth:
            raise RpcFault(FaultStatus.REMOTE_NO_MEMORY, f"callbacks nest deeper than {depth}")
        call.returning = bytearray()
        self._calling_back += 1
        self._statistics.calls_out += 1
        self._send_fragments(Request(call.context.id, opnum, stub), call)

    def shut_down(self) -> None:
        """Asks the client to close once it is idle."""
        if not self.closing:
            self._send(encode_pdu(Shutdown(), call_id=0, flags=FIRST_LAST))

    def connection_lost(self) -> list[Handle]:
        """Ends the connection; returns the handles to run down if it was the group's last."""
        self._end()
        for call in self._running:
            call.orphaned = True
        return self._binding.leave()

    def identity(self, call: Call) -> Identity | None:
        """The caller; None if unknown, or if protected below the endpoint's minimum.

        This is the only source of identities for services, access checks and logs.
        """
        return self._binding.security.identity(call.channel)

    def next_timer(self) -> float | None:
        """The time at which to call ``handle_timer``; received data may bring it forward."""
        if self.closing:
            return None
        limits = self._limits
        deadline = None if self._running else self._last_activity + limits.idle_timeout_s
        for began, allowed in (
            (self._handshake_began, limits.bind_timeout_s),
            (self._pdu_began, limits.pdu_timeout_s),
            (self._requests.began, limits.call_timeout_s),
            (self._ended_at, limits.bind_timeout_s),
        ):
            if began is not None and (deadline is None or began + allowed < deadline):
                deadline = began + allowed
        return deadline

    def handle_timer(self, now: float) -> None:
        """Ends a connection that has exceeded a timeout."""
        deadline = self.next_timer()
        if deadline is not None and now >= deadline:
            self._refuse()

    # --- one PDU ----------------------------------------------------------------------------------

    def _handle(self, data: bytes, header: Header, now: float, events: list[Event]) -> None:
        try:
            self._dispatch(data, header, now, events)
        except FaultAnswer as answer:
            self._answer(answer, header.call_id)
        except Nak as nak:
            self._send(encode_pdu(BindNak(nak.reason), call_id=header.call_id, flags=FIRST_LAST))
            self._refuse()
        except (Disconnect, WireError):
            self._refuse()

    def _answer(self, answer: FaultAnswer, current: int) -> None:
        call_id = current if answer.call_id is None else answer.call_id
        self._send_fault(call_id, answer.status, answer.context_id, executed=answer.executed)
        if answer.final:
            self._refuse()

    def _dispatch(self, data: bytes, header: Header, now: float, events: list[Event]) -> None:
        kind, bound = header.type, self._binding.group is not None
        if kind not in _KNOWN_TYPES:
            raise Disconnect
        current = header.version == VERSION and header.version_minor == VERSION_MINOR
        if not current or not header.plain_format:
            raise self._protocol_error()
        if not bound and kind != PacketType.BIND:
            raise Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)
        if header.auth_length and header.auth_length + TRAILER_SIZE > len(data) - HEADER_SIZE:
            raise self._protocol_error()
        if kind == PacketType.REQUEST:
            self._request(decode_pdu(data, header), now, events)
        elif kind in (PacketType.RESPONSE, PacketType.FAULT):
            self._callback_answer(decode_pdu(data, header), events)
        elif kind in (PacketType.BIND, PacketType.ALTER_CONTEXT, PacketType.AUTH3):
            self._agree(decode_pdu(data, header), now)
        elif kind in (PacketType.CO_CANCEL, PacketType.ORPHANED):
            self._cancel(header, events)
        else:
            raise FaultAnswer(FaultStatus.PROTO_ERROR)

    def _protocol_error(self) -> Exception:
        if self._binding.group is not None:
            return FaultAnswer(FaultStatus.PROTO_ERROR)
        return Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)

    def _agree(self, pdu: Pdu, now: float) -> None:
        body, binding = pdu.body, self._binding
        if isinstance(body, AlterContext):
            self._send(binding.alter(pdu, body))
        elif isinstance(body, Bind):
            self._send(binding.bind(pdu, body))
        else:
            binding.auth3(pdu)
            if binding.worn_out:
                raise Disconnect
        self.kept = max(0, binding.held - LOGON_BYTES)
        if not binding.unfinished:
            self._handshake_began = None
        elif self._handshake_began is None:
            self._handshake_began = now

    # --- calls ------------------------------------------------------------------------------------

    def _request(self, pdu: Pdu, now: float, events: list[Event]) -> None:
        body = pdu.body
        assert isinstance(body, Request)
        call = self._requests.receive(pdu, body, now)
        if call is not None:
            self._admit(call, events)

    def _admit(self, call: Call, events: list[Event]) -> None:
        if self._calling_back and self._nested(call):
            self._run(call, events)
        elif self._full:
            raise FaultAnswer(FaultStatus.SERVER_TOO_BUSY, context_id=call.context.id, final=False)
        else:
            self._waiting.append(call)
            self._start(events)

    def _nested(self, call: Call) -> bool:
        """True if the client makes this call inside a callback of a call with the same id."""
        outer = self._innermost(call.id)
        return outer is not None and outer.returning is not None

    def _innermost(self, call_id: int) -> Call | None:
        return next((call for call in reversed(self._running) if call.id == call_id), None)

    def _start(self, events: list[Event]) -> None:
        """Starts waiting calls: all of them if calls may overlap, else one at a time."""
        while self._waiting and (self._binding.multiplexed or not self._running):
            self._run(self._waiting.popleft(), events)

    def _run(self, call: Call, events: list[Event]) -> None:
        self._statistics.calls_in += 1
        self._running[call] = None
        events.append(CallReceived(call))

    def _finish(self, call: Call, now: float) -> list[Event]:
        events: list[Event] = []
        self._last_activity = now
        if call in self._running:
            del self._running[call]
            self._returned(call)
        if self._binding.worn_out and not self.closing:  # by S_DSValidateServer
            self._refuse()
        if self._waiting:
            self._start(events)
        return events

    def _cancel(self, header: Header, events: list[Event]) -> None:
        """Reports co_cancel or orphaned; the call is answered all the same, as peers do."""
        call = self._innermost(header.call_id)
        if call is not None:
            call.cancelled = True
            events.append(CallCancelled(call))

    # --- callbacks --------------------------------------------------------------------------------

    def _callback_answer(self, pdu: Pdu, events: list[Event]) -> None:
        header, body = pdu.header, pdu.body
        call = self._innermost(header.call_id)
        if call is None or call.returning is None:
            raise FaultAnswer(FaultStatus.PROTO_ERROR)
        if isinstance(body, Fault):
            self._returned(call)
            events.append(CallbackFaulted(call, body.status))
            return
        assert isinstance(body, Response)
        stub = call.returning
        stub += self._requests.stub_of(pdu, body, call.channel, call.context.id)
        if len(stub) > self._limits.max_stub:
            raise denied(call.context.id)
        if header.flags & PfcFlags.LAST:
            self._returned(call)
            events.append(CallbackReturned(call, bytes(stub), header.big_endian))

    def _returned(self, call: Call) -> None:
        if call.returning is not None:
            call.returning = None
            self._calling_back -= 1

    # --- sending ----------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        self._out.append(data)
        self.unsent += len(data)
        self._statistics.packets_out += 1

    def _send_answer(self, call: Call, stub: bytes) -> None:
        binding = self._binding
        try:
            whole = whole_answer(
                call, stub, binding.frag, sign_header=binding.security.header_signing
            )
        except AuthenticationError:  # its context was spoiled since the call began
            self._refuse()
            return
        if whole is not None:
            self._send(whole)
        else:
            self._send_fragments(Response(call.context.id & 0xFF, stub), call)

    def _send_fragments(self, body: Request | Response, call: Call) -> None:
        binding = self._binding
        try:
            for pdu in fragments(
                body,
                call_id=call.id,
                max_frag=binding.frag,
                channel=call.channel,
                sign_header=binding.security.header_signing,
            ):
                self._send(pdu)
        except AuthenticationError:  # its context was spoiled since the call began
            self._refuse()

    def _send_fault(self, call_id: int, status: int, context_id: int, *, executed: bool) -> None:
        flags = FIRST_LAST if executed else FIRST_LAST | PfcFlags.DID_NOT_EXECUTE
        self._statistics.fault(status)
        self._send(encode_pdu(Fault(context_id, status), call_id=call_id, flags=flags))

    def _wrong_size(self, header: Header) -> None:
        if header.frag_length > self._limits.max_frag and self._binding.group is not None:
            self._send_fault(header.call_id, FaultStatus.PROTO_ERROR, 0, executed=True)
        self._refuse()

    def _refuse(self) -> None:
        self._statistics.refused += 1
        self._end()

    def _end(self) -> None:
        """Stops reading and drops waiting calls; queued data is still sent."""
        self.closing = True
        self.stalled = False
        self._buffer.clear()
        self._waiting.clear()
        self._requests.forget()
