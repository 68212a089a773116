"""The bodies of PDUs, one structure per PDU type.

Offsets in the layouts count from the start of the PDU. ``decode`` starts at the first byte behind
the header. ``encode`` appends to a writer that already holds the header, because padding counts
from the start of the PDU too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NO_SYNTAX, SyntaxId
from mqis.wire.rpc.pdu_header import Fields, PacketType
from mqis.wire.writer import Writer


def _pad(writer: Writer, size: int) -> None:
    writer.bytes(bytes(-len(writer) % size))


# 0 u16 p_cont_id, 2 u8 n_transfer_syn, 3 u8 reserved, 4 abstract syntax (20), n transfer (20 each)
@dataclass(frozen=True, slots=True)
class ContextElement:
    """A presentation context that a client proposes."""

    context_id: int
    abstract: SyntaxId
    transfers: tuple[SyntaxId, ...]

    @classmethod
    def decode(cls, fields: Fields) -> ContextElement:
        context_id, count = fields.u16(), fields.u8()
        fields.u8()
        abstract = SyntaxId.decode(fields)
        return cls(context_id, abstract, tuple(SyntaxId.decode(fields) for _ in range(count)))

    def encode(self, writer: Writer) -> None:
        writer.u16(self.context_id)
        writer.u8(len(self.transfers))
        writer.u8(0)
        self.abstract.encode(writer)
        for transfer in self.transfers:
            transfer.encode(writer)


# 16 u16 max_xmit_frag, 18 u16 max_recv_frag, 20 u32 assoc_group_id, 24 u8 n, 25 3 reserved, 28 ...
@dataclass(frozen=True, slots=True)
class Bind:
    """The body of bind; alter_context has the same."""

    max_xmit_frag: int
    max_recv_frag: int
    assoc_group_id: int
    contexts: tuple[ContextElement, ...]

    TYPE: ClassVar[PacketType] = PacketType.BIND

    @classmethod
    def decode(cls, fields: Fields) -> Bind:
        xmit, recv, group, count = fields.u16(), fields.u16(), fields.u32(), fields.u8()
        if count:  # an empty list may end here
            fields.bytes(3, "reserved")
        contexts = tuple(ContextElement.decode(fields) for _ in range(count))
        return cls(xmit, recv, group, contexts)

    def encode(self, writer: Writer) -> None:
        writer.u16(self.max_xmit_frag)
        writer.u16(self.max_recv_frag)
        writer.u32(self.assoc_group_id)
        writer.u8(len(self.contexts))
        writer.bytes(bytes(3))
        for context in self.contexts:
            context.encode(writer)


class AlterContext(Bind):
    """alter_context: more contexts, or the next step of an authentication."""

    __slots__ = ()
    TYPE: ClassVar[PacketType] = PacketType.ALTER_CONTEXT


class ContextVerdict(IntEnum):
    """The result of a proposed context."""

    ACCEPTANCE = 0
    USER_REJECTION = 1
    PROVIDER_REJECTION = 2
    NEGOTIATE_ACK = 3


class RejectReason(IntEnum):
    """The provider's reason for a rejection; with NEGOTIATE_ACK the field holds feature bits."""

    NOT_SPECIFIED = 0
    ABSTRACT_SYNTAX_NOT_SUPPORTED = 1
    TRANSFER_SYNTAXES_NOT_SUPPORTED = 2
    LOCAL_LIMIT_EXCEEDED = 3


# 0 u16 result, 2 u16 reason, 4 transfer syntax (20)
@dataclass(frozen=True, slots=True)
class ContextResult:
    """The answer to a proposed context; answers come in the order of the proposals."""

    result: int
    reason: int = RejectReason.NOT_SPECIFIED
    transfer: SyntaxId = NO_SYNTAX

    @classmethod
    def decode(cls, fields: Fields) -> ContextResult:
        return cls(fields.u16(), fields.u16(), SyntaxId.decode(fields))

    def encode(self, writer: Writer) -> None:
        writer.u16(self.result)
        writer.u16(self.reason)
        self.transfer.encode(writer)


# 16 18 20 as bind, 24 u16 length, 26 secondary address with its zero, pad to 4, u8 n, 3 reserved
@dataclass(frozen=True, slots=True)
class BindAck:
    """bind_ack. An alter_context_resp has an empty secondary address, with no zero byte."""

    max_xmit_frag: int
    max_recv_frag: int
    assoc_group_id: int
    secondary_address: str
    results: tuple[ContextResult, ...]

    TYPE: ClassVar[PacketType] = PacketType.BIND_ACK

    @classmethod
    def decode(cls, fields: Fields) -> BindAck:
        xmit, recv, group = fields.u16(), fields.u16(), fields.u32()
        address = fields.bytes(fields.u16(), "secondary address").rstrip(b"\0")
        fields.align(4)
        count = fields.u8()
        fields.bytes(3, "reserved")
        results = tuple(ContextResult.decode(fields) for _ in range(count))
        return cls(xmit, recv, group, address.decode("latin-1"), results)

    def encode(self, writer: Writer) -> None:
        writer.u16(self.max_xmit_frag)
        writer.u16(self.max_recv_frag)
        writer.u32(self.assoc_group_id)
        address = self.secondary_address.encode("latin-1")
        if address:
            address += b"\0"
        writer.u16(len(address))
        writer.bytes(address)
        _pad(writer, 4)
        writer.u8(len(self.results))
        writer.bytes(bytes(3))
        for result in self.results:
            result.encode(writer)


class AlterContextResp(BindAck):
    """alter_context_resp."""

    __slots__ = ()
    TYPE: ClassVar[PacketType] = PacketType.ALTER_CONTEXT_RESP


class NakReason(IntEnum):
    """The reason for refusing a bind."""

    NOT_SPECIFIED = 0
    TEMPORARY_CONGESTION = 1
    LOCAL_LIMIT_EXCEEDED = 2
    PROTOCOL_VERSION_NOT_SUPPORTED = 4
    AUTHENTICATION_TYPE_NOT_RECOGNIZED = 8
    INVALID_CHECKSUM = 9


def nak_text(reason: int) -> str:
    """Names a reason, also one that is none of these."""
    try:
        return NakReason(reason).name.lower().replace("_", " ")
    except ValueError:
        return f"reason {reason}"


# 16 u16 reason, 18 u8 count, count x (u8 major, u8 minor), pad to 4
@dataclass(frozen=True, slots=True)
class BindNak:
    """bind_nak. Extended error information may follow; it is ignored."""

    reason: int
    versions: tuple[tuple[int, int], ...] = ((5, 0),)

    TYPE: ClassVar[PacketType] = PacketType.BIND_NAK

    @classmethod
    def decode(cls, fields: Fields) -> BindNak:
        reason = fields.u16()
        if not fields.reader.remaining:
            return cls(reason, ())
        versions = tuple((fields.u8(), fields.u8()) for _ in range(fields.u8()))
        return cls(reason, versions)

    def encode(self, writer: Writer) -> None:
        writer.u16(self.reason)
        writer.u8(len(self.versions))
        for major, minor in self.versions:
            writer.u8(major)
            writer.u8(minor)
        _pad(writer, 4)


# 16 4 bytes without meaning
@dataclass(frozen=True, slots=True)
class Auth3:
    """auth3: the third and last step of an authentication; it is never answered."""

    TYPE: ClassVar[PacketType] = PacketType.AUTH3

    @classmethod
    def decode(cls, fields: Fields) -> Auth3:
        fields.bytes(4, "padding")
        return cls()

    def encode(self, writer: Writer) -> None:
        writer.bytes(bytes(4))


# 16 u32 alloc_hint, 20 u16 p_cont_id, 22 u16 opnum, flag OBJECT_UUID: 24 UUID; then the stub
@dataclass(frozen=True, slots=True)
class Request:
    """A fragment of a call. ``stub`` extends to the end of the PDU, without the trailer."""

    context_id: int
    opnum: int
    stub: bytes
    object: Guid | None = None
    alloc_hint: int = 0

    TYPE: ClassVar[PacketType] = PacketType.REQUEST


# 16 u32 alloc_hint, 20 u16 p_cont_id, 22 u8 cancel_count, 23 reserved, 24 stub
@dataclass(frozen=True, slots=True)
class Response:
    """A fragment of an answer."""

    context_id: int
    stub: bytes
    alloc_hint: int = 0
    cancel_count: int = 0

    TYPE: ClassVar[PacketType] = PacketType.RESPONSE


# 16 20 22 as response, 23 u8 flags, 24 u32 status, 28 4 reserved
@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: the call failed. It is never signed; peers expect an alloc_hint that is not zero."""

    context_id: int
    status: int
    alloc_hint: int = 32
    cancel_count: int = 0
    flags: int = 0

    TYPE: ClassVar[PacketType] = PacketType.FAULT

    @classmethod
    def decode(cls, fields: Fields) -> Fault:
        hint, context, cancels, flags = fields.u32(), fields.u16(), fields.u8(), fields.u8()
        return cls(context, fields.u32(), hint, cancels, flags)

    def encode(self, writer: Writer) -> None:
        writer.u32(self.alloc_hint)
        writer.u16(self.context_id)
        writer.u8(self.cancel_count)
        writer.u8(self.flags)
        writer.u32(self.status)
        writer.u32(0)


@dataclass(frozen=True, slots=True)
class Bare:
    """A PDU that consists of its header."""

    @classmethod
    def decode(cls, _fields: Fields) -> Bare:
        return cls()

    def encode(self, _writer: Writer) -> None:
        return None


class Shutdown(Bare):
    """shutdown: the server asks the client to close once it is idle."""

    __slots__ = ()
    TYPE: ClassVar[PacketType] = PacketType.SHUTDOWN


class CoCancel(Bare):
    """co_cancel: the client asks the server to end the call."""

    __slots__ = ()
    TYPE: ClassVar[PacketType] = PacketType.CO_CANCEL


class Orphaned(Bare):
    """orphaned: the client no longer waits for the call."""

    __slots__ = ()
    TYPE: ClassVar[PacketType] = PacketType.ORPHANED
