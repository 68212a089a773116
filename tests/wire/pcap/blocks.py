"""pcapng files, written by hand in either byte order."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a section."""

    order: str = "<"

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.order + form, *values)

    def block(self, kind: int, body: bytes, *, again: int | None = None) -> bytes:
        body += bytes(-len(body) % 4)
        size = 12 + len(body)
        end = self.pack("I", size if again is None else again)
        return self.pack("II", kind, size) + body + end

    def section(self, major: int = 1) -> bytes:
        return self.block(0x0A0D0D0A, self.pack("IHHq", 0x1A2B3C4D, major, 0, -1))

    def option(self, code: int, value: bytes) -> bytes:
        return self.pack("HH", code, len(value)) + value + bytes(-len(value) % 4)

    def interface(self, link_type: int = 1, snap: int = 0, options: bytes = b"") -> bytes:
        return self.block(1, self.pack("HHI", link_type, 0, snap) + options)

    def enhanced(
        self, data: bytes, stamp: int = 0, interface: int = 0, original: int | None = None
    ) -> bytes:
        size = len(data) if original is None else original
        head = self.pack("IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, len(data), size)
        return self.block(6, head + data)

    def simple(self, data: bytes, original: int | None = None) -> bytes:
        return self.block(3, self.pack("I", len(data) if original is None else original) + data)
