"""The server's side of one connection.

Bytes in, events out; answers in, bytes out. The machine decides everything that C706 and MS-RPCE
say about a connection; whoever drives it owns the socket and runs the calls.

    connection = ServerConnection(endpoint, peer, now)
    for event in connection.receive(data, now):       # CallReceived and so on
        ...
    connection.respond(call, stub)
    transport.write(connection.data_to_send())
    if connection.closing: ...                        # close once everything is written

What a peer does wrong is answered as other servers answer it (docs/interop.md): a bind_nak, a
fault, or just the end of the connection; after most of them the connection is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from mqis.protocol.authentication import AuthType, Identity
from mqis.protocol.rpc.calls import Call, fragments
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.endpoint import ServerEndpoint
from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.groups import AssociationGroup, Handle
from mqis.protocol.rpc.negotiation import (
    MAX_FRAG,
    NegotiationError,
    PresentationContext,
    fragment_size,
    negotiate,
)
from mqis.protocol.rpc.security import Refused, SecurityContexts
from mqis.wire.errors import WireError
from mqis.wire.rpc.bodies import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Fault,
    NakReason,
    Request,
    Response,
    Shutdown,
)
from mqis.wire.rpc.header import (
    FIRST_LAST,
    HEADER_SIZE,
    VERSION,
    VERSION_MINOR,
    Header,
    PacketType,
    PfcFlags,
    frag_length_of,
)
from mqis.wire.rpc.pdu import STUB_OFFSET, Pdu, decode_pdu, encode_pdu
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.rpc.verification import find_verification


@dataclass(frozen=True, slots=True)
class CallReceived:
    """A call is complete and wants an answer."""

    call: Call


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The client would like the call to end early; it may, with a fault ``cancel``."""

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


class _Nak(Exception):
    """Refuse the bind and end the connection."""

    def __init__(self, reason: NakReason) -> None:
        super().__init__(reason)
        self.reason = reason


class _FaultAnswer(Exception):
    """Answer with a fault; ``final`` ends the connection."""

    def __init__(
        self,
        status: FaultStatus,
        *,
        context_id: int = 0,
        executed: bool = False,
        final: bool = True,
        call_id: int | None = None,
    ) -> None:
        super().__init__(status)
        self.status = status
        self.context_id = context_id
        self.executed = executed
        self.final = final
        self.call_id = call_id


class _Disconnect(Exception):
    """Say nothing and end the connection."""


#: PDU types that a client of this connection may send once it is bound.
_KNOWN_TYPES = range(21)


class ServerConnection:
    """One connection of an association group."""

    def __init__(self, endpoint: ServerEndpoint, peer: Hashable, now: float) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.group: AssociationGroup | None = None
        self.closing = False
        self._limits = endpoint.limits
        self._statistics = endpoint.statistics
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._contexts: dict[int, PresentationContext] = {}
        self._security = SecurityContexts(
            endpoint.authenticator, endpoint.limits.max_security_contexts
        )
        self._frag = MAX_FRAG
        self._multiplexed = False
        self._features: int | None = None
        self._incoming: dict[int, Call] = {}
        self._waiting: deque[Call] = deque()
        self._running: list[Call] = []
        self._returning: dict[int, bytearray] = {}
        self._pdu_began: float | None = None
        self._opened = now
        self._last_activity = now

    # --- the driver's side ------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Take bytes from the peer; what they mean for whoever runs the calls."""
        events: list[Event] = []
        buffer = self._buffer
        buffer += data
        self._last_activity = now
        while not self.closing and len(buffer) >= HEADER_SIZE:
            size = frag_length_of(buffer)
            if size < HEADER_SIZE:
                self._end()
                break
            if size > MAX_FRAG:
                self._too_big(Header.decode(bytes(buffer[:HEADER_SIZE])))
                break
            if len(buffer) < size:
                break
            pdu = bytes(buffer[:size])
            del buffer[:size]
            self._statistics.packets_in += 1
            self._handle(pdu, now, events)
        if buffer and not self.closing:
            self._pdu_began = self._pdu_began if self._pdu_began is not None else now
        else:
            self._pdu_began = None
        return events

    def data_to_send(self) -> bytes:
        """What is to be written now."""
        if not self._out:
            return b""
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        return data

    @property
    def wants_data(self) -> bool:
        """False while so many calls wait that no more should be read."""
        return len(self._running) + len(self._waiting) < self._limits.max_calls

    def respond(self, call: Call, stub: bytes) -> list[Event]:
        """Answer a call; the next one that waited may start."""
        if not call.orphaned and not self.closing:
            body = Response(call.context.id & 0xFF, stub)
            self._send_fragments(body, call)
            self._statistics.calls_out += 1
        return self._finish(call)

    def fault(self, call: Call, status: int, *, executed: bool = True) -> list[Event]:
        """Answer a call with a fault; the connection goes on."""
        if not call.orphaned and not self.closing:
            self._send_fault(call.id, status, call.context.id, executed=executed)
        return self._finish(call)

    def callback(self, call: Call, opnum: int, stub: bytes) -> None:
        """Call the client back while ``call`` runs; its answer is an event."""
        if call.callbacks >= self._limits.max_callback_depth:
            raise ValueError(f"callbacks nest deeper than {self._limits.max_callback_depth}")
        call.callbacks += 1
        self._returning[call.id] = bytearray()
        self._send_fragments(Request(call.context.id, opnum, stub), call)

    def shut_down(self) -> None:
        """Ask the client to close once it is idle."""
        if not self.closing:
            self._send(encode_pdu(Shutdown(), call_id=0, flags=FIRST_LAST))

    def connection_lost(self) -> list[Handle]:
        """The socket is gone: handles to run down if this was the last of the group."""
        self.closing = True
        self._incoming.clear()
        self._waiting.clear()
        for call in self._running:
            call.orphaned = True
        group, self.group = self.group, None
        return [] if group is None else self.endpoint.groups.leave(group)

    def identity(self, call: Call) -> Identity | None:
        """Who calls; None for nobody in particular."""
        return self._security.identity(call.channel)

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is to be called next."""
        if self.closing:
            return None
        return min(self._deadlines())

    def handle_timer(self, now: float) -> None:
        """End a connection that has taken too long over something."""
        if not self.closing and now >= min(self._deadlines()):
            self._statistics.refused += 1
            self._end()

    def _deadlines(self) -> list[float]:
        limits = self._limits
        deadlines = []
        if self.group is None:
            deadlines.append(self._opened + limits.bind_timeout_s)
        if self._pdu_began is not None:
            deadlines.append(self._pdu_began + limits.pdu_timeout_s)
        deadlines.extend(call.began + limits.call_timeout_s for call in self._incoming.values())
        if not self._running:
            deadlines.append(self._last_activity + limits.idle_timeout_s)
        return deadlines or [self._last_activity + limits.idle_timeout_s]

    # --- one PDU ----------------------------------------------------------------------------------

    def _handle(self, data: bytes, now: float, events: list[Event]) -> None:
        header = Header.decode(data)
        try:
            self._dispatch(data, header, now, events)
        except _Nak as nak:
            self._send(encode_pdu(BindNak(nak.reason), call_id=header.call_id, flags=FIRST_LAST))
            self._statistics.refused += 1
            self._end()
        except _FaultAnswer as answer:
            call_id = header.call_id if answer.call_id is None else answer.call_id
            self._send_fault(call_id, answer.status, answer.context_id, executed=answer.executed)
            if answer.final:
                self._statistics.refused += 1
                self._end()
        except (_Disconnect, WireError):
            self._statistics.refused += 1
            self._end()

    def _dispatch(self, data: bytes, header: Header, now: float, events: list[Event]) -> None:
        bound = self.group is not None
        if header.type not in _KNOWN_TYPES:
            raise _Disconnect
        current = header.version == VERSION and header.version_minor == VERSION_MINOR
        if not current or not header.plain_format:
            raise self._protocol_error(bound)
        if not bound and header.type != PacketType.BIND:
            raise _Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)
        if header.auth_length and header.auth_length + 8 > len(data) - HEADER_SIZE:
            raise self._protocol_error(bound)
        if header.type == PacketType.REQUEST:
            self._request(decode_pdu(data, header), now, events)
            return
        if header.type in (PacketType.RESPONSE, PacketType.FAULT):
            self._callback_answer(decode_pdu(data, header), events)
            return
        self._other(data, header, events)

    def _protocol_error(self, bound: bool) -> Exception:
        if bound:
            return _FaultAnswer(FaultStatus.PROTO_ERROR)
        return _Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)

    def _other(self, data: bytes, header: Header, events: list[Event]) -> None:
        if header.type == PacketType.BIND:
            pdu = decode_pdu(data, header)
            if self.group is not None:
                raise _Nak(NakReason.NOT_SPECIFIED)
            assert isinstance(pdu.body, Bind)
            self._bind(pdu, pdu.body)
        elif header.type == PacketType.ALTER_CONTEXT:
            pdu = decode_pdu(data, header)
            assert isinstance(pdu.body, AlterContext)
            self._alter(pdu, pdu.body)
        elif header.type == PacketType.AUTH3:
            pdu = decode_pdu(data, header)
            assert isinstance(pdu.body, Auth3)
            self._auth3(pdu)
        elif header.type in (PacketType.CO_CANCEL, PacketType.ORPHANED):
            self._cancel(header, events)
        else:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)

    # --- bind, alter_context, auth3 ---------------------------------------------------------------

    def _bind(self, pdu: Pdu, body: Bind) -> None:
        flags = pdu.header.flags
        if not body.contexts:
            raise _Nak(NakReason.NOT_SPECIFIED)
        self._check_padding(pdu, _Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED))
        try:
            agreed = negotiate(body.contexts, self.endpoint.interfaces, {})
        except NegotiationError:
            raise _Nak(NakReason.NOT_SPECIFIED) from None
        token = None
        if flags & PfcFlags.SUPPORT_HEADER_SIGN:
            self._security.header_signing = True
        if pdu.auth is not None:
            try:
                token = self._security.leg(pdu.auth, alter=False)
            except Refused as refused:
                raise _Nak(refused.nak) from None
        group = self.endpoint.groups.join(body.assoc_group_id, self.peer)
        if group is None:
            raise _Nak(NakReason.NOT_SPECIFIED)
        self.group = group
        self._frag = fragment_size(body.max_xmit_frag, body.max_recv_frag)
        self._multiplexed = bool(flags & PfcFlags.CONC_MPX)
        self._features = agreed.features
        self._contexts = {context.id: context for context in agreed.accepted}
        ack = BindAck(
            self._frag, self._frag, group.id, self.endpoint.secondary_address, agreed.results
        )
        echoed = flags & (PfcFlags.SUPPORT_HEADER_SIGN | PfcFlags.CONC_MPX)
        self._send_leg(ack, pdu, token, FIRST_LAST | echoed)

    def _alter(self, pdu: Pdu, body: AlterContext) -> None:
        assert self.group is not None
        if not body.contexts:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)
        self._check_padding(pdu, _FaultAnswer(FaultStatus.PROTO_ERROR))
        if pdu.auth is not None and pdu.auth.type == AuthType.NONE:
            raise _FaultAnswer(FaultStatus.ACCESS_DENIED)
        try:
            agreed = negotiate(body.contexts, self.endpoint.interfaces, self._contexts)
        except NegotiationError:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR) from None
        if len(self._contexts) + len(agreed.accepted) > self._limits.max_contexts:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)
        if pdu.header.flags & PfcFlags.SUPPORT_HEADER_SIGN:
            self._security.header_signing = True
        token = None
        if pdu.auth is not None:
            try:
                token = self._security.leg(pdu.auth, alter=True)
            except Refused as refused:
                raise _FaultAnswer(refused.fault) from None
        self._contexts.update({context.id: context for context in agreed.accepted})
        resp = AlterContextResp(self._frag, self._frag, self.group.id, "", agreed.results)
        echoed = pdu.header.flags & PfcFlags.SUPPORT_HEADER_SIGN
        self._send_leg(resp, pdu, token, FIRST_LAST | echoed)

    def _auth3(self, pdu: Pdu) -> None:
        if pdu.auth is None:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)
        if pdu.auth.pad_length:
            raise _FaultAnswer(FaultStatus.REMOTE_NO_MEMORY)
        try:
            self._security.auth3(pdu.auth)
        except Refused as refused:
            raise _FaultAnswer(refused.fault) from None

    def _check_padding(self, pdu: Pdu, refusal: Exception) -> None:
        if pdu.auth is not None and pdu.trailer_at - pdu.auth.pad_length < STUB_OFFSET:
            raise refusal

    def _send_leg(
        self, body: BindAck | AlterContextResp, pdu: Pdu, token: bytes | None, flags: int
    ) -> None:
        auth = None
        if pdu.auth is not None:
            asked = pdu.auth
            auth = AuthTrailer(asked.type, asked.level, asked.context_id, token or b"")
        self._send(encode_pdu(body, call_id=pdu.header.call_id, flags=flags, auth=auth))

    # --- requests ---------------------------------------------------------------------------------

    def _request(self, pdu: Pdu, now: float, events: list[Event]) -> None:
        body, flags = pdu.body, pdu.header.flags
        assert isinstance(body, Request)
        if flags & PfcFlags.FIRST:
            call = self._first_fragment(pdu, body, now)
        else:
            call = self._next_fragment(pdu, body)
        if flags & PfcFlags.LAST:
            self._incoming.pop(call.id, None)
            self._check_verification(call)
            self._statistics.calls_in += 1
            self._waiting.append(call)
            self._start(events)

    def _first_fragment(self, pdu: Pdu, body: Request, now: float) -> Call:
        header = pdu.header
        if header.flags & PfcFlags.PENDING_CANCEL:
            raise _FaultAnswer(FaultStatus.NO_CALL_ACTIVE)
        if self._incoming:
            self._check_interrupted(pdu)
            raise self._interleaved(header)
        if self._security.negotiating:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)
        context = self._contexts.get(body.context_id)
        if context is None:
            raise _FaultAnswer(FaultStatus.UNK_IF, final=False)
        channel = self._channel(pdu, body.context_id)
        call = Call(
            header.call_id, context, body.opnum, body.object, header.big_endian, channel, began=now
        )
        if body.alloc_hint > self._limits.max_stub and not header.flags & PfcFlags.LAST:
            raise _denied(context.id)
        call.stub += self._unprotected(pdu, channel, context.id)
        if not header.flags & PfcFlags.LAST:
            self._incoming[call.id] = call
        elif body.opnum >= context.interface.operations:
            raise _FaultAnswer(FaultStatus.OP_RNG_ERROR, context_id=context.id, final=False)
        return call

    def _check_interrupted(self, pdu: Pdu) -> None:
        """A call that begins again has to be signed like the one that it interrupts."""
        before = self._incoming.get(pdu.header.call_id)
        if before is not None and pdu.auth is not None:
            self._unprotected(pdu, before.channel, before.context.id)

    def _interleaved(self, header: Header) -> _FaultAnswer:
        """A call began before the one before it ended: whose fault that is."""
        before = next(iter(self._incoming.values()))
        if self._multiplexed and header.call_id != before.id:
            return _FaultAnswer(FaultStatus.PROTO_ERROR, executed=True)
        return _FaultAnswer(
            FaultStatus.PROTO_ERROR,
            context_id=before.context.id,
            executed=True,
            call_id=before.id,
        )

    def _next_fragment(self, pdu: Pdu, body: Request) -> Call:
        header = pdu.header
        call = self._incoming.get(header.call_id)
        if call is None:
            raise self._without_first(pdu, body)
        if (pdu.auth is None) != (call.channel is None or not call.channel.protects):
            raise _FaultAnswer(FaultStatus.PROTO_ERROR, context_id=call.context.id, executed=True)
        call.stub += self._unprotected(pdu, call.channel, call.context.id)
        if len(call.stub) > self._limits.max_stub:
            raise _denied(call.context.id)
        return call

    def _without_first(self, pdu: Pdu, body: Request) -> _FaultAnswer:
        """A fragment that continues nothing."""
        if self._incoming:
            return self._interleaved(pdu.header)
        if not self._multiplexed:
            return _FaultAnswer(FaultStatus.PROTO_ERROR, executed=True)
        if body.context_id not in self._contexts:
            return _FaultAnswer(FaultStatus.UNK_IF, final=False)
        self._channel(pdu, body.context_id)
        return _FaultAnswer(FaultStatus.PROTO_ERROR, context_id=body.context_id, executed=True)

    def _channel(self, pdu: Pdu, context_id: int) -> Channel | None:
        if self._security.spoiled:
            raise _denied(context_id)
        try:
            return self._security.channel_for(pdu.auth)
        except Refused as refused:
            raise _FaultAnswer(refused.fault, context_id=context_id, executed=True) from None

    def _unprotected(self, pdu: Pdu, channel: Channel | None, context_id: int) -> bytes:
        if channel is None:
            body = pdu.body
            assert isinstance(body, Request)
            return body.stub
        if pdu.auth is None and channel.protects:
            raise _denied(context_id)
        try:
            return self._security.unprotect(channel, pdu)
        except Refused as refused:
            raise _FaultAnswer(refused.fault, context_id=context_id, executed=True) from None

    def _check_verification(self, call: Call) -> None:
        """What the client signed inside the stub must be what the PDU says outside."""
        stub = bytes(call.stub)
        found = find_verification(stub)
        if found is None:
            return
        start, said = found
        context = call.context
        pcontext = (said.interface, said.transfer)
        wrong = said.unknown
        if said.client_header_signing and not self._security.header_signing:
            wrong = True
        if said.interface is not None and pcontext != (context.interface.syntax, context.transfer):
            wrong = True
        if said.header is not None:
            ptype, _, call_id, context_id, opnum = said.header
            actual = (PacketType.REQUEST, call.id, context.id, call.opnum)
            wrong = wrong or (ptype, call_id, context_id, opnum) != actual
        if wrong:
            raise _denied(context.id)
        del call.stub[start:]

    def _start(self, events: list[Event]) -> None:
        """Let waiting calls run: all of them if they may overlap, else one at a time."""
        while self._waiting and (self._multiplexed or not self._running):
            call = self._waiting.popleft()
            self._running.append(call)
            events.append(CallReceived(call))

    def _finish(self, call: Call) -> list[Event]:
        events: list[Event] = []
        if call in self._running:
            self._running.remove(call)
            self._returning.pop(call.id, None)
        self._start(events)
        return events

    def _cancel(self, header: Header, events: list[Event]) -> None:
        for call in self._running:
            if call.id == header.call_id:
                call.cancelled = True
                events.append(CallCancelled(call))

    # --- callbacks --------------------------------------------------------------------------------

    def _callback_answer(self, pdu: Pdu, events: list[Event]) -> None:
        header = pdu.header
        call = next((c for c in self._running if c.id == header.call_id and c.callbacks), None)
        if call is None:
            raise _FaultAnswer(FaultStatus.PROTO_ERROR)
        if isinstance(pdu.body, Fault):
            self._returned(call)
            events.append(CallbackFaulted(call, pdu.body.status))
            return
        assert isinstance(pdu.body, Response)
        stub = self._returning[call.id]
        stub += self._answer_stub(pdu, pdu.body, call)
        if len(stub) > self._limits.max_stub:
            raise _denied(call.context.id)
        if header.flags & PfcFlags.LAST:
            self._returned(call)
            events.append(CallbackReturned(call, bytes(stub), header.big_endian))

    def _answer_stub(self, pdu: Pdu, body: Response, call: Call) -> bytes:
        channel = call.channel
        if channel is None or not channel.protects:
            return body.stub
        if pdu.auth is None:
            raise _denied(call.context.id)
        try:
            return self._security.unprotect(channel, pdu)
        except Refused as refused:
            raise _FaultAnswer(refused.fault, context_id=call.context.id, executed=True) from None

    def _returned(self, call: Call) -> None:
        call.callbacks -= 1

    # --- sending ----------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        self._out.append(data)
        self._statistics.packets_out += 1

    def _send_fragments(self, body: Request | Response, call: Call) -> None:
        for pdu in fragments(
            body,
            call_id=call.id,
            max_frag=self._frag,
            channel=call.channel,
            sign_header=self._security.header_signing,
        ):
            self._send(pdu)

    def _send_fault(self, call_id: int, status: int, context_id: int, *, executed: bool) -> None:
        flags = FIRST_LAST if executed else FIRST_LAST | PfcFlags.DID_NOT_EXECUTE
        self._statistics.faults += 1
        self._send(encode_pdu(Fault(context_id, status), call_id=call_id, flags=flags))

    def _too_big(self, header: Header) -> None:
        if self.group is not None:
            self._send_fault(header.call_id, FaultStatus.PROTO_ERROR, 0, executed=True)
        self._statistics.refused += 1
        self._end()

    def _end(self) -> None:
        self.closing = True
        self._buffer.clear()


def _denied(context_id: int) -> _FaultAnswer:
    return _FaultAnswer(FaultStatus.ACCESS_DENIED, context_id=context_id, executed=True)
