"""The writer, counterpart of the reader: it appends little-endian values to one buffer."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

from mqis.wire.guid import Guid

_U8 = Struct("<B")
_U16 = Struct("<H")
_U32 = Struct("<I")


class Writer:
    """A buffer of bytes. A value that does not fit its field raises ``ValueError``."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def getvalue(self) -> bytes:
        return bytes(self._buffer)

    def _pack(self, form: Struct, value: int) -> None:
        try:
            self._buffer += form.pack(value)
        except struct_error as error:
            raise ValueError(f"{value!r} does not fit in {form.size} bytes: {error}") from None

    def u8(self, value: int) -> None:
        self._pack(_U8, value)

    def u16(self, value: int) -> None:
        self._pack(_U16, value)

    def u32(self, value: int) -> None:
        self._pack(_U32, value)

    def bytes(self, value: bytes) -> None:
        self._buffer += value

    def guid(self, value: Guid) -> None:
        self._buffer += value.raw

    def utf16z(self, value: str) -> None:
        if "\0" in value:
            raise ValueError("a zero-terminated string cannot hold a zero character")
        self._buffer += value.encode("utf-16-le", "surrogatepass") + b"\0\0"

    def patch_u32(self, offset: int, value: int) -> None:
        """Overwrites a length or offset that becomes known only after what it describes."""
        if not 0 <= offset <= len(self._buffer) - 4:
            raise ValueError(f"no four bytes were written at offset {offset} yet")
        if not 0 <= value <= 0xFFFFFFFF:
            raise ValueError(f"{value!r} does not fit in 4 bytes")
        _U32.pack_into(self._buffer, offset, value)
