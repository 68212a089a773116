"""The reader: a cursor over bytes that checks every bound.

A decoder never slices a buffer itself. It asks the reader, which either has the bytes or raises
``WireError`` with the offset where they are missing.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

_U16 = Struct("<H")
_U32 = Struct("<I")
_U64 = Struct("<Q")
_I8 = Struct("<b")
_I16 = Struct("<h")
_I32 = Struct("<i")
_I64 = Struct("<q")


class Reader:
    """A little-endian, bounds-checked cursor over ``data`` between two offsets.

    Offsets in errors count from the start of the whole buffer, also in a reader made by ``sub``.
    """

    __slots__ = ("_data", "_end", "offset")

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self._data = data
        self._end = len(data) if end is None else end
        self.offset = offset
        if not 0 <= offset <= self._end <= len(data):
            raise ValueError(f"{offset}..{end} is not inside {len(data)} bytes")

    @property
    def remaining(self) -> int:
        return self._end - self.offset

    def error(self, reason: str, offset: int | None = None) -> WireError:
        """Returns a ``WireError`` for the caller to raise, by default at the current offset."""
        return WireError(reason, self.offset if offset is None else offset)

    def _take(self, size: int, what: str) -> int:
        start = self.offset
        if not 0 <= size <= self._end - start:
            raise WireError(f"{what} needs {size} bytes, {self._end - start} left", start)
        self.offset = start + size
        return start

    def since(self, start: int) -> bytes:
        """The bytes from ``start`` to the current offset."""
        return self._data[start : self.offset]

    def u8(self) -> int:
        return self._data[self._take(1, "u8")]

    def u16(self) -> int:
        value: int = _U16.unpack_from(self._data, self._take(2, "u16"))[0]
        return value

    def u32(self) -> int:
        value: int = _U32.unpack_from(self._data, self._take(4, "u32"))[0]
        return value

    def u64(self) -> int:
        value: int = _U64.unpack_from(self._data, self._take(8, "u64"))[0]
        return value

    def i8(self) -> int:
        value: int = _I8.unpack_from(self._data, self._take(1, "i8"))[0]
        return value

    def i16(self) -> int:
        value: int = _I16.unpack_from(self._data, self._take(2, "i16"))[0]
        return value

    def i32(self) -> int:
        value: int = _I32.unpack_from(self._data, self._take(4, "i32"))[0]
        return value

    def i64(self) -> int:
        value: int = _I64.unpack_from(self._data, self._take(8, "i64"))[0]
        return value

    def bytes(self, size: int, what: str = "bytes") -> bytes:
        start = self._take(size, what)
        return self._data[start : start + size]

    def guid(self) -> Guid:
        return Guid(self.bytes(16, "GUID"))

    def unpack(self, form: Struct, what: str) -> tuple[Any, ...]:
        """Reads several fields at once, in a layout that the caller has precompiled."""
        return form.unpack_from(self._data, self._take(form.size, what))

    def count(self, limit: int, item_size: int, what: str) -> int:
        """Reads a u32 count of items and refuses one that is too large, before memory is allocated.

        ``item_size`` is the smallest size of an item; it shows whether the remaining bytes can hold
        that many.
        """
        at = self.offset
        count = self.u32()
        if count > limit:
            raise WireError(f"{what}: {count} items, at most {limit} are allowed", at)
        if count * item_size > self.remaining:
            raise WireError(f"{what}: {count} items do not fit in {self.remaining} bytes", at)
        return count

    def utf16z(self, limit: int, what: str = "string") -> str:
        """Reads UTF-16LE of at most ``limit`` units and its 16-bit zero, which it drops.

        Lone surrogates are allowed: Windows names are sequences of units, not checked text.
        """
        start = self.offset
        stop = min(self._end, start + 2 * limit + 2)
        at = self._data.find(b"\0\0", start, stop)
        while at >= 0 and (at - start) & 1:
            at = self._data.find(b"\0\0", at + 1, stop)
        if at < 0:
            if stop - start > 2 * limit:
                raise WireError(f"{what} is longer than {limit} characters", start)
            raise WireError(f"{what} has no terminating zero", start)
        self.offset = at + 2
        return self._data[start:at].decode("utf-16-le", "surrogatepass")

    def sub(self, size: int, what: str = "part") -> Reader:
        """Returns a reader restricted to the next ``size`` bytes, which this one skips."""
        start = self._take(size, what)
        return Reader(self._data, start, start + size)

    def expect_end(self, what: str) -> None:
        if self.remaining:
            raise WireError(f"{self.remaining} bytes after the end of {what}", self.offset)
