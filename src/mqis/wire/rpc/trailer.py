"""The security trailer: the authentication type, level and token of a PDU.

     0  u8  auth_type          4  u32 auth_context_id
     1  u8  auth_level         8      token, auth_length bytes
     2  u8  auth_pad_length
     3  u8  reserved

It ends the PDU, so it starts at frag_length - auth_length - 8. The padding before it brings the
stub to a multiple of sixteen bytes (MS-RPCE 2.2.2.12); receivers accept any.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

TRAILER_SIZE = 8
PAD_TO = 16

_LITTLE = Struct("<BBBBI")
_BIG = Struct(">BBBBI")


@dataclass(frozen=True, slots=True)
class AuthTrailer:
    """auth_verifier_co_t with its token."""

    type: int
    level: int
    context_id: int
    token: bytes
    pad_length: int = 0
    reserved: int = 0

    def encode_fixed(self) -> bytes:
        """The eight bytes before the token, which a signature covers too."""
        return fixed_part(self.type, self.level, self.context_id, self.pad_length, self.reserved)

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int, *, big_endian: bool) -> AuthTrailer:
        """Decodes a trailer; the caller has checked the length."""
        form = _BIG if big_endian else _LITTLE
        kind, level, pad, reserved, context = form.unpack_from(data, offset)
        return cls(kind, level, context, data[offset + TRAILER_SIZE : end], pad, reserved)


def fixed_part(
    auth_type: int, level: int, context_id: int, pad_length: int = 0, reserved: int = 0
) -> bytes:
    """The eight bytes of a trailer before its token."""
    return _LITTLE.pack(auth_type, level, pad_length, reserved, context_id)


def fixed_part_at(data: bytes, offset: int) -> tuple[int, int, int, int]:
    """Decodes a little-endian trailer: auth_type, auth_level, auth_context_id, auth_pad_length.

    The caller has checked the length.
    """
    kind, level, pad, _reserved, context = _LITTLE.unpack_from(data, offset)
    return kind, level, context, pad
