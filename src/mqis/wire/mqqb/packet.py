"""UserMessage packets (MS-MQMQ 2.2.20), and the decoder for all packets.

BaseHeader UserHeader [TransactionHeader] [SecurityHeader] MessagePropertiesHeader
[DebugHeader] [SoapHeader] [MultiQueueFormatHeader], then outside PacketSize [SessionHeader]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqis.wire.mqqb.baseheader import (
    BASE_SIZE,
    DEFAULT_PRIORITY,
    INFINITE,
    MAX_PACKET,
    BaseHeader,
)
from mqis.wire.mqqb.internal import InternalPacket, SessionHeader, decode_internal
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.securityheader import SecurityHeader
from mqis.wire.mqqb.userheader import Parts, UserHeader
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A whole message; headers that mqis does not interpret are kept as bytes."""

    header: UserHeader
    properties: MessageProperties
    security: SecurityHeader | None = None
    priority: int = DEFAULT_PRIORITY
    time_to_reach_queue: int = INFINITE
    session: SessionHeader | None = None
    transaction: bytes | None = None
    debug: bytes | None = None
    soap: bytes | None = None
    multi_queue: bytes | None = None
    trace: bool = False

    @classmethod
    def decode_body(cls, base: BaseHeader, packet: bytes) -> UserMessage:
        reader = Reader(packet, BASE_SIZE, base.size)
        header, parts = UserHeader.decode(reader)
        if not parts & Parts.PROPERTIES:
            raise reader.error("the message has no MessagePropertiesHeader", BASE_SIZE + 44)

        def kept(skip: Callable[[Reader], None], present: int) -> bytes | None:
            if not present:
                return None
            start = reader.offset
            skip(reader)
            return packet[start : reader.offset]

        transaction = kept(skip_transaction, parts & Parts.TRANSACTION)
        security = SecurityHeader.decode(reader) if parts & Parts.SECURITY else None
        properties = MessageProperties.decode(reader)
        debug = kept(skip_debug, base.debug)
        soap = kept(skip_soap, parts & Parts.SOAP)
        multi_queue = kept(skip_multi_queue, parts & Parts.MULTI_QUEUE)
        session = SessionHeader.decode(Reader(packet, base.size)) if base.session else None
        return cls(
            header,
            properties,
            security,
            base.priority,
            base.time_to_reach_queue,
            session,
            transaction,
            debug,
            soap,
            multi_queue,
            base.trace,
        )

    def to_bytes(self) -> bytes:
        writer = Writer()
        has_session, has_debug = self.session is not None, self.debug is not None
        lifetime = self.time_to_reach_queue
        base = BaseHeader(0, self.priority, False, has_session, has_debug, self.trace, lifetime)
        base.encode(writer)
        self.header.encode(writer, self._parts())
        writer.bytes(self.transaction or b"")
        if self.security is not None:
            self.security.encode(writer)
        self.properties.encode(writer)
        for part in (self.debug, self.soap, self.multi_queue):
            writer.bytes(part or b"")
        if len(writer) > MAX_PACKET:
            raise ValueError(f"the packet has {len(writer)} bytes, {MAX_PACKET} are allowed")
        writer.patch_u32(8, len(writer))
        if self.session is not None:
            self.session.encode(writer)
        return writer.getvalue()

    def _parts(self) -> int:
        return (
            Parts.PROPERTIES
            | (0 if self.security is None else Parts.SECURITY)
            | (0 if self.transaction is None else Parts.TRANSACTION)
            | (0 if self.soap is None else Parts.SOAP)
            | (0 if self.multi_queue is None else Parts.MULTI_QUEUE)
        )


Packet = InternalPacket | UserMessage


def decode_packet(data: bytes) -> Packet:
    """Decodes ``data``, which is exactly one packet."""
    reader = Reader(data)
    base = BaseHeader.decode(reader)
    if base.length != len(data):
        raise reader.error(f"the packet has {base.length} bytes, the data {len(data)}", 8)
    return decode_framed(base, data)


def decode_framed(base: BaseHeader, data: bytes) -> Packet:
    """Decodes a packet of the right length whose BaseHeader has been decoded."""
    if base.internal:
        return decode_internal(Reader(data, BASE_SIZE))
    return UserMessage.decode_body(base, data)


# --- Headers that mqis does not interpret: it finds their length and keeps their bytes ------------
# TransactionHeader, DebugHeader, SoapHeader and MultiQueueFormatHeader (MS-MQMQ 2.2.20.1 to
# 2.2.20.3, 2.2.20.5, 2.2.20.7, 2.2.20.8).

_SOAP_SECTIONS = (0x0320, 0x0384)
_MULTI_QUEUE_LISTS = (0x0064, 0x00C8, 0x012C)
_MULTI_QUEUE_SIGNATURE = 0x015E


def _pad(reader: Reader, start: int) -> None:
    reader.bytes(-(reader.offset - start) % 4, "padding")


def skip_transaction(reader: Reader) -> None:
    """Skips u32 Flags, 8 TxSequenceID, u32 TxSequenceNumber, u32 previous, bit 0: 16 connector."""
    flags = reader.u32()
    reader.bytes(32 if flags & 1 else 16, "TransactionHeader")


def skip_debug(reader: Reader) -> None:
    """Skips u16 Flags, u16 Reserved, 16 QueueIdentifier if bits 0-1 are 1."""
    at = reader.offset
    queue_type = reader.u16() & 3
    if queue_type > 1:
        raise reader.error(f"a DebugHeader cannot have queue type {queue_type}", at)
    reader.bytes(18 if queue_type else 2, "DebugHeader")


def skip_soap(reader: Reader) -> None:
    """Skips two sections of u16 SectionID, u16 Reserved, u32 units and the units."""
    start = reader.offset
    for expected in _SOAP_SECTIONS:
        _expect(reader, expected)
        reader.u16()
        reader.bytes(2 * reader.u32(), "SoapHeader")
        _pad(reader, start)


def skip_multi_queue(reader: Reader) -> None:
    """Skips three name lists (u32 HeaderSize, u16 HeaderID, ...), u32 size and a signature."""
    start = reader.offset
    for expected in _MULTI_QUEUE_LISTS:
        at = reader.offset
        size = reader.u32()
        if size < 12:
            raise reader.error(f"an MQFAddressHeader of {size} bytes is too short", at)
        _expect(reader, expected)
        reader.bytes(size - 6, "MQFAddressHeader")
        _pad(reader, start)
    _expect(reader, _MULTI_QUEUE_SIGNATURE)
    reader.u16()
    reader.bytes(reader.u32(), "MQFSignatureHeader")
    _pad(reader, start)


def _expect(reader: Reader, expected: int) -> None:
    at = reader.offset
    found = reader.u16()
    if found != expected:
        raise reader.error(f"section 0x{found:04x} instead of 0x{expected:04x}", at)
