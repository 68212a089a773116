"""Simple types (C706 14.2; MS-RPCE 2.2.4.1, 2.2.4.6, 2.2.5.2).

Each one is aligned to its size. Enumerations and ``__int3264`` change size with the syntax.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import calcsize
from typing import Any

from mqis.wire.ndr.description import ArrayForm, Codec, Description, Flat, flat_codec
from mqis.wire.ndr.stream import ENUM_OUT_OF_RANGE, Decoder, Dialect, Encoder


@dataclass(frozen=True, eq=False)
class Scalar(Description[Any]):
    """A simple type, given by its ``struct`` code in either syntax."""

    code20: str
    code64: str
    form: ArrayForm = "tuple"

    @property
    def array_form(self) -> ArrayForm:
        return self.form

    def compile(self, dialect: Dialect) -> Codec:
        code = self.code64 if dialect.is_ndr64 else self.code20
        size = calcsize("<" + code)
        return flat_codec(dialect, Flat(code, size), size)


def _same(code: str, form: ArrayForm = "tuple") -> Scalar:
    return Scalar(code, code, form)


#: An array of octets is ``bytes``, an array of wide characters ``str``; all others are tuples.
U8 = BYTE = CHAR = _same("B", "bytes")
U16 = _same("H")
U32 = _same("I")
U64 = UHYPER = _same("Q")
I8 = _same("b")
I16 = _same("h")
I32 = _same("i")
I64 = HYPER = _same("q")
FLOAT = _same("f")
DOUBLE = _same("d")
WCHAR = _same("H", "str")
INT3264 = Scalar("i", "q")
UINT3264 = Scalar("I", "Q")


@dataclass(frozen=True, eq=False)
class Boolean(Description[bool]):
    """A boolean of one octet: zero is false, anything else true."""

    def compile(self, dialect: Dialect) -> Codec:
        def dump(_encoder: Encoder, value: Any) -> int:
            if not isinstance(value, bool):
                raise TypeError(f"a boolean is True or False, not {value!r}")
            return int(value)

        def load(_decoder: Decoder, item: int, _offset: int) -> bool:
            return item != 0

        return flat_codec(dialect, Flat("B", 1, dump, load), 1)


BOOLEAN = Boolean()


@dataclass(frozen=True, eq=False)
class Enum(Description[int]):
    """An enumeration. Codes of ``members`` decode to members, others stay plain numbers.

    Without [v1_enum] the codes are 0..32767 (MS-RPCE 2.2.4.11) and NDR20 sends 16 bits.
    """

    members: type[IntEnum] | None = None
    v1_enum: bool = False

    def compile(self, dialect: Dialect) -> Codec:
        low, high = (-(1 << 31), (1 << 31) - 1) if self.v1_enum else (0, 0x7FFF)
        known = {} if self.members is None else {int(code): code for code in self.members}

        def dump(_encoder: Encoder, value: int) -> int:
            if not low <= value <= high:
                raise ValueError(f"{value!r} is not an enumeration code ({low}..{high})")
            return value

        def load(decoder: Decoder, item: int, offset: int) -> int:
            if not low <= item <= high:
                raise decoder.error(f"{item} is not an enumeration code", offset, ENUM_OUT_OF_RANGE)
            return known.get(item, item)

        wide = dialect.is_ndr64 or self.v1_enum
        flat = Flat("i", 4, dump, load) if wide else Flat("H", 2, dump, load)
        return flat_codec(dialect, flat, flat.size)


ENUM16 = Enum()
ENUM32 = Enum(v1_enum=True)


@dataclass(frozen=True, eq=False)
class Range(Description[Any]):
    """[range(low, high)] on an integer (MS-RPCE 3.1.1.5.3.2.2.4)."""

    base: Description[Any]
    low: int
    high: int

    def compile(self, dialect: Dialect) -> Codec:
        base = self.base.codec_in(dialect)
        if base.flat is None:
            raise TypeError("[range] is for integers; arrays and strings take minimum and maximum")
        base_dump, base_load = base.flat.dump, base.flat.load
        low, high = self.low, self.high

        def dump(encoder: Encoder, value: Any) -> Any:
            if not low <= value <= high:
                raise ValueError(f"{value!r} is outside [range({low}, {high})]")
            return value if base_dump is None else base_dump(encoder, value)

        def load(decoder: Decoder, item: Any, offset: int) -> Any:
            if not low <= item <= high:
                raise decoder.error(f"{item} is outside [range({low}, {high})]", offset)
            return item if base_load is None else base_load(decoder, item, offset)

        return flat_codec(dialect, Flat(base.flat.code, base.flat.size, dump, load), base.alignment)
