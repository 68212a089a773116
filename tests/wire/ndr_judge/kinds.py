"""Types of the IDL without parts: numbers, GUIDs, context handles and strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.wire.ndr_judge.streams import In, Misread, Out, Values


@dataclass(frozen=True)
class Number:
    """An integer of 1, 2, 4 or 8 octets, aligned to its size; ``low`` to ``high`` is [range]."""

    size: int
    signed: bool = False
    low: int | None = None
    high: int | None = None

    def alignment(self, wide: bool) -> int:
        return self.size

    def write(self, out: Out, value: int, around: Values) -> None:
        out.number(self.size, value, self.signed)

    def read(self, source: In, around: Values) -> int:
        value = source.number(self.size, self.signed)
        low, high = self.bounds()
        if not low <= value <= high:
            raise Misread(f"{value} is not in {low} to {high}")
        return value

    def bounds(self) -> tuple[int, int]:
        least = -(1 << 8 * self.size - 1) if self.signed else 0
        most = (1 << 8 * self.size - self.signed) - 1
        return (least if self.low is None else self.low, most if self.high is None else self.high)


@dataclass(frozen=True)
class Enumeration:
    """An enum without [v1_enum]: 2 octets in NDR20, 4 in NDR64."""

    codes: tuple[int, ...]

    def alignment(self, wide: bool) -> int:
        return 4 if wide else 2

    def write(self, out: Out, value: int, around: Values) -> None:
        out.number(4 if out.wide else 2, value)

    def read(self, source: In, around: Values) -> int:
        return source.number(4 if source.wide else 2)


@dataclass(frozen=True)
class Identifier:
    """A GUID: a structure whose largest member has 4 octets. Its value is its text."""

    def alignment(self, wide: bool) -> int:
        return 4

    def write(self, out: Out, value: str, around: Values) -> None:
        out.pad(4)
        out.data += UUID(value).bytes_le

    def read(self, source: In, around: Values) -> str:
        source.pad(4)
        return str(UUID(bytes_le=source.octets(16)))


@dataclass(frozen=True)
class Handle:
    """A context handle: attributes, which are 0, and a GUID, in either syntax."""

    def alignment(self, wide: bool) -> int:
        return 4

    def write(self, out: Out, value: str, around: Values) -> None:
        out.number(4, 0)
        out.data += UUID(value).bytes_le

    def read(self, source: In, around: Values) -> str:
        if source.number(4):
            raise Misread("a context handle with attributes")
        return str(UUID(bytes_le=source.octets(16)))


@dataclass(frozen=True)
class Text:
    """A [string]: maximum count, offset, actual count, characters and a zero, which counts too."""

    size: int = 2
    #: The [range] of the actual count.
    low: int = 1
    high: int = 0x7FFFFFFF

    @property
    def encoding(self) -> str:
        return "utf-16-le" if self.size == 2 else "latin-1"

    def alignment(self, wide: bool) -> int:
        return 8 if wide else 4

    def write(self, out: Out, value: str, around: Values) -> None:
        octets = value.encode(self.encoding, "surrogatepass") + bytes(self.size)
        actual = len(octets) // self.size
        out.count(actual + (out.noise.randrange(9) if out.noise else 0))
        out.count(0)
        out.count(actual)
        out.data += octets

    def read(self, source: In, around: Values) -> str:
        maximum, offset, actual = source.count(), source.count(), source.count()
        if offset or not self.low <= actual <= self.high or actual > maximum:
            raise Misread(f"a string of {actual} at {offset} in {maximum}")
        characters: Any = source.octets(actual * self.size).decode(self.encoding, "surrogatepass")
        if characters.find("\0") != len(characters) - 1:
            raise Misread("a string does not end at its only zero")
        return str(characters[:-1])
