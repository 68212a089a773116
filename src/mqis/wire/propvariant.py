"""PROPVARIANT values (MS-MQMQ 2.2.12, 2.2.13) and their packed form (MS-MQCN 2.2.3).

In memory a value keeps its tag. The packed form, which replication and change notification put on
the wire, drops it: the property identifier alone fixes the type, values follow each other without
tag, padding or reserved words.

    I1 UI1              1 byte            LPWSTR          UTF-16LE units, 16-bit zero
    I2 UI2 BOOL         2                 BLOB            u32 size, bytes
    I4 UI4              4                 CLSID           16 bytes
    I8 UI8              8                 VECTOR of T     u32 count, values of T

EMPTY and NULL take no bytes, so the untagged form cannot carry them; the tagged form, which
stores use, can. A VECTOR of VARIANT tags each element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

VECTOR = 0x1000
#: Longest string, longest vector, deepest vectors of variants. A value beyond them can neither be
#: made nor decoded, so whatever was encoded can be read again. A blob is bounded by its message.
MAX_STRING_UNITS = 65_535
MAX_VECTOR_ITEMS = 65_536
MAX_VARIANT_DEPTH = 4


class VarType(IntEnum):
    """The discriminants that these protocols use; any other is undecodable (MS-MQDS 2.2.3)."""

    EMPTY = 0
    NULL = 1
    I2 = 2
    I4 = 3
    BOOL = 11
    I1 = 16
    UI1 = 17
    UI2 = 18
    UI4 = 19
    I8 = 20
    UI8 = 21
    LPWSTR = 31
    BLOB = 65
    CLSID = 72
    VECTOR_I4 = VECTOR | 3
    VECTOR_VARIANT = VECTOR | 12
    VECTOR_UI1 = VECTOR | 17
    VECTOR_UI2 = VECTOR | 18
    VECTOR_UI4 = VECTOR | 19
    VECTOR_UI8 = VECTOR | 21
    VECTOR_LPWSTR = VECTOR | 31
    VECTOR_CLSID = VECTOR | 72

    def __str__(self) -> str:
        """As the specifications write it: VT_UI4, VT_CLSID|VT_VECTOR."""
        if self & VECTOR:
            return f"VT_{self.name.removeprefix('VECTOR_')}|VT_VECTOR"
        return f"VT_{self.name}"

    @classmethod
    def parse(cls, text: str) -> VarType:
        found = _BY_TEXT.get(text)
        if found is None:
            raise ValueError(f"{text!r} is not a variant type (VT_UI4, VT_CLSID|VT_VECTOR, ...)")
        return found


_BY_TEXT = {str(vt): vt for vt in VarType}

Value = None | bool | int | str | bytes | Guid | tuple["int | str | Guid | PropVariant", ...]


@dataclass(frozen=True, slots=True)
class PropVariant:
    """A typed value. A VECTOR of UI1 is ``bytes``, any other vector a tuple."""

    vt: VarType
    value: Value

    def __post_init__(self) -> None:
        fault = _FAULTS[self.vt](self.value)
        if fault is not None:
            raise ValueError(f"{self.vt}: {fault}")

    def encode(self, writer: Writer) -> None:
        """The packed form: the value alone."""
        _CODECS[self.vt].encode(writer, self.value)

    @classmethod
    def decode(cls, reader: Reader, vt: VarType) -> PropVariant:
        return cls(vt, _CODECS[vt].decode(reader))

    def encode_tagged(self, writer: Writer) -> None:
        writer.u16(self.vt)
        self.encode(writer)

    @classmethod
    def decode_tagged(cls, reader: Reader, depth: int = 0) -> PropVariant:
        at = reader.offset
        number = reader.u16()
        vt = _BY_NUMBER.get(number)
        if vt is None:
            raise reader.error(f"variant type 0x{number:04x} is not one of MS-MQDS 2.2.3", at)
        if vt is VarType.VECTOR_VARIANT:
            return cls(vt, _decode_variants(reader, depth))
        return cls.decode(reader, vt)


_BY_NUMBER = {int(vt): vt for vt in VarType}


# --- what a value of each type may be -------------------------------------------------------------


def _nothing(value: object) -> str | None:
    return None if value is None else f"carries no value, got {value!r}"


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else f"wants True or False, got {value!r}"


def _integer(low: int, high: int) -> Callable[[object], str | None]:
    def fault(value: object) -> str | None:
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            return f"wants an integer, got {value!r}"
        return None if low <= value <= high else f"{value} is outside {low}..{high}"

    return fault


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return f"wants text, got {value!r}"
    if "\0" in value:
        return "text cannot hold a zero character"
    # A character takes one unit or two, so most texts need no counting.
    if 2 * len(value) > MAX_STRING_UNITS:
        units = len(value.encode("utf-16-le", "surrogatepass")) // 2
        if units > MAX_STRING_UNITS:
            return f"text has at most {MAX_STRING_UNITS} UTF-16 units, not {units}"
    return None


def _octets(value: object) -> str | None:
    return None if isinstance(value, bytes) else f"wants bytes, got {value!r}"


def _guid(value: object) -> str | None:
    return None if isinstance(value, Guid) else f"wants a Guid, got {value!r}"


def _variant(value: object) -> str | None:
    if not isinstance(value, PropVariant):
        return f"wants a PropVariant, got {value!r}"
    if _depth(value) >= MAX_VARIANT_DEPTH:
        return f"variants nest deeper than {MAX_VARIANT_DEPTH}"
    return None


def _depth(value: object) -> int:
    """How many vectors of variants lie in one another."""
    if not isinstance(value, PropVariant) or value.vt is not VarType.VECTOR_VARIANT:
        return 0
    assert isinstance(value.value, tuple)
    return 1 + max(map(_depth, value.value), default=0)


def _vector(item: Callable[[object], str | None]) -> Callable[[object], str | None]:
    def fault(value: object) -> str | None:
        if not isinstance(value, tuple):
            return f"wants a tuple, got {value!r}"
        if len(value) > MAX_VECTOR_ITEMS:
            return f"has at most {MAX_VECTOR_ITEMS} items, not {len(value)}"
        return next((f for f in map(item, value) if f is not None), None)

    return fault


_I4_FAULT = _integer(-(1 << 31), (1 << 31) - 1)
_UI2_FAULT = _integer(0, (1 << 16) - 1)
_UI4_FAULT = _integer(0, (1 << 32) - 1)
_UI8_FAULT = _integer(0, (1 << 64) - 1)

_FAULTS: dict[VarType, Callable[[object], str | None]] = {
    VarType.EMPTY: _nothing,
    VarType.NULL: _nothing,
    VarType.I1: _integer(-128, 127),
    VarType.UI1: _integer(0, 255),
    VarType.I2: _integer(-(1 << 15), (1 << 15) - 1),
    VarType.UI2: _UI2_FAULT,
    VarType.I4: _I4_FAULT,
    VarType.UI4: _UI4_FAULT,
    VarType.I8: _integer(-(1 << 63), (1 << 63) - 1),
    VarType.UI8: _UI8_FAULT,
    VarType.BOOL: _boolean,
    VarType.LPWSTR: _text,
    VarType.BLOB: _octets,
    VarType.CLSID: _guid,
    VarType.VECTOR_UI1: _octets,
    VarType.VECTOR_UI2: _vector(_UI2_FAULT),
    VarType.VECTOR_I4: _vector(_I4_FAULT),
    VarType.VECTOR_UI4: _vector(_UI4_FAULT),
    VarType.VECTOR_UI8: _vector(_UI8_FAULT),
    VarType.VECTOR_LPWSTR: _vector(_text),
    VarType.VECTOR_CLSID: _vector(_guid),
    VarType.VECTOR_VARIANT: _vector(_variant),
}


# --- bytes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Codec:
    encode: Callable[[Writer, Value], None]
    decode: Callable[[Reader], Value]


def _decode_bool(reader: Reader) -> bool:
    at = reader.offset
    number = reader.u16()
    if number not in (0x0000, 0xFFFF):  # MS-MQMQ 2.2.14
        raise reader.error(f"VARIANT_BOOL is 0x0000 or 0xffff, not 0x{number:04x}", at)
    return number != 0


def _decode_octets(reader: Reader) -> bytes:
    return reader.bytes(reader.u32(), "BLOB")


def _encode_octets(writer: Writer, value: bytes) -> None:
    writer.u32(len(value))
    writer.bytes(value)


def _encode_variants(writer: Writer, items: tuple[PropVariant, ...]) -> None:
    writer.u32(len(items))
    for item in items:
        item.encode_tagged(writer)


def _decode_variants(reader: Reader, depth: int = 0) -> tuple[PropVariant, ...]:
    if depth >= MAX_VARIANT_DEPTH:
        raise reader.error(f"variants nest deeper than {MAX_VARIANT_DEPTH}")
    count = reader.count(MAX_VECTOR_ITEMS, 2, "VT_VARIANT|VT_VECTOR")
    return tuple(PropVariant.decode_tagged(reader, depth + 1) for _ in range(count))


def _codec_of(
    encode: Callable[[Writer, object], None] | object, decode: Callable[[Reader], Value]
) -> _Codec:
    """The table below pairs each type with methods that take just its values.

    ``PropVariant`` checks value against type before either side is called, which no annotation
    can say, hence the one unchecked step here.
    """
    return _Codec(encode, decode)  # type: ignore[arg-type]


def _vector_of(item: _Codec, item_size: int, vt: VarType) -> _Codec:
    def encode(writer: Writer, items: tuple[Value, ...]) -> None:
        writer.u32(len(items))
        for value in items:
            item.encode(writer, value)

    def decode(reader: Reader) -> Value:
        count = reader.count(MAX_VECTOR_ITEMS, item_size, str(vt))
        return tuple(item.decode(reader) for _ in range(count))  # type: ignore[misc]

    return _codec_of(encode, decode)


_UI2 = _codec_of(Writer.u16, Reader.u16)
_I4 = _codec_of(Writer.i32, Reader.i32)
_UI4 = _codec_of(Writer.u32, Reader.u32)
_UI8 = _codec_of(Writer.u64, Reader.u64)
_LPWSTR = _codec_of(Writer.utf16z, lambda reader: reader.utf16z(MAX_STRING_UNITS, "VT_LPWSTR"))
_CLSID = _codec_of(Writer.guid, Reader.guid)
_NOTHING = _codec_of(lambda _writer, _value: None, lambda _reader: None)
_OCTETS = _codec_of(_encode_octets, _decode_octets)

_CODECS: dict[VarType, _Codec] = {
    VarType.EMPTY: _NOTHING,
    VarType.NULL: _NOTHING,
    VarType.I1: _codec_of(Writer.i8, Reader.i8),
    VarType.UI1: _codec_of(Writer.u8, Reader.u8),
    VarType.I2: _codec_of(Writer.i16, Reader.i16),
    VarType.UI2: _UI2,
    VarType.I4: _I4,
    VarType.UI4: _UI4,
    VarType.I8: _codec_of(Writer.i64, Reader.i64),
    VarType.UI8: _UI8,
    VarType.BOOL: _codec_of(lambda w, value: w.u16(0xFFFF if value else 0), _decode_bool),
    VarType.LPWSTR: _LPWSTR,
    VarType.BLOB: _OCTETS,
    VarType.CLSID: _CLSID,
    VarType.VECTOR_UI1: _OCTETS,
    VarType.VECTOR_UI2: _vector_of(_UI2, 2, VarType.VECTOR_UI2),
    VarType.VECTOR_I4: _vector_of(_I4, 4, VarType.VECTOR_I4),
    VarType.VECTOR_UI4: _vector_of(_UI4, 4, VarType.VECTOR_UI4),
    VarType.VECTOR_UI8: _vector_of(_UI8, 8, VarType.VECTOR_UI8),
    VarType.VECTOR_LPWSTR: _vector_of(_LPWSTR, 2, VarType.VECTOR_LPWSTR),
    VarType.VECTOR_CLSID: _vector_of(_CLSID, 16, VarType.VECTOR_CLSID),
    VarType.VECTOR_VARIANT: _codec_of(_encode_variants, _decode_variants),
}
