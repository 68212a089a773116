"""PROPVARIANT values (MS-MQMQ 2.2.12, 2.2.13) and their packed form (MS-MQCN 2.2.3).

In memory a value keeps its type tag. The packed form, which replication and change notification
put on the wire, omits it: the property identifier determines the type, and values follow each
other without tag, padding or reserved words.

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
from operator import attrgetter
from struct import Struct
from typing import Any

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

VECTOR = 0x1000
#: The longest string, the longest vector and the deepest vector of variants. A value beyond them
#: can be neither made nor decoded, so all encoded values can be read. Its message limits a blob.
MAX_STRING_UNITS = 65_535
MAX_VECTOR_ITEMS = 65_536
MAX_VARIANT_DEPTH = 4


class VarType(IntEnum):
    """The variant types that these protocols use; others cannot be decoded (MS-MQDS 2.2.3)."""

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
        """The specifications' spelling: VT_UI4, VT_CLSID|VT_VECTOR."""
        if self & VECTOR:
            return f"VT_{self.name.removeprefix('VECTOR_')}|VT_VECTOR"
        return f"VT_{self.name}"


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

    def packed(self) -> bytes:
        """The packed form: the value without its tag."""
        return _PACK[self.vt](self.value)

    def encode(self, writer: Writer) -> None:
        writer.bytes(_PACK[self.vt](self.value))

    @classmethod
    def decode(cls, reader: Reader, vt: VarType) -> PropVariant:
        return trusted(vt, _DECODE[vt](reader))

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

    @classmethod
    def from_packed(cls, number: int, data: bytes) -> PropVariant:
        """Decodes a packed value that is all of ``data``."""
        vt = _BY_NUMBER.get(number)
        if vt is None:
            raise WireError(f"variant type 0x{number:04x} is not one of MS-MQDS 2.2.3", 0)
        reader = Reader(data)
        found = cls.decode(reader, vt)
        reader.expect_end(str(vt))
        return found


_BY_NUMBER = {int(vt): vt for vt in VarType}
_set_vt = vars(PropVariant)["vt"].__set__
_set_value = vars(PropVariant)["value"].__set__


def trusted(vt: VarType, value: Value) -> PropVariant:
    """Makes a variant of a decoded value, which fits its type, without checking it again."""
    variant: PropVariant = object.__new__(PropVariant)
    _set_vt(variant, vt)
    _set_value(variant, value)
    return variant


# --- checks of a value by its type: each returns the fault, or None -------------------------------


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
    """The nesting of vectors of variants."""
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
#
# Each type has a function from its values to bytes, and one from a reader to a value. The first
# gets values that ``PropVariant`` has checked against their type; the tables cannot annotate that.


def _pack_octets(value: bytes) -> bytes:
    return _U32.pack(len(value)) + value


def _pack_text(value: str) -> bytes:
    return value.encode("utf-16-le", "surrogatepass") + b"\0\0"


def _pack_vector(pack: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def pack_all(items: tuple[Any, ...]) -> bytes:
        return _U32.pack(len(items)) + b"".join(map(pack, items))

    return pack_all


def _pack_tagged(variant: PropVariant) -> bytes:
    return _U16.pack(variant.vt) + variant.packed()


_U16 = Struct("<H")
_U32 = Struct("<I")

_PACK: dict[VarType, Callable[[Any], bytes]] = {
    VarType.EMPTY: lambda _value: b"",
    VarType.NULL: lambda _value: b"",
    VarType.I1: Struct("<b").pack,
    VarType.UI1: Struct("<B").pack,
    VarType.I2: Struct("<h").pack,
    VarType.UI2: _U16.pack,
    VarType.I4: Struct("<i").pack,
    VarType.UI4: _U32.pack,
    VarType.I8: Struct("<q").pack,
    VarType.UI8: Struct("<Q").pack,
    VarType.BOOL: lambda value: b"\xff\xff" if value else b"\0\0",
    VarType.LPWSTR: _pack_text,
    VarType.BLOB: _pack_octets,
    VarType.CLSID: attrgetter("raw"),
    VarType.VECTOR_UI1: _pack_octets,
    VarType.VECTOR_UI2: _pack_vector(_U16.pack),
    VarType.VECTOR_I4: _pack_vector(Struct("<i").pack),
    VarType.VECTOR_UI4: _pack_vector(_U32.pack),
    VarType.VECTOR_UI8: _pack_vector(Struct("<Q").pack),
    VarType.VECTOR_LPWSTR: _pack_vector(_pack_text),
    VarType.VECTOR_CLSID: _pack_vector(attrgetter("raw")),
    VarType.VECTOR_VARIANT: _pack_vector(_pack_tagged),
}

#: The sizes of those packed values that any bytes are.
PACKED_SIZES: dict[VarType, int] = {
    VarType.I1: 1,
    VarType.UI1: 1,
    VarType.I2: 2,
    VarType.UI2: 2,
    VarType.I4: 4,
    VarType.UI4: 4,
    VarType.I8: 8,
    VarType.UI8: 8,
    VarType.CLSID: 16,
}


def check_packed(number: int, value: bytes) -> None:
    """Raises ``WireError`` unless the bytes are one whole value of that type."""
    vt = _BY_NUMBER.get(number)
    if vt is None:
        raise WireError(f"variant type 0x{number:04x} is not one of MS-MQDS 2.2.3", 0)
    size = PACKED_SIZES.get(vt)
    if size is None:
        reader = Reader(value)
        _DECODE[vt](reader)
        reader.expect_end(str(vt))
    elif len(value) != size:
        raise WireError(f"{vt} has {size} bytes, not {len(value)}", 0)


def _decode_bool(reader: Reader) -> bool:
    at = reader.offset
    number = reader.u16()
    if number not in (0x0000, 0xFFFF):  # MS-MQMQ 2.2.14
        raise reader.error(f"VARIANT_BOOL is 0x0000 or 0xffff, not 0x{number:04x}", at)
    return number != 0


def _decode_octets(reader: Reader) -> bytes:
    return reader.bytes(reader.u32(), "BLOB")


def _decode_text(reader: Reader) -> str:
    return reader.utf16z(MAX_STRING_UNITS, "VT_LPWSTR")


def _decode_variants(reader: Reader, depth: int = 0) -> tuple[PropVariant, ...]:
    if depth >= MAX_VARIANT_DEPTH:
        raise reader.error(f"variants nest deeper than {MAX_VARIANT_DEPTH}")
    count = reader.count(MAX_VECTOR_ITEMS, 2, "VT_VARIANT|VT_VECTOR")
    return tuple(PropVariant.decode_tagged(reader, depth + 1) for _ in range(count))


def _decode_vector(
    item: Callable[[Reader], Any], item_size: int, vt: VarType
) -> Callable[[Reader], Value]:
    def decode(reader: Reader) -> Value:
        count = reader.count(MAX_VECTOR_ITEMS, item_size, str(vt))
        return tuple(item(reader) for _ in range(count))

    return decode


_DECODE: dict[VarType, Callable[[Reader], Value]] = {
    VarType.EMPTY: lambda _reader: None,
    VarType.NULL: lambda _reader: None,
    VarType.I1: Reader.i8,
    VarType.UI1: Reader.u8,
    VarType.I2: Reader.i16,
    VarType.UI2: Reader.u16,
    VarType.I4: Reader.i32,
    VarType.UI4: Reader.u32,
    VarType.I8: Reader.i64,
    VarType.UI8: Reader.u64,
    VarType.BOOL: _decode_bool,
    VarType.LPWSTR: _decode_text,
    VarType.BLOB: _decode_octets,
    VarType.CLSID: Reader.guid,
    VarType.VECTOR_UI1: _decode_octets,
    VarType.VECTOR_UI2: _decode_vector(Reader.u16, 2, VarType.VECTOR_UI2),
    VarType.VECTOR_I4: _decode_vector(Reader.i32, 4, VarType.VECTOR_I4),
    VarType.VECTOR_UI4: _decode_vector(Reader.u32, 4, VarType.VECTOR_UI4),
    VarType.VECTOR_UI8: _decode_vector(Reader.u64, 8, VarType.VECTOR_UI8),
    VarType.VECTOR_LPWSTR: _decode_vector(_decode_text, 2, VarType.VECTOR_LPWSTR),
    VarType.VECTOR_CLSID: _decode_vector(Reader.guid, 16, VarType.VECTOR_CLSID),
    VarType.VECTOR_VARIANT: _decode_variants,
}
