"""GUID (MS-DTYP 2.3.4): sixteen bytes on the wire, hyphenated hex for people.

The packet form stores the first three fields little-endian and the last eight bytes as they are,
so text and bytes differ in their first half: ``a1b2c3d4-0001-0002-0304-05060708090a`` is
``d4 c3 b2 a1 01 00 02 00 03 04 05 06 07 08 09 0a``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import ClassVar

_TEXT = re.compile(r"\{?([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\}?")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Guid:
    """A GUID by its sixteen packet bytes; ordered as its canonical text is."""

    raw: bytes

    NULL: ClassVar[Guid]

    def __post_init__(self) -> None:
        if len(self.raw) != 16:
            raise ValueError(f"a GUID has 16 bytes, not {len(self.raw)}")

    @classmethod
    def parse(cls, text: str) -> Guid:
        """The GUID written as ``text``, with or without braces, in either case."""
        match = _TEXT.fullmatch(text.strip().lower())
        if match is None or text.strip().startswith("{") != text.strip().endswith("}"):
            raise ValueError(f"{text!r} is not a GUID (8-4-4-4-12 hexadecimal digits)")
        return cls.from_big_endian(bytes.fromhex("".join(match.groups())))

    @classmethod
    def from_big_endian(cls, data: bytes) -> Guid:
        """The GUID whose text is the hex of ``data`` from left to right."""
        return cls(_swap_fields(data))

    @classmethod
    def version_4(cls, octets: bytes) -> Guid:
        """The GUID of sixteen random bytes (RFC 9562 5.4): six of their bits say what it is."""
        changed = bytearray(octets)
        changed[7] = changed[7] & 0x0F | 0x40  # the version, in packet order
        changed[8] = changed[8] & 0x3F | 0x80
        return cls(bytes(changed))

    @property
    def big_endian(self) -> bytes:
        return _swap_fields(self.raw)

    # By hand: they are the keys of every table, and the generated ones make two tuples a time.
    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, Guid) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.raw)

    def __bool__(self) -> bool:
        return self.raw != _NULL_BYTES

    def __lt__(self, other: Guid) -> bool:
        if not isinstance(other, Guid):
            return NotImplemented
        return self.big_endian < other.big_endian

    def __str__(self) -> str:
        digits = self.big_endian.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def __repr__(self) -> str:
        return f"Guid.parse('{self}')"


def _swap_fields(data: bytes) -> bytes:
    return data[3::-1] + data[5:3:-1] + data[7:5:-1] + data[8:]


_NULL_BYTES = bytes(16)
Guid.NULL = Guid(_NULL_BYTES)
