"""Whole PDUs: header, body, security trailer.

Requests and responses are the hot path and have their own code; the rare types use ``Fields``. A
signature covers exactly the bytes on the wire, so a decoded ``Pdu`` keeps its bytes and the offsets
of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.rpc.pdu_bodies import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    CoCancel,
    Fault,
    Orphaned,
    Request,
    Response,
    Shutdown,
)
from mqis.wire.rpc.pdu_header import (
    DREP,
    FIRST_LAST,
    HEADER_SIZE,
    VERSION,
    VERSION_MINOR,
    Fields,
    Header,
    PacketType,
    PfcFlags,
)
from mqis.wire.rpc.trailer import TRAILER_SIZE, AuthTrailer, fixed_part_at
from mqis.wire.writer import Writer

Body = (
    Request
    | Response
    | Fault
    | Bind
    | BindAck
    | BindNak
    | AlterContext
    | AlterContextResp
    | Auth3
    | Shutdown
    | CoCancel
    | Orphaned
)

STUB_OFFSET = 24
OBJECT_STUB_OFFSET = 40
#: The greatest frag_length, a u16.
MAX_PDU = 0xFFFF

_CALL_LITTLE = Struct("<IHH")
_CALL_BIG = Struct(">IHH")
_CALL_HEAD = Struct("<BBBB4sHHIIHH")

#: The first bytes of a request in one fragment, without object, from a little-endian peer.
_WHOLE = bytes((VERSION, VERSION_MINOR, PacketType.REQUEST, FIRST_LAST)) + DREP
_WHOLE_REQUEST = Struct("<8xHHIIHH")
_RESPONSE = int(PacketType.RESPONSE)

_BODIES = {
    PacketType.FAULT: Fault,
    PacketType.BIND: Bind,
    PacketType.BIND_ACK: BindAck,
    PacketType.BIND_NAK: BindNak,
    PacketType.ALTER_CONTEXT: AlterContext,
    PacketType.ALTER_CONTEXT_RESP: AlterContextResp,
    PacketType.AUTH3: Auth3,
    PacketType.SHUTDOWN: Shutdown,
    PacketType.CO_CANCEL: CoCancel,
    PacketType.ORPHANED: Orphaned,
}


@dataclass(frozen=True, slots=True)
class Pdu:
    """A decoded PDU, with its bytes and the offsets of the parts that a signature covers."""

    header: Header
    body: Body
    auth: AuthTrailer | None
    data: bytes
    #: The offsets of the stub and of the security trailer (or of the PDU's end).
    stub_at: int
    trailer_at: int

    @property
    def signed_parts(self) -> tuple[bytes, bytes, bytes]:
        """The header with the fixed fields, the stub with its padding, the trailer's fixed part."""
        end = self.trailer_at + TRAILER_SIZE if self.auth is not None else self.trailer_at
        return (
            self.data[: self.stub_at],
            self.data[self.stub_at : self.trailer_at],
            self.data[self.trailer_at : end],
        )


def decode_pdu(data: bytes, header: Header | None = None) -> Pdu:
    """Decodes ``data``, which is exactly one PDU."""
    header = header or Header.decode(data)
    if header.frag_length != len(data):
        raise WireError(f"frag_length is {header.frag_length}, the PDU has {len(data)} bytes", 8)
    auth, end = _trailer(data, header)
    body: Body
    if header.type == PacketType.REQUEST:
        body, stub_at = _request(data, header, end)
    elif header.type == PacketType.RESPONSE:
        body, stub_at = _response(data, header, end)
    else:
        kind = _BODIES.get(header.type)  # type: ignore[call-overload]
        if kind is None:
            raise WireError(f"packet type {header.type} is not connection-oriented", 2)
        fields = Fields(data, HEADER_SIZE, end, big_endian=header.big_endian)
        body, stub_at = kind.decode(fields), HEADER_SIZE
    return Pdu(header, body, auth, data, stub_at, end)


def _trailer(data: bytes, header: Header) -> tuple[AuthTrailer | None, int]:
    if not header.auth_length:
        return None, len(data)
    start = len(data) - header.auth_length - TRAILER_SIZE
    if start < HEADER_SIZE:
        raise WireError(f"auth_length {header.auth_length} overlaps the header", 10)
    auth = AuthTrailer.decode(data, start, len(data), big_endian=header.big_endian)
    return auth, start


def _request(data: bytes, header: Header, end: int) -> tuple[Request, int]:
    stub_at = OBJECT_STUB_OFFSET if header.flags & PfcFlags.OBJECT_UUID else STUB_OFFSET
    if end < stub_at:
        raise WireError(f"a request has at least {stub_at} bytes", end)
    form = _CALL_BIG if header.big_endian else _CALL_LITTLE
    hint, context_id, opnum = form.unpack_from(data, HEADER_SIZE)
    target = None
    if stub_at == OBJECT_STUB_OFFSET:
        raw = data[STUB_OFFSET:OBJECT_STUB_OFFSET]
        target = Guid.from_big_endian(raw) if header.big_endian else Guid(raw)
    return Request(context_id, opnum, data[stub_at:end], target, hint), stub_at


def whole_request(data: bytes) -> tuple[int, int, int, bytes] | None:
    """The call, context, opnum and stub of a request that is all of ``data`` and has no trailer.

    None for anything else, valid or not: ``decode_pdu`` handles that.
    """
    if not data.startswith(_WHOLE) or len(data) < STUB_OFFSET:
        return None
    size, auth_length, call_id, _, context_id, opnum = _WHOLE_REQUEST.unpack_from(data)
    if size != len(data) or auth_length:
        return None
    return call_id, context_id, opnum, data[STUB_OFFSET:]


class SignedRequest(NamedTuple):
    """The fields of a request in one fragment that carries a security trailer."""

    call_id: int
    context_id: int
    opnum: int
    trailer_at: int
    auth_type: int
    auth_level: int
    auth_context_id: int
    pad_length: int


def signed_request(data: bytes) -> SignedRequest | None:
    """The fields of a request that is all of ``data`` and has a security trailer.

    None for anything else, valid or not: ``decode_pdu`` handles that.
    """
    if not data.startswith(_WHOLE) or len(data) < STUB_OFFSET:
        return None
    size, auth_length, call_id, _, context_id, opnum = _WHOLE_REQUEST.unpack_from(data)
    trailer_at = size - auth_length - TRAILER_SIZE
    if size != len(data) or not auth_length or trailer_at < STUB_OFFSET:
        return None
    return SignedRequest(call_id, context_id, opnum, trailer_at, *fixed_part_at(data, trailer_at))


def _response(data: bytes, header: Header, end: int) -> tuple[Response, int]:
    if end < STUB_OFFSET:
        raise WireError(f"a response has at least {STUB_OFFSET} bytes", end)
    form = _CALL_BIG if header.big_endian else _CALL_LITTLE
    hint, context_id, _ = form.unpack_from(data, HEADER_SIZE)
    return Response(context_id, data[STUB_OFFSET:end], hint, data[22]), STUB_OFFSET


def encode_pdu(body: Body, *, call_id: int, flags: int, auth: AuthTrailer | None = None) -> bytes:
    """Encodes a PDU with its token as given (authentication steps are never signed)."""
    tail = b""
    if auth is not None:
        tail = bytes(auth.pad_length) + auth.encode_fixed() + auth.token
    auth_length = 0 if auth is None else len(auth.token)
    if isinstance(body, Request | Response):
        size = call_stub_offset(body) + len(body.stub) + len(tail)
        head = call_head(
            body, flags, call_id, body.alloc_hint, size=_checked(size), auth_length=auth_length
        )
        return head + body.stub + tail
    writer = Writer()
    writer.bytes(bytes(HEADER_SIZE))
    body.encode(writer)
    size = _checked(len(writer) + len(tail))
    header = Header(body.TYPE, flags, call_id, size, auth_length)
    return header.encode() + writer.getvalue()[HEADER_SIZE:] + tail


def call_head(
    body: Request | Response,
    flags: int,
    call_id: int,
    alloc_hint: int,
    *,
    size: int,
    auth_length: int = 0,
) -> bytes:
    """The bytes before the stub in one fragment of ``body``; the fragment has ``size`` bytes."""
    target, last = b"", 0
    if isinstance(body, Request):
        last = body.opnum
        if body.object is not None:
            target, flags = body.object.raw, flags | PfcFlags.OBJECT_UUID
    else:
        last = body.cancel_count
    try:
        head = _CALL_HEAD.pack(
            VERSION,
            VERSION_MINOR,
            body.TYPE,
            flags,
            DREP,
            size,
            auth_length,
            call_id,
            alloc_hint,
            body.context_id,
            last,
        )
    except struct_error as error:
        raise ValueError(f"{body} has a field that does not fit: {error}") from None
    return head + target


def whole_response(call_id: int, context_id: int, stub: bytes) -> bytes:
    """Encodes an unprotected response that fits in one PDU, as nearly all do."""
    size = len(stub)
    return whole_response_head(call_id, context_id, size, STUB_OFFSET + size) + stub


def whole_response_head(
    call_id: int, context_id: int, alloc_hint: int, size: int, auth_length: int = 0
) -> bytes:
    """The bytes before the stub of a response in one PDU, which has ``size`` bytes."""
    return _CALL_HEAD.pack(
        VERSION,
        VERSION_MINOR,
        _RESPONSE,
        FIRST_LAST,
        DREP,
        size,
        auth_length,
        call_id,
        alloc_hint,
        context_id,
        0,
    )


def call_stub_offset(body: Request | Response) -> int:
    has_object = isinstance(body, Request) and body.object is not None
    return OBJECT_STUB_OFFSET if has_object else STUB_OFFSET


def _checked(size: int) -> int:
    if size > MAX_PDU:
        raise ValueError(f"a PDU has at most {MAX_PDU} bytes, not {size}")
    return size
