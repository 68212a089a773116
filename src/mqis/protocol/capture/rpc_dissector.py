"""The dissector of DCE/RPC connections (C706, MS-RPCE): binds, calls and their answers.

The side that sends a request is the caller, whichever opened the connection. A request that comes
back under the number of a call that is under way is a callback, and its number counts among the
callbacks of the interface (MS-RPCE 3.3.1.5.9). An answer can be read only with its request: arrays
in it have the sizes that the request named.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

from mqis.protocol.authentication import AuthLevel, auth_type_name
from mqis.protocol.capture.framing import Dissector, Tell
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import Meaning, PacketPosition
from mqis.protocol.capture.rpc_calls import BY_SYNTAX, MISSING, Stub, UnansweredCall, read
from mqis.protocol.rpc.faults import status_name
from mqis.texts import counted
from mqis.wire.errors import WireError
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId, feature_bits
from mqis.wire.rpc.pdu import Pdu, decode_pdu
from mqis.wire.rpc.pdu_bodies import (
    Bind,
    BindAck,
    BindNak,
    ContextElement,
    ContextVerdict,
    Fault,
    Request,
    Response,
    nak_text,
)
from mqis.wire.rpc.pdu_header import HEADER_SIZE, PacketType, PfcFlags, frag_length_in
from mqis.wire.rpc.trailer import AuthTrailer

_TYPES = b"".join(re.escape(bytes([kind])) for kind in PacketType)
#: Version 5.0 or 5.1, a type, any flags, either byte order, ASCII and IEEE.
_BEGINNING = re.compile(rb"\x05[\x00\x01][" + _TYPES + rb"].[\x10\x00]\x00\x00\x00", re.DOTALL)


class _Context(NamedTuple):
    """An accepted presentation context."""

    abstract: SyntaxId
    syntax: Syntax | None


class RpcDissector(Dissector):
    NAME: ClassVar[str] = "rpc"
    HEAD: ClassVar[int] = HEADER_SIZE

    def __init__(self, tell: Tell, limits: CaptureLimits) -> None:
        super().__init__(tell, limits)
        self._proposed: dict[tuple[int, int], tuple[ContextElement, ...]] = {}
        self._contexts: dict[int, _Context] = {}
        #: Losses of each side: a stub that was begun before one is broken.
        self._losses = [0, 0]
        #: By side, call_id and PTYPE.
        self._stubs: dict[tuple[int, int, int], Stub] = {}
        #: By call_id: the call, and within it callbacks and calls in these.
        self._calls: dict[int, list[UnansweredCall]] = {}

    @classmethod
    def length(cls, head: bytes) -> int:
        if not _BEGINNING.match(head):
            raise WireError("this does not begin a PDU", 0)
        return frag_length_in(head)

    @classmethod
    def find(cls, data: bytes | bytearray, at: int) -> int:
        found = _BEGINNING.search(data, at)
        return found.start() if found else -1

    def lost(self, side: int) -> None:
        self._losses[side] += 1

    def end(self, place: PacketPosition) -> None:
        super().end(place)
        for (side, call_id, _), stub in self._stubs.items():
            kind = "request" if stub.is_request else "response"
            reason = f"the last fragments of a {kind} are missing"
            meaning = Meaning(self.NAME, kind, call_id=call_id, error=reason)
            self.tell(side, place, stub.length, meaning)

    def message(self, side: int, data: bytes, place: PacketPosition) -> None:
        try:
            pdu = decode_pdu(data)
        except WireError as error:
            self.tell(side, place, len(data), Meaning(self.NAME, "PDU", error=str(error)))
            return
        if isinstance(pdu.body, Request | Response):
            self._fragment(side, pdu, pdu.body, place)
        else:
            meaning = self._control(side, pdu)
            self.tell(side, place, len(data), meaning._replace(call_id=pdu.header.call_id))

    # --- binding --------------------------------------------------------------------------------

    def _control(self, side: int, pdu: Pdu) -> Meaning:
        body, call_id = pdu.body, pdu.header.call_id
        kind = PacketType(pdu.header.type).name.lower()
        summary = ""
        if isinstance(body, Bind):
            self.opened_by(side)
            self._remember(self._proposed, (side, call_id), body.contexts)
            summary = ", ".join(filter(None, map(proposal, body.contexts)))
        elif isinstance(body, BindAck):
            summary = self._accepted(self._proposed.pop((1 - side, call_id), ()), body)
        elif isinstance(body, BindNak):
            summary = nak_text(body.reason)
        elif isinstance(body, Fault):
            return self._fault(side, call_id, body)
        authenticated = security(pdu.auth)
        summary = ", ".join(filter(None, (summary, authenticated)))
        detail: dict[str, Any] = {"body": body, "security": authenticated or None}
        return Meaning(self.NAME, kind, summary, detail)

    def _accepted(self, proposed: tuple[ContextElement, ...], ack: BindAck) -> str:
        if not proposed:
            return f"{counted(len(ack.results), 'context')}, whose proposal was not captured"
        parts = []
        for element, result in zip(proposed, ack.results, strict=False):
            name = interface_name(element.abstract)
            if result.result == ContextVerdict.ACCEPTANCE:
                syntax = SYNTAXES.get(result.transfer)
                self._contexts[element.context_id] = _Context(element.abstract, syntax)
                parts.append(f"{name} in {syntax.name if syntax else result.transfer}")
            elif result.result != ContextVerdict.NEGOTIATE_ACK:
                parts.append(f"{name} refused")
        return ", ".join(parts)

    # --- calls ----------------------------------------------------------------------------------

    def _fragment(
        self, side: int, pdu: Pdu, body: Request | Response, place: PacketPosition
    ) -> None:
        header = pdu.header
        key = (side, header.call_id, header.type)
        stub = self._stubs.get(key)
        if header.flags & PfcFlags.FIRST or stub is None:
            stub = Stub(pdu, losses=self._losses[side])
            if not header.flags & PfcFlags.FIRST:
                stub.broken = MISSING
            self._remember(self._stubs, key, stub)
        if stub.losses != self._losses[side]:
            stub.broken = MISSING
        stub.extend(pdu, body, self.limits.max_stub)
        if header.flags & PfcFlags.LAST:
            del self._stubs[key]
            if isinstance(stub.first.body, Request):
                call = self._new_call(side, stub.call_id, stub.first.body)
                self._tell_call(side, place, stub, call)
            else:
                self._response(side, place, stub)

    def _new_call(self, side: int, call_id: int, body: Request) -> UnansweredCall:
        stack = self._calls.get(call_id, [])
        unanswered = bool(stack) and stack[-1].side == side  # its answer was not captured
        if unanswered or len(stack) >= self.limits.max_nested:
            stack = []
        is_callback = bool(stack) and stack[0].side != side
        call = self._call(side, body, is_callback)
        self._remember(self._calls, call_id, [*stack, call])
        return call

    def _call(self, side: int, body: Request, is_callback: bool) -> UnansweredCall:
        name = f"opnum {body.opnum}"
        context = self._contexts.get(body.context_id)
        if context is None:
            return UnansweredCall(side, self.NAME, name, unknown="its bind was not captured")
        interface = BY_SYNTAX.get(context.abstract)
        if interface is None:
            return UnansweredCall(side, self.NAME, name, unknown=f"of interface {context.abstract}")
        described = interface.description
        operations = described.callbacks if is_callback else described.operations
        found = next((each for each in operations if each.opnum == body.opnum), None)
        if found is not None:
            name = found.name
        call = UnansweredCall(side, interface.name, name, interface, found, context.syntax)
        call.is_callback = is_callback
        return call

    def _response(self, side: int, place: PacketPosition, stub: Stub) -> None:
        call = self._answered(side, stub.call_id)
        if call is not None:
            self._tell_call(side, place, stub, call)
            return
        meaning = Meaning(
            self.NAME, "response", "its request was not captured", call_id=stub.call_id
        )
        self.tell(side, place, stub.length, meaning._replace(error=stub.broken or None))

    def _fault(self, side: int, call_id: int, body: Fault) -> Meaning:
        call = self._answered(side, call_id)
        protocol, name = (self.NAME, "") if call is None else (call.protocol, f"{call.name} ")
        return Meaning(protocol, f"{name}fault", status_name(body.status), body)

    def _answered(self, side: int, call_id: int) -> UnansweredCall | None:
        """The call that ``side`` answers; none if its request was not captured."""
        stack = self._calls.get(call_id, [])
        while stack:
            call = stack.pop()
            if not stack:
                del self._calls[call_id]
            if call.side != side:
                return call
        return None

    def _tell_call(
        self, side: int, place: PacketPosition, stub: Stub, call: UnansweredCall
    ) -> None:
        explained = read(call, stub)
        prefix = "callback" if call.is_callback and stub.is_request else ""
        meaning = Meaning(
            call.protocol,
            f"{call.name} {'request' if stub.is_request else 'response'}",
            ": ".join(filter(None, (prefix, explained.summary))),
            explained.detail,
            stub.call_id,
            machines=explained.machines,
            error=explained.error,
        )
        self.tell(side, place, stub.length, meaning)
        for length, inner in explained.inner:
            self.tell(side, place, length, inner._replace(call_id=stub.call_id))

    def _remember(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Adds an entry; drops the oldest one beyond ``max_calls``."""
        table.pop(key, None)
        if len(table) >= self.limits.max_calls:
            del table[next(iter(table))]
        table[key] = value


# --- Descriptions of binds and their security -----------------------------------------------------

SYNTAXES = {NDR20: Syntax.NDR20, NDR64: Syntax.NDR64}


def interface_name(syntax: SyntaxId) -> str:
    known = BY_SYNTAX.get(syntax)
    return str(syntax) if known is None else known.description.name


def proposal(element: ContextElement) -> str:
    """Describes a proposed context; '' for one that only negotiates features."""
    syntaxes = []
    for transfer in element.transfers:
        if feature_bits(transfer) is not None:
            return ""
        syntax = SYNTAXES.get(transfer)
        syntaxes.append(str(transfer) if syntax is None else syntax.name)
    return f"{interface_name(element.abstract)} in {' or '.join(syntaxes)}"


def security(auth: AuthTrailer | None) -> str:
    if auth is None:
        return ""
    known = auth.level in list(AuthLevel)
    level = AuthLevel(auth.level).name.lower() if known else f"level {auth.level}"
    return f"{auth_type_name(auth.type)}, {level}"
