"""The common header of every PDU: sixteen bytes that say how to read the rest.

     0  u8   rpc_vers, rpc_vers_minor      8  u16  frag_length, whole PDU
     2  u8   PTYPE                        10  u16  auth_length, token alone
     3  u8   pfc_flags                    12  u32  call_id
     4  u8x4 drep: byte order, character set, floating point

drep holds for this PDU alone; a peer may change its byte order between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct

from mqis.wire.errors import WireError

HEADER_SIZE = 16
VERSION = 5
VERSION_MINOR = 0

#: Little-endian, ASCII, IEEE: what we send, and all but the first nibble we accept.
DREP = b"\x10\x00\x00\x00"

_LITTLE = Struct("<HHI")
_BIG = Struct(">HHI")
_HEADER = Struct("<BBBB4sHHI")


class PacketType(IntEnum):
    """PTYPE, as far as connections have them."""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESP = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CO_CANCEL = 18
    ORPHANED = 19


class PfcFlags(IntFlag):
    """pfc_flags. Bit 04 means PENDING_CANCEL in requests, header signing in binds."""

    FIRST = 0x01
    LAST = 0x02
    PENDING_CANCEL = 0x04
    SUPPORT_HEADER_SIGN = 0x04
    CONC_MPX = 0x10
    DID_NOT_EXECUTE = 0x20
    MAYBE = 0x40
    OBJECT_UUID = 0x80


FIRST_LAST = PfcFlags.FIRST | PfcFlags.LAST


@dataclass(frozen=True, slots=True)
class Header:
    """What the first sixteen bytes say; types and versions are kept as they came."""

    type: int
    flags: int
    call_id: int
    frag_length: int
    auth_length: int = 0
    drep: bytes = DREP
    version: int = VERSION
    version_minor: int = VERSION_MINOR

    @classmethod
    def decode(cls, data: bytes) -> Header:
        if len(data) < HEADER_SIZE:
            raise WireError(f"a PDU has at least {HEADER_SIZE} bytes, not {len(data)}", len(data))
        version, minor, ptype, flags = data[:4]
        drep = data[4:8]
        form = _LITTLE if drep[0] & 0x10 else _BIG
        frag_length, auth_length, call_id = form.unpack_from(data, 8)
        return cls(ptype, flags, call_id, frag_length, auth_length, drep, version, minor)

    def encode(self) -> bytes:
        return _HEADER.pack(
            self.version,
            self.version_minor,
            self.type,
            self.flags,
            self.drep,
            self.frag_length,
            self.auth_length,
            self.call_id,
        )

    @property
    def big_endian(self) -> bool:
        return not self.drep[0] & 0x10

    @property
    def plain_format(self) -> bool:
        """ASCII and IEEE, the only representation that is understood here."""
        return self.drep[0] & 0x0F == 0 and self.drep[1] == 0


def frag_length_of(data: bytes | bytearray) -> int:
    """The length of the PDU that ``data`` begins with; its first ten bytes must be there."""
    return int.from_bytes(data[8:10], "little" if data[4] & 0x10 else "big")
