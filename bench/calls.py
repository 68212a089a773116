"""The calls of a directory client as prepared bytes: RPC requests, and checks of their replies.

A stub that needs a context handle is prepared with a placeholder, which the real one replaces.
There are no signatures: the clients request none and have no security context.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from bench.load import LoadError, Operation
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.query_stubs import (
    MAX_ENTRIES,
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import mgmt
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.interfaces import Operation as Method
from mqis.wire.rpc.pdu import STUB_OFFSET, encode_pdu
from mqis.wire.rpc.pdu_bodies import Bind, ContextElement
from mqis.wire.rpc.pdu_header import DREP, FIRST_LAST, HEADER_SIZE, PacketType, PfcFlags

#: The largest fragment that Windows offers.
MAX_FRAG = 5840
#: MQRESTRICTION's PREQ.
_EQUAL = 4
_HANDLE_BYTES = 20
DSCOMM, _MGMT = 0, 1

_HEAD = Struct("<BBBB4sHHIIHH")
_AUTH, _ROWS = (ContextHandle(Guid(text)) for text in (b"stands for auth.", b"stands for rows."))
_AUTH_BYTES, _ROWS_BYTES = (bytes(4) + handle.uuid.raw for handle in (_AUTH, _ROWS))


class Call(NamedTuple):
    """A method's number, its stub, and bytes that a right reply contains."""

    opnum: int
    stub: bytes
    content: bytes = b""
    context: int = DSCOMM


class Lookup(NamedTuple):
    """S_DSLookupBegin, and the number of values that S_DSLookupNext has to return."""

    begin: Call
    values: int


def _stub(method: Method[Any, Any], request: object) -> bytes:
    return method.request.encode(request, Syntax.NDR20)


def listening() -> Call:
    """A call of is_server_listening, which does nothing."""
    reply = mgmt.IS_SERVER_LISTENING.response.encode(mgmt.Listening(0, 1), Syntax.NDR20)
    return Call(mgmt.IS_SERVER_LISTENING.opnum, b"", reply, _MGMT)


def get_props(path: str, ids: Sequence[int], content: str) -> Call:
    nothing = (VarType.NULL,) * len(ids)
    request = dscomm.GetProps(ObjectType.QUEUE, path, tuple(ids), nothing, _AUTH, 0)
    return Call(
        dscomm.GET_PROPS.opnum, _stub(dscomm.GET_PROPS, request), content.encode("utf-16-le")
    )


def create_queue(path: str, properties: Properties, descriptor: bytes) -> bytes:
    request = dscomm.CreateObject(
        ObjectType.QUEUE, path, descriptor, tuple(properties), tuple(properties.values()), None
    )
    return _stub(dscomm.CREATE_OBJECT, request)


def lookup(propid: int, constant: PropVariant, columns: Sequence[int], rows: int) -> Lookup:
    """A lookup of the objects whose property equals a constant."""
    restriction = RestrictionSet((PropertyRestriction(_EQUAL, propid, constant),))
    request = dscomm.LookupBegin(None, restriction, ColumnSet(tuple(columns)), None, _AUTH)
    begin = Call(dscomm.LOOKUP_BEGIN.opnum, _stub(dscomm.LOOKUP_BEGIN, request))
    return Lookup(begin, rows * len(columns))


def lookup_of_all(columns: Sequence[int], sort: Sequence[int]) -> Call:
    """S_DSLookupBegin without a restriction."""
    keys = SortSet(tuple(SortColumn(propid, 0) for propid in sort)) if sort else None
    request = dscomm.LookupBegin(None, None, ColumnSet(tuple(columns)), keys, _AUTH)
    return Call(dscomm.LOOKUP_BEGIN.opnum, _stub(dscomm.LOOKUP_BEGIN, request))


_VALIDATE = Call(
    dscomm.VALIDATE_SERVER.opnum,
    _stub(dscomm.VALIDATE_SERVER, dscomm.ValidateServer(Guid.NULL, 0, 1, 0, b"")),
)
_NEXT = Call(
    dscomm.LOOKUP_NEXT.opnum,
    _stub(dscomm.LOOKUP_NEXT, dscomm.LookupNext(_ROWS, MAX_ENTRIES, _AUTH, 0)),
)
_END = Call(dscomm.LOOKUP_END.opnum, _stub(dscomm.LOOKUP_END, dscomm.HandleGiven(_ROWS)))
_BIND = encode_pdu(
    Bind(
        MAX_FRAG,
        MAX_FRAG,
        0,
        (
            ContextElement(DSCOMM, dscomm.SYNTAX, (NDR20,)),
            ContextElement(_MGMT, mgmt.SYNTAX, (NDR20,)),
        ),
    ),
    call_id=1,
    flags=FIRST_LAST,
)


class RpcPeer:
    """The ``load.Peer`` of a directory server: binds, and validates with an empty context."""

    def __init__(self) -> None:
        self._buffer = b""
        self._stubs: list[bytes] = []
        self._call_id = 1
        self._auth = b""

    def feed(self, data: bytes) -> bytes | None:
        """Returns the stub of the response once all its fragments are complete."""
        buffer = self._buffer + data if self._buffer else data
        at = 0
        while len(buffer) >= at + HEADER_SIZE:
            end = at + int.from_bytes(buffer[at + 8 : at + 10], "little")
            if len(buffer) < end:
                break
            kind, flags = buffer[at + 2], buffer[at + 3]
            if kind == PacketType.RESPONSE:
                self._stubs.append(buffer[at + STUB_OFFSET : end])
            elif kind != PacketType.BIND_ACK:
                raise LoadError(f"PDU of type {kind} in answer: {buffer[at:end].hex()}")
            at = end
            if flags & PfcFlags.LAST:
                stub, self._stubs, self._buffer = b"".join(self._stubs), [], buffer[at:]
                return stub
        self._buffer = buffer[at:]
        return None

    def _request(self, call: Call, rows: bytes = b"") -> bytes:
        stub = call.stub.replace(_AUTH_BYTES, self._auth)
        if rows:
            stub = stub.replace(_ROWS_BYTES, rows)
        return self.framed(call, stub)

    def framed(self, call: Call, stub: bytes) -> bytes:
        """The PDU of a request."""
        self._call_id += 1
        size = STUB_OFFSET + len(stub)
        head = (5, 0, PacketType.REQUEST, FIRST_LAST, DREP, size, 0, self._call_id)
        return _HEAD.pack(*head, len(stub), call.context, call.opnum) + stub

    # --- operations -------------------------------------------------------------------------------

    def greet(self) -> Operation:
        yield _BIND
        yield from self.validate()

    def validate(self) -> Operation:
        reply = yield self._request(_VALIDATE)
        self._auth = _succeeded(reply)[:_HANDLE_BYTES]

    def call(self, call: Call) -> Operation:
        """Makes one call, which must succeed; all except ``listening`` end in an HRESULT."""
        reply = yield self._request(call)
        if call.content not in reply:
            raise LoadError(f"call {call.opnum} returned {reply.hex()}")
        if call.context == DSCOMM:
            _succeeded(reply)

    def create(self, stub: bytes) -> Operation:
        return self.call(Call(dscomm.CREATE_OBJECT.opnum, stub))

    def look_up(self, lookup: Lookup) -> Operation:
        """Makes the calls of a lookup: three, or more if one page does not hold all values."""
        begun = yield self._request(lookup.begin)
        rows = _succeeded(begun)[:_HANDLE_BYTES]
        found, page = 0, MAX_ENTRIES
        while page == MAX_ENTRIES:
            reply = yield self._request(_NEXT, rows)
            page = int.from_bytes(_succeeded(reply)[:4], "little")
            found += page
        if found != lookup.values:
            raise LoadError(f"a lookup gave {found} values instead of {lookup.values}")
        _succeeded((yield self._request(_END, rows)))


def _succeeded(stub: bytes) -> bytes:
    if stub[-4:] != b"\0\0\0\0":
        raise LoadError(f"the call failed: 0x{stub[-4:][::-1].hex()}")
    return stub
