"""A reader of PDU fields in either byte order.

It serves the fields between the header and the stub; stubs, towers and verification trailers have
rules of their own.
"""

from __future__ import annotations

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader


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
