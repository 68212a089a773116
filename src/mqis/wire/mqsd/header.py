"""TopologyPacketHeader (MS-MQSD 2.2.1): the four bytes that every packet begins with.

0  u8   Version, sent as 0 and ignored
1  u8   Type: 1 TopologyClientRequest, 2 TopologyServerReply
2  u16  Reserved, sent as 0 and ignored
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer


class TopologyPacketType(IntEnum):
    REQUEST = 1
    REPLY = 2


@dataclass(frozen=True, slots=True)
class TopologyPacketHeader(Structure):
    """The header with all fields; the packets drop those that receivers ignore."""

    NAME: ClassVar[str] = "the header"

    type: int
    version: int = 0
    reserved: int = 0

    @classmethod
    def decode(cls, reader: Reader) -> TopologyPacketHeader:
        version = reader.u8()
        return cls(reader.u8(), version, reader.u16())

    def encode(self, writer: Writer) -> None:
        writer.u8(self.version)
        writer.u8(self.type)
        writer.u16(self.reserved)


def expect_type(reader: Reader, wanted: TopologyPacketType) -> None:
    """Reads a header and raises ``WireError`` unless its type is ``wanted``."""
    at = reader.offset
    found = TopologyPacketHeader.decode(reader).type
    if found != wanted:
        raise reader.error(f"packet type {found} is not {wanted.value} ({wanted.name})", at + 1)
