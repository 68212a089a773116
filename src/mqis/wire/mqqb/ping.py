"""Ping packet (MS-MQQB 2.2.7) over UDP 3527: asks whether a session would be accepted.

0  u16  Flags: 0 RC, the initiator is not a server; 1 RF, a session would be refused
2  u16  Signature, 0x5548
4  u32  Cookie
8  16   QMGuid of the packet's sender
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

PING_SIGNATURE: Final = 0x5548


@dataclass(frozen=True, slots=True)
class Ping:
    """A request or response; a response repeats the cookie and the client flag."""

    cookie: int
    guid: Guid
    client: bool = False
    refused: bool = False

    @classmethod
    def decode(cls, reader: Reader) -> Ping:
        at = reader.offset
        flags, signature = reader.u16(), reader.u16()
        if signature != PING_SIGNATURE:
            raise reader.error(f"0x{signature:04x} is not the signature of a ping", at + 2)
        return cls(reader.u32(), reader.guid(), bool(flags & 1), bool(flags & 2))

    @classmethod
    def from_bytes(cls, data: bytes) -> Ping:
        reader = Reader(data)
        ping = cls.decode(reader)
        reader.expect_end("the ping")
        return ping

    def to_bytes(self) -> bytes:
        writer = Writer()
        writer.u16(self.client | self.refused << 1)
        writer.u16(PING_SIGNATURE)
        writer.u32(self.cookie)
        writer.guid(self.guid)
        return writer.getvalue()
