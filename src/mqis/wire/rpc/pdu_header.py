"""The common header of every PDU: sixteen bytes.

     0  u8   rpc_vers, rpc_vers_minor      8  u16  frag_length, whole PDU
     2  u8   PTYPE                        10  u16  auth_length, token alone
     3  u8   pfc_flags                    12  u32  call_id
     4  u8x4 drep: byte order, character set, floating point

drep is valid for this PDU only; a peer may change its byte order between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader

HEADER_SIZE = 16
VERSION = 5
VERSION_MINOR = 0

#: Little-endian, ASCII, IEEE: the format that mqis sends; it accepts either byte order.
DREP = b"\x10\x00\x00\x00"

_DREP_AT = 4
_FRAG_LENGTH_AT = 8
_LITTLE = Struct("<BBBB4sHHI")
_BIG = Struct(">BBBB4sHHI")


class PacketType(IntEnum):
    """PTYPE: the values of connection-oriented RPC."""

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


class PfcFlags:
    """pfc_flags. Bit 04 means PENDING_CANCEL in requests, header signing in binds.

    Plain integers: every PDU tests several of them, and an ``IntFlag`` takes longer than decoding
    the rest of the header.
    """

    FIRST: Final = 0x01
    LAST: Final = 0x02
    PENDING_CANCEL: Final = 0x04
    SUPPORT_HEADER_SIGN: Final = 0x04
    CONC_MPX: Final = 0x10
    DID_NOT_EXECUTE: Final = 0x20
    MAYBE: Final = 0x40
    OBJECT_UUID: Final = 0x80


FIRST_LAST = PfcFlags.FIRST | PfcFlags.LAST


@dataclass(frozen=True, slots=True)
class Header:
    """The common header; unknown types and versions are kept."""

    type: int
    flags: int
    call_id: int
    frag_length: int
    auth_length: int = 0
    drep: bytes = DREP
    version: int = VERSION
    version_minor: int = VERSION_MINOR

    @classmethod
    def decode(cls, data: bytes | bytearray) -> Header:
        """Decodes the header at the start of ``data``."""
        if len(data) < HEADER_SIZE:
            raise WireError(f"a PDU has at least {HEADER_SIZE} bytes, not {len(data)}", len(data))
        form = _LITTLE if data[4] & 0x10 else _BIG
        version, minor, ptype, flags, drep, frag_length, auth_length, call_id = form.unpack_from(
            data
        )
        return cls(ptype, flags, call_id, frag_length, auth_length, drep, version, minor)

    def encode(self) -> bytes:
        form = _LITTLE if self.drep[0] & 0x10 else _BIG
        try:
            return form.pack(
                self.version,
                self.version_minor,
                self.type,
                self.flags,
                self.drep,
                self.frag_length,
                self.auth_length,
                self.call_id,
            )
        except struct_error as error:
            raise ValueError(f"{self} has a field that does not fit: {error}") from None

    @property
    def big_endian(self) -> bool:
        return not self.drep[0] & 0x10

    @property
    def plain_format(self) -> bool:
        """True if the format is ASCII and IEEE, the only one that mqis understands."""
        return self.drep[0] & 0x0F == 0 and self.drep[1] == 0


def frag_length_in(head: bytes) -> int:
    """The length of the PDU that begins with ``head``: ten bytes that look like a header."""
    field = head[_FRAG_LENGTH_AT : _FRAG_LENGTH_AT + 2]
    length = int.from_bytes(field, "little" if head[_DREP_AT] else "big")
    if length < HEADER_SIZE:
        raise WireError(f"a PDU of {length} bytes", _FRAG_LENGTH_AT)
    return length


# --- A reader of PDU fields in either byte order --------------------------------------------------
# It serves the fields between the header and the stub; stubs, towers and verification trailers have
# rules of their own.


class Fields:
    """A bounds-checked reader that swaps the integers and GUIDs of a big-endian peer."""

    __slots__ = ("_big", "reader")

    def __init__(self, data: bytes, offset: int, end: int, *, big_endian: bool) -> None:
        self.reader = Reader(data, offset, end)
        self._big = big_endian

    def u8(self) -> int:
        return self.reader.u8()

    def u16(self) -> int:
        if self._big:
            return int.from_bytes(self.reader.bytes(2, "u16"), "big")
        return self.reader.u16()

    def u32(self) -> int:
        if self._big:
            return int.from_bytes(self.reader.bytes(4, "u32"), "big")
        return self.reader.u32()

    def guid(self) -> Guid:
        raw = self.reader.bytes(16, "UUID")
        return Guid.from_big_endian(raw) if self._big else Guid(raw)

    def bytes(self, size: int, what: str) -> bytes:
        return self.reader.bytes(size, what)

    def align(self, size: int) -> None:
        """Skips to the next multiple of ``size``, counted from the start of the PDU."""
        self.reader.bytes(-self.reader.offset % size, "padding")
