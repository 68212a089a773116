"""Internal packets: session set-up and acknowledgements (MS-MQQB 2.2.1 to 2.2.3, 2.2.6).

Behind the BaseHeader stands the InternalHeader:

 0  u16  Reserved
 2  u16  Flags: 0-3 packet type, 4 CS, the connection is refused
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final

from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import BASE_SIZE, SESSION_SIZE, BaseHeader, pack
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

#: The default window of queue managers.
DEFAULT_WINDOW: Final = 64
_REFUSED = 0x10
_INTERNAL_SIZE = 4


class InternalPacketType(IntEnum):
    SESSION_ACK = 1
    ESTABLISH_CONNECTION = 2
    CONNECTION_PARAMETERS = 3


def _encode_head(
    writer: Writer, size: int, kind: InternalPacketType, *, refused: bool = False
) -> None:
    session = kind is InternalPacketType.SESSION_ACK
    BaseHeader(BASE_SIZE + _INTERNAL_SIZE + size, internal=True, session=session).encode(writer)
    writer.u16(0)
    writer.u16(kind | (_REFUSED if refused else 0))


#  0  16  ClientGuid            32  u32  TimeStamp, ms since the start of the system
# 16  16  ServerGuid            36  u16  OperatingSystem: 0x10, bit 8 SE, 9 OS, 10 QS
#                               38  u16  Reserved;  40  512 bytes of padding, 0x5A
@dataclass(frozen=True, slots=True)
class EstablishConnection:
    """A request or response; only the direction tells them apart.

    ``server`` is null in a request by direct format name: 3.1.5.3.1 accepts that, although 2.2.1
    does not allow it.
    """

    client: Guid
    server: Guid
    timestamp: int
    no_ping: bool = True
    server_class: bool = True
    quality_of_service: bool = False
    refused: bool = False

    TYPE: ClassVar[InternalPacketType] = InternalPacketType.ESTABLISH_CONNECTION
    SIZE: ClassVar[int] = 552

    @classmethod
    def decode_body(cls, reader: Reader, *, refused: bool) -> EstablishConnection:
        client, server, timestamp = reader.guid(), reader.guid(), reader.u32()
        system = reader.u16()
        reader.bytes(514, "Reserved and Padding")
        flags = bool(system & 0x100), bool(system & 0x200), bool(system & 0x400)
        return cls(client, server, timestamp, *flags, refused)

    def to_bytes(self) -> bytes:
        writer = Writer()
        _encode_head(writer, self.SIZE, self.TYPE, refused=self.refused)
        writer.guid(self.client)
        writer.guid(self.server)
        writer.u32(self.timestamp)
        flags = self.no_ping << 8 | self.server_class << 9 | self.quality_of_service << 10
        writer.u16(0x10 | flags)
        writer.u16(0)
        writer.bytes(b"\x5a" * 512)
        return writer.getvalue()


# 0 u32 RecoverableAckTimeout ms, 4 u32 AckTimeout ms, 8 u16 Reserved, 10 u16 WindowSize
@dataclass(frozen=True, slots=True)
class ConnectionParameters:
    """The timeouts, which the initiator sets for both sides, and the sender's window."""

    recoverable_ack_timeout_ms: int
    ack_timeout_ms: int
    window: int = DEFAULT_WINDOW
    refused: bool = False

    TYPE: ClassVar[InternalPacketType] = InternalPacketType.CONNECTION_PARAMETERS
    SIZE: ClassVar[int] = 12

    @classmethod
    def decode_body(cls, reader: Reader, *, refused: bool) -> ConnectionParameters:
        recoverable, ack = reader.u32(), reader.u32()
        reader.u16()
        return cls(recoverable, ack, reader.u16(), refused)

    def to_bytes(self) -> bytes:
        writer = Writer()
        _encode_head(writer, self.SIZE, self.TYPE, refused=self.refused)
        writer.u32(self.recoverable_ack_timeout_ms)
        writer.u32(self.ack_timeout_ms)
        writer.u16(0)
        writer.u16(self.window)
        return writer.getvalue()


_SESSION = Struct("<HHIHHHH")


#  0  u16  AckSequenceNumber              8  u16  UserMsgSequenceNumber
#  2  u16  RecoverableMsgAckSeqNumber    10  u16  RecoverableMsgSeqNumber
#  4  u32  RecoverableMsgAckFlags        12  u16  WindowSize;  14  u16  Reserved
@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The numbers of the packets that the sender has received and sent (MS-MQMQ 2.2.20.4)."""

    ack_seq: int = 0
    recoverable_ack_seq: int = 0
    recoverable_ack_flags: int = 0
    user_msg_seq: int = 0
    recoverable_msg_seq: int = 0
    window: int = DEFAULT_WINDOW

    @classmethod
    def decode(cls, reader: Reader) -> SessionHeader:
        return cls(*_SESSION.unpack(reader.bytes(SESSION_SIZE, "SessionHeader"))[:6])

    def encode(self, writer: Writer) -> None:
        writer.bytes(
            pack(
                _SESSION,
                self.ack_seq,
                self.recoverable_ack_seq,
                self.recoverable_ack_flags,
                self.user_msg_seq,
                self.recoverable_msg_seq,
                self.window,
                0,
            )
        )


@dataclass(frozen=True, slots=True)
class SessionAck:
    """An acknowledgement: a session header in a packet of its own."""

    header: SessionHeader

    TYPE: ClassVar[InternalPacketType] = InternalPacketType.SESSION_ACK
    SIZE: ClassVar[int] = SESSION_SIZE

    @classmethod
    def decode_body(cls, reader: Reader, *, refused: bool) -> SessionAck:
        return cls(SessionHeader.decode(reader))

    def to_bytes(self) -> bytes:
        writer = Writer()
        _encode_head(writer, self.SIZE, self.TYPE)
        self.header.encode(writer)
        return writer.getvalue()


InternalPacket = EstablishConnection | ConnectionParameters | SessionAck

_BODIES: dict[int, type[InternalPacket]] = {
    InternalPacketType.SESSION_ACK: SessionAck,
    InternalPacketType.ESTABLISH_CONNECTION: EstablishConnection,
    InternalPacketType.CONNECTION_PARAMETERS: ConnectionParameters,
}


def decode_internal(reader: Reader) -> InternalPacket:
    """Decodes what follows the BaseHeader of an internal packet, up to the end of ``reader``."""
    reader.u16()
    at = reader.offset
    flags = reader.u16()
    kind = _BODIES.get(flags & 0x0F)
    if kind is None:
        raise reader.error(f"internal packets have type 1, 2 or 3, not {flags & 0x0F}", at)
    packet = kind.decode_body(reader, refused=bool(flags & _REFUSED))
    reader.expect_end(kind.__name__)
    return packet
