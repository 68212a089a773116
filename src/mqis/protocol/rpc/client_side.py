"""The client's side of one connection.

    connection = ClientConnection()
    connection.bind([interface])
    for event in connection.receive(data): ...        # Bound, then Answered, Faulted, ...
    call_id = connection.request(context, opnum, stub)
    transport.write(connection.data_to_send())
    if connection.closed: ...                         # the reason that the association ended

A server that breaks the protocol ends the association: every open call fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mqis.protocol.authentication import AuthenticationError, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.faults import BindFaultError, FaultStatus, RpcConnectionError
from mqis.protocol.rpc.negotiation import MAX_FRAG, MIN_FRAG
from mqis.protocol.rpc.server_calls import fragments
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.pdu import Pdu, decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    ContextElement,
    ContextVerdict,
    Fault,
    Orphaned,
    Request,
    Response,
    Shutdown,
    nak_text,
)
from mqis.wire.rpc.pdu_header import FIRST_LAST, HEADER_SIZE, Header, PacketType, PfcFlags

#: Stub bytes of one answer; more end the association.
MAX_STUB = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AgreedContext:
    """A presentation context that the server accepted."""

    id: int
    interface: SyntaxId
    transfer: SyntaxId


@dataclass(frozen=True, slots=True)
class Bound:
    """The association is ready for calls; ``contexts`` are those of this bind or alter."""

    contexts: tuple[AgreedContext, ...]


@dataclass(frozen=True, slots=True)
class CallReturned:
    """A call returned."""

    call_id: int
    stub: bytes
    big_endian: bool


@dataclass(frozen=True, slots=True)
class Faulted:
    """A call failed; ``executed`` False means that it certainly did not run."""

    call_id: int
    status: int
    executed: bool


@dataclass(frozen=True, slots=True)
class CalledBack:
    """The server calls back while ``call_id`` runs, and waits for the answer."""

    call_id: int
    opnum: int
    stub: bytes
    big_endian: bool


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """The server asks the client to close this association when it is idle."""


Event = Bound | CallReturned | Faulted | CalledBack | ShutdownAsked


@dataclass(slots=True)
class _Open:
    """A call that waits for its answer."""

    context: AgreedContext
    channel: Channel | None
    stub: bytearray = field(default_factory=bytearray)
    #: The callback so far; None while none is arriving.
    callback: bytearray | None = None
    callback_context: int = 0
    #: True while the application has a callback to answer.
    called_back: bool = False


class ClientConnection:
    """One connection to a server; calls overlap if the server allows it, else they queue."""

    def __init__(self, max_frag: int = MAX_FRAG, max_stub: int = MAX_STUB) -> None:
        self.group_id = 0
        self.multiplexed = False
        self.closed: RpcConnectionError | None = None
        self._max_frag = max_frag
        self._max_receive = max(max_frag, MAX_FRAG)
        self._max_stub = max_stub
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._contexts: dict[int, AgreedContext] = {}
        self._proposed: tuple[ContextElement, ...] = ()
        self._agreed: tuple[AgreedContext, ...] = ()
        self._channel: Channel | None = None
        self._sign_header = False
        self._next_call = 1
        self._next_context = 0
        self._calls: dict[int, _Open] = {}
        #: Abandoned calls that the server may still answer.
        self._orphans: set[int] = set()
        #: Calls that have not been sent, because the server takes one at a time.
        self._queue: deque[tuple[int, Request]] = deque()
        #: The call_id of the bind or alter that waits for its answer, and the type of that answer.
        self._leg_call: int | None = None
        self._leg_answer: type[BindAck] = BindAck

    # --- the driver's side ------------------------------------------------------------------------

    def bind(
        self,
        interfaces: Sequence[SyntaxId],
        *,
        transfers: Sequence[SyntaxId] = (NDR20, NDR64),
        group_id: int = 0,
        channel: Channel | None = None,
    ) -> None:
        """Opens the association; proposes one element per interface and transfer syntax."""
        self._channel = channel
        self._propose(interfaces, transfers)
        flags = FIRST_LAST | PfcFlags.CONC_MPX
        if channel is not None and channel.protects:
            flags |= PfcFlags.SUPPORT_HEADER_SIGN
        token = None if channel is None else channel.context.step(None)
        body = Bind(self._max_frag, self._max_frag, group_id, self._proposed)
        self._send_leg(body, flags, token)

    def alter(self, interfaces: Sequence[SyntaxId], transfers: Sequence[SyntaxId]) -> None:
        """Proposes more contexts on the same association."""
        self._check_open()
        if self._leg_call is not None:
            raise ValueError("the server has not answered the bind or alter before this one")
        self._propose(interfaces, transfers)
        body = AlterContext(self._max_frag, self._max_frag, self.group_id, self._proposed)
        self._leg_call, self._leg_answer = self._new_call(), AlterContextResp
        self._send(encode_pdu(body, call_id=self._leg_call, flags=FIRST_LAST))

    def request(
        self, context: AgreedContext, opnum: int, stub: bytes, target: Guid | None = None
    ) -> int:
        """Starts a call; its answer is an event with the call_id that this returns."""
        self._check_open()
        call_id = self._new_call()
        request = Request(context.id, opnum, stub, target)
        busy = bool(self._calls or self._orphans)
        self._calls[call_id] = _Open(context, self._channel)
        if busy and not self.multiplexed:
            self._queue.append((call_id, request))
        else:
            self._send_fragments(request, call_id, self._channel)
        return call_id

    def answer_callback(self, call_id: int, stub: bytes) -> None:
        """Answers a callback, unless its call was abandoned meanwhile."""
        call = self._answerable(call_id)
        if call is not None:
            self._send_fragments(Response(call.callback_context, stub), call_id, call.channel)

    def fault_callback(self, call_id: int, status: int) -> None:
        """Answers a callback with a fault."""
        call = self._answerable(call_id)
        if call is not None:
            fault = Fault(call.callback_context, status)
            self._send(encode_pdu(fault, call_id=call_id, flags=FIRST_LAST))

    def _answerable(self, call_id: int) -> _Open | None:
        call = self._calls.get(call_id)
        if call is None or self.closed is not None:
            return None
        if not call.called_back:
            raise ValueError(f"call {call_id} was not called back")
        call.called_back = False
        return call

    def orphan(self, call_id: int) -> None:
        """Abandons a call: its answer, if it comes, is dropped."""
        if self._calls.pop(call_id, None) is None:
            return
        if self._unsent(call_id):
            self._queue = deque(entry for entry in self._queue if entry[0] != call_id)
            return
        self._orphans.add(call_id)
        self._send(encode_pdu(Orphaned(), call_id=call_id, flags=FIRST_LAST))

    def _unsent(self, call_id: int) -> bool:
        return any(queued == call_id for queued, _ in self._queue)

    def _check_open(self) -> None:
        if self.closed is not None:
            raise RpcConnectionError(str(self.closed))

    def data_to_send(self) -> bytes:
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive(self, data: bytes) -> list[Event]:
        """Takes bytes from the server. If they end the association, ``closed`` is the reason.

        Events before that are still returned, so no answer is lost because of what follows it.
        """
        events: list[Event] = []
        if self.closed is not None:
            return events
        buffer = self._buffer
        buffer += data
        try:
            while len(buffer) >= HEADER_SIZE:
                header = Header.decode(buffer)
                size = header.frag_length
                if not HEADER_SIZE <= size <= self._max_receive:
                    raise RpcConnectionError(f"the server sent a PDU of {size} bytes")
                if len(buffer) < size:
                    break
                pdu = bytes(buffer[:size])
                del buffer[:size]
                self._handle(decode_pdu(pdu, header), events)
        except (WireError, AuthenticationError) as error:
            self._break(RpcConnectionError(f"the server broke the protocol: {error}"))
        except RpcConnectionError as error:
            self._break(error)
        return events

    def _break(self, error: RpcConnectionError) -> None:
        self.closed = error
        self._buffer.clear()
        self._calls.clear()
        self._orphans.clear()
        self._queue.clear()

    # --- binding ----------------------------------------------------------------------------------

    def _propose(self, interfaces: Sequence[SyntaxId], transfers: Sequence[SyntaxId]) -> None:
        elements = []
        for interface in interfaces:
            for transfer in transfers:
                elements.append(ContextElement(self._next_context, interface, (transfer,)))
                self._next_context += 1
        self._proposed = tuple(elements)

    def _send_leg(self, body: Bind | AlterContext | Auth3, flags: int, token: bytes | None) -> None:
        if self._leg_call is None:
            self._leg_call = self._new_call()
        self._leg_answer = AlterContextResp if isinstance(body, AlterContext) else BindAck
        auth = None
        if self._channel is not None:
            auth = self._channel.trailer(0, token or b"")
        self._send(encode_pdu(body, call_id=self._leg_call, flags=flags, auth=auth))

    def _ack(self, pdu: Pdu, body: BindAck, events: list[Event]) -> None:
        if pdu.header.call_id != self._leg_call or type(body) is not self._leg_answer:
            raise RpcConnectionError("the server answered a bind or alter that was not sent")
        if not isinstance(body, AlterContextResp):
            self._accepted(pdu, body)
        if self._proposed:
            self._agree(body)
        if self._next_leg(pdu):
            self._leg_call = None
            events.append(Bound(self._agreed))

    def _accepted(self, pdu: Pdu, body: BindAck) -> None:
        self.group_id = body.assoc_group_id
        self._max_frag = max(MIN_FRAG, min(self._max_frag, body.max_recv_frag))
        self.multiplexed = bool(pdu.header.flags & PfcFlags.CONC_MPX)
        protects = self._channel is not None and self._channel.protects
        self._sign_header = protects and bool(pdu.header.flags & PfcFlags.SUPPORT_HEADER_SIGN)

    def _agree(self, body: BindAck) -> None:
        if len(body.results) != len(self._proposed):
            raise RpcConnectionError("the server answered another number of contexts")
        pairs = zip(self._proposed, body.results, strict=True)
        self._agreed = tuple(
            AgreedContext(element.context_id, element.abstract, result.transfer)
            for element, result in pairs
            if result.result == ContextVerdict.ACCEPTANCE
        )
        self._contexts.update({context.id: context for context in self._agreed})
        self._proposed = ()

    def _next_leg(self, pdu: Pdu) -> bool:
        """Continues authentication; returns True once there is nothing left to send."""
        channel = self._channel
        if channel is None or channel.complete:
            return True
        if pdu.auth is None:
            raise RpcConnectionError("the server did not go on with authentication")
        token = channel.context.step(pdu.auth.token)
        if not token and channel.complete:
            return True
        if channel.complete and channel.type == AuthType.NTLM:
            self._send_leg(Auth3(), FIRST_LAST, token)
            return True
        context = next(iter(self._contexts.values()), None)
        if context is None:
            raise RpcConnectionError("the server accepted no context to authenticate for")
        element = ContextElement(context.id, context.interface, (context.transfer,))
        self._proposed = ()
        body = AlterContext(self._max_frag, self._max_frag, self.group_id, (element,))
        self._send_leg(body, FIRST_LAST, token)
        return False

    # --- PDUs -------------------------------------------------------------------------------------

    def _handle(self, pdu: Pdu, events: list[Event]) -> None:
        body = pdu.body
        if isinstance(body, Response):
            self._response(pdu, body, events)
        elif isinstance(body, Fault):
            self._fault(pdu, body, events)
        elif isinstance(body, Request):
            self._called_back(pdu, body, events)
        elif isinstance(body, BindAck):
            self._ack(pdu, body, events)
        elif isinstance(body, BindNak):
            raise RpcConnectionError(f"the server refused the bind: {nak_text(body.reason)}")
        elif isinstance(body, Shutdown):
            events.append(ShutdownAsked())
        else:
            name = PacketType(pdu.header.type).name.lower()
            raise RpcConnectionError(f"the server sent a {name}, which only clients do")

    def _stub(self, pdu: Pdu, body: Request | Response, channel: Channel | None) -> bytes:
        if channel is None or not channel.protects:
            return body.stub
        return channel.unprotect(pdu, sign_header=self._sign_header)

    def _response(self, pdu: Pdu, body: Response, events: list[Event]) -> None:
        call_id, last = pdu.header.call_id, pdu.header.flags & PfcFlags.LAST
        call = self._calls.get(call_id)
        if call is None:
            self._drop_orphan(call_id, "answered", last=bool(last))
            self._stub(pdu, body, self._channel)  # signatures are numbered, so none is skipped
            return
        if self._unsent(call_id):
            raise RpcConnectionError(f"the server answered call {call_id} before it was sent")
        call.stub += self._stub(pdu, body, call.channel)
        if len(call.stub) > self._max_stub:
            raise RpcConnectionError(f"an answer of more than {self._max_stub} bytes")
        if last:
            events.append(CallReturned(call_id, bytes(call.stub), pdu.header.big_endian))
            self._ended(call_id)

    def _fault(self, pdu: Pdu, body: Fault, events: list[Event]) -> None:
        call_id = pdu.header.call_id
        if call_id == self._leg_call:
            raise BindFaultError(body.status)
        if call_id not in self._calls:
            self._drop_orphan(call_id, "faulted", last=True)
            return
        executed = not pdu.header.flags & PfcFlags.DID_NOT_EXECUTE
        events.append(Faulted(call_id, body.status, executed))
        self._ended(call_id)

    def _drop_orphan(self, call_id: int, verb: str, *, last: bool) -> None:
        """Drops the answer to an abandoned call; any other unexpected answer is an error."""
        if call_id not in self._orphans:
            raise RpcConnectionError(f"the server {verb} call {call_id}, which was not made")
        if last:
            self._orphans.discard(call_id)
            self._send_next()

    def _ended(self, call_id: int) -> None:
        del self._calls[call_id]
        self._send_next()

    def _send_next(self) -> None:
        if self._queue:
            call_id, request = self._queue.popleft()
            self._send_fragments(request, call_id, self._channel)

    def _called_back(self, pdu: Pdu, body: Request, events: list[Event]) -> None:
        call_id = pdu.header.call_id
        if call_id in self._orphans:
            self._refuse_orphaned_callback(pdu, body)
            return
        call = self._calls.get(call_id)
        if call is None or self._unsent(call_id):
            raise RpcConnectionError("the server called back outside of a call")
        if call.called_back:
            raise RpcConnectionError("the server called back before its last callback was answered")
        if pdu.header.flags & PfcFlags.FIRST:
            call.callback = bytearray()
            call.callback_context = body.context_id
        if call.callback is None:
            raise RpcConnectionError("a callback without its first fragment")
        call.callback += self._stub(pdu, body, call.channel)
        if len(call.callback) > self._max_stub:
            raise RpcConnectionError(f"a callback of more than {self._max_stub} bytes")
        if pdu.header.flags & PfcFlags.LAST:
            stub, call.callback, call.called_back = bytes(call.callback), None, True
            events.append(CalledBack(call_id, body.opnum, stub, pdu.header.big_endian))

    def _refuse_orphaned_callback(self, pdu: Pdu, body: Request) -> None:
        """Refuses a callback of an abandoned call, so that the server does not wait for it."""
        self._stub(pdu, body, self._channel)
        if pdu.header.flags & PfcFlags.LAST:
            fault = Fault(body.context_id, FaultStatus.CANCEL)
            self._send(encode_pdu(fault, call_id=pdu.header.call_id, flags=FIRST_LAST))

    # --- sending ----------------------------------------------------------------------------------

    def _new_call(self) -> int:
        call_id = self._next_call
        self._next_call = self._next_call % 0xFFFF_FFFF + 1
        return call_id

    def _send(self, data: bytes) -> None:
        self._out.append(data)

    def _send_fragments(
        self, body: Request | Response, call_id: int, channel: Channel | None
    ) -> None:
        self._out.extend(
            fragments(
                body,
                call_id=call_id,
                max_frag=self._max_frag,
                channel=channel,
                sign_header=self._sign_header,
            )
        )
