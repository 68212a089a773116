"""PROPVARIANT (MS-MQMQ 2.2.13) in NDR, to and from ``PropVariant``.

    u16 vt, u8, u8, u32 (reserved), then [switch_is(vt)] a union with u16 discriminant:

    nothing              EMPTY NULL
    1, 2, 4 or 8 bytes   I1 UI1, I2 UI2 BOOL, I4 UI4, I8 UI8
    pointer              CLSID (GUID*), LPWSTR ([string] wchar_t*)
    u32 count, pointer   BLOB and the vectors ([size_is(count)] T*)

The 64-bit arms align it to 8. Arms are at offset 10, 12 or 16 in NDR20, always at 16 in NDR64,
which also pads the end. A call carries up to 128 of these, so this codec is written by hand instead
of being described: each type has a layout for its whole inline part.

A null LPWSTR or CLSID is legal NDR but has no value; it decodes to VT_NULL. A null element of a
vector of strings is legal too, and decodes to an empty string. ``PROPVARIANT_TYPE`` keeps the type
where the peer sends only that (the [in] side of S_DSGetProps, MS-MQDS 3.1.4.7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mqis.wire.guid import Guid
from mqis.wire.ndr.arrays import Conformant
from mqis.wire.ndr.context_handles import GUID
from mqis.wire.ndr.description import Codec, DecodeInline, Description, Elements, EncodeInline
from mqis.wire.ndr.pointers import Unique
from mqis.wire.ndr.scalars import I32, U8, U16, U32, U64
from mqis.wire.ndr.stream import INVALID_TAG, ZEROS, Decoder, Dialect, Encoder
from mqis.wire.ndr.strings import ConformantString
from mqis.wire.propvariant import (
    MAX_STRING_UNITS,
    MAX_VARIANT_DEPTH,
    MAX_VECTOR_ITEMS,
    PropVariant,
    Value,
    VarType,
)

_STRING = ConformantString(maximum=MAX_STRING_UNITS + 1)
_SIMPLE = {
    VarType.I1: "b",
    VarType.UI1: "B",
    VarType.I2: "h",
    VarType.UI2: "H",
    VarType.I4: "i",
    VarType.UI4: "I",
    VarType.I8: "q",
    VarType.UI8: "Q",
}
_POINTERS: dict[VarType, Description[Any]] = {VarType.LPWSTR: _STRING, VarType.CLSID: GUID}
_COUNTED: dict[VarType, Description[Any]] = {
    VarType.BLOB: Conformant(U8),
    VarType.VECTOR_UI1: Conformant(U8),
    VarType.VECTOR_UI2: Conformant(U16, maximum=MAX_VECTOR_ITEMS),
    VarType.VECTOR_I4: Conformant(I32, maximum=MAX_VECTOR_ITEMS),
    VarType.VECTOR_UI4: Conformant(U32, maximum=MAX_VECTOR_ITEMS),
    VarType.VECTOR_UI8: Conformant(U64, maximum=MAX_VECTOR_ITEMS),
    VarType.VECTOR_CLSID: Conformant(GUID, maximum=MAX_VECTOR_ITEMS),
    VarType.VECTOR_LPWSTR: Conformant(Unique(_STRING), maximum=MAX_VECTOR_ITEMS),
}

_NULL = PropVariant(VarType.NULL, None)
_TYPES = {int(vt): vt for vt in VarType}

EncodeArm = Callable[[Encoder, VarType, Any], None]
EncodeReferent = Callable[[Encoder, Any], None]
#: Decodes the variant at an offset: to a finished one, or to (resolver, ...) if it has a referent.
DecodeArm = Callable[[Decoder, int], Any]

_CLASS: Any = PropVariant
_new = PropVariant.__new__
_set_vt = _CLASS.vt.__set__
_set_value = _CLASS.value.__set__


def _variant(vt: VarType, value: Value) -> PropVariant:
    """Makes a ``PropVariant`` without its check, which the decoder has made."""
    variant = _new(PropVariant)
    _set_vt(variant, vt)
    _set_value(variant, value)
    return variant


class _Arms:
    """The functions and layouts of each variant type in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.encode: dict[int, EncodeArm] = {}
        self.referent: dict[int, EncodeReferent] = {}
        self.decode: dict[int, DecodeArm] = {}
        #: The bytes of a variant without a value: nothing, zero or null in its arm.
        self.blank: dict[int, bytes] = {}
        #: The padding before an arm: up to offset 16, or as its alignment requires.
        self.gaps = {1: "", 2: "", 4: "2x", 8: "6x"}
        if dialect.is_ndr64:
            self.gaps = dict.fromkeys(self.gaps, "6x")
        self._nothing(VarType.EMPTY)
        self._nothing(VarType.NULL)
        for vt, code in _SIMPLE.items():
            self._simple(vt, code)
        self._boolean()
        for vt, description in _POINTERS.items():
            self._pointer(vt, description.codec_in(dialect))
        for vt, description in _COUNTED.items():
            self._counted(vt, description.codec_in(dialect))

    def layout(self, arm: str, alignment: int, width: int) -> tuple[Any, Any, int]:
        """The layout of the inline part, to write (both tags, arm) and to read (the arm alone)."""
        gap = self.gaps[alignment]
        end = f"{-width % 8}x" if self.dialect.is_ndr64 else ""
        write = self.dialect.form(f"H6xH{gap}{arm}{end}")
        read = self.dialect.form(f"10x{gap}{arm}{end}")
        return write.pack, read.unpack_from, write.size

    def _nothing(self, vt: VarType) -> None:
        pack, _, size = self.layout("", 1, 0)
        variant = PropVariant(vt, None)

        def encode(encoder: Encoder, vt: VarType, _value: None) -> None:
            encoder.buffer += pack(vt, vt)

        def decode(decoder: Decoder, offset: int) -> PropVariant:
            decoder.offset = offset + size
            return variant

        self.encode[vt], self.decode[vt] = encode, decode
        self.blank[vt] = pack(vt, vt)

    def _simple(self, vt: VarType, code: str) -> None:
        width = self.dialect.form(code).size
        pack, unpack_from, size = self.layout(code, width, width)

        def encode(encoder: Encoder, vt: VarType, value: int) -> None:
            encoder.buffer += pack(vt, vt, value)

        def decode(decoder: Decoder, offset: int) -> PropVariant:
            (value,) = unpack_from(decoder.data, offset)
            decoder.offset = offset + size
            return _variant(vt, value)

        self.encode[vt], self.decode[vt] = encode, decode
        self.blank[vt] = pack(vt, vt, 0)

    def _boolean(self) -> None:
        pack, unpack_from, size = self.layout("H", 2, 2)

        def encode(encoder: Encoder, vt: VarType, value: bool) -> None:
            encoder.buffer += pack(vt, vt, 0xFFFF if value else 0)

        def decode(decoder: Decoder, offset: int) -> PropVariant:
            (value,) = unpack_from(decoder.data, offset)
            if value not in (0, 0xFFFF):  # MS-MQMQ 2.2.14
                raise decoder.error(f"VARIANT_BOOL is 0 or 0xffff, not {value:#x}", offset)
            decoder.offset = offset + size
            return _variant(VarType.BOOL, value != 0)

        self.encode[VarType.BOOL], self.decode[VarType.BOOL] = encode, decode
        self.blank[VarType.BOOL] = pack(VarType.BOOL, VarType.BOOL, 0)

    def _pointer(self, vt: VarType, referent: Codec) -> None:
        identifier, width = self.dialect.count_code, self.dialect.count_size
        pack, unpack_from, size = self.layout(identifier, width, width)
        decode_referent = referent.decode

        def encode(encoder: Encoder, vt: VarType, _value: str | Guid) -> None:
            encoder.buffer += pack(vt, vt, encoder.refer())

        def decode(decoder: Decoder, offset: int) -> Any:
            (identifier,) = unpack_from(decoder.data, offset)
            decoder.offset = offset + size
            return (resolve,) if identifier else _NULL

        def resolve(decoder: Decoder, _inline: Any) -> PropVariant:
            return _variant(vt, decode_referent(decoder))

        self.encode[vt], self.decode[vt] = encode, decode
        self.referent[vt] = referent.encode
        self.blank[vt] = pack(vt, vt, 0)

    def _counted(self, vt: VarType, referent: Codec) -> None:
        decode_items, resolve_items = referent.decode, referent.resolve
        encode_items, encode_deferred = referent.encode, referent.encode_deferred
        if resolve_items is None:
            empty: Any = b"" if vt in (VarType.BLOB, VarType.VECTOR_UI1) else ()
            self.add_counted(vt, empty, encode_items, decode_items)
            return

        def encode_referent(encoder: Encoder, value: Any) -> None:
            assert encode_deferred is not None
            encode_items(encoder, value)
            encode_deferred(encoder, value)

        def decode_referent(decoder: Decoder) -> Any:
            items = resolve_items(decoder, decode_items(decoder))
            return tuple(["" if text is None else text for text in items])

        self.add_counted(vt, (), encode_referent, decode_referent)

    def add_counted(
        self,
        vt: VarType,
        empty: Any,
        encode_referent: EncodeReferent,
        decode_referent: Callable[[Decoder], Any],
    ) -> None:
        """Adds a type that is a count and a pointer, which is null if the count is 0."""
        width = self.dialect.count_size
        arm = "I4xQ" if self.dialect.is_ndr64 else "II"
        pack, unpack_from, size = self.layout(arm, width, 2 * width)

        def encode(encoder: Encoder, vt: VarType, value: Any) -> None:
            count = len(value)
            encoder.buffer += pack(vt, vt, count, encoder.refer() if count else 0)

        def decode(decoder: Decoder, offset: int) -> Any:
            count, identifier = unpack_from(decoder.data, offset)
            decoder.offset = offset + size
            if identifier:
                return resolve, count
            if count:
                raise decoder.error(f"{vt} of {count} elements has no pointer to them", offset)
            return _variant(vt, empty)

        def encode_pointed_to(encoder: Encoder, value: Any) -> None:
            if value:
                encode_referent(encoder, value)

        def resolve(decoder: Decoder, inline: Any) -> PropVariant:
            at = decoder.offset
            items = decode_referent(decoder)
            if len(items) != inline[1]:
                raise decoder.error(f"{vt} announces {inline[1]} elements and has {len(items)}", at)
            return _variant(vt, items)

        self.encode[vt], self.decode[vt] = encode, decode
        self.referent[vt] = encode_pointed_to
        self.blank[vt] = pack(vt, vt, 0, 0)


@dataclass(frozen=True, eq=False)
class PropVariantDescription(Description[PropVariant]):
    def compile(self, dialect: Dialect) -> Codec:
        return _variant_codec(dialect)[0]


@dataclass(frozen=True, eq=False)
class PropVariantTypeDescription(Description[VarType]):
    """A PROPVARIANT of which only the type is kept; its value is skipped."""

    def compile(self, dialect: Dialect) -> Codec:
        variant, arms = _variant_codec(dialect)
        decode_variant, resolve_variant, blank = variant.decode, variant.resolve, arms.blank
        unpack_type = dialect.form("H").unpack_from

        def encode(encoder: Encoder, vt: VarType) -> None:
            encoder.buffer += ZEROS[-len(encoder.buffer) & 7]
            encoder.buffer += blank[vt]

        def decode(decoder: Decoder) -> Any:
            offset = decoder.offset
            offset += -offset & 7
            inline = decode_variant(decoder)
            return unpack_type(decoder.data, offset)[0], inline

        def resolve(decoder: Decoder, inline: Any) -> VarType:
            assert resolve_variant is not None
            resolve_variant(decoder, inline[1])
            return _TYPES[inline[0]]

        many = _many_types(arms, variant, encode)
        return Codec(8, variant.minimum, encode, decode, None, resolve, many=many)


def _many_types(arms: _Arms, variant: Codec, encode_one: EncodeInline) -> Elements:
    """The codec for arrays of types, in one loop: every read has such an array."""
    decode_arms, decode_one = arms.decode, variant.decode
    unpack_tags = arms.dialect.form("H6xH").unpack_from
    null = arms.blank[VarType.NULL]
    padded_null = null.ljust(16, b"\0")

    def encode(encoder: Encoder, types: tuple[VarType, ...]) -> None:
        for vt in types:
            encode_one(encoder, vt)

    def decode(decoder: Decoder, count: int) -> Any:
        data, inline = decoder.data, []
        # Nearly always all of them are null, and no byte of the padding is set.
        start = decoder.offset
        start += -start & 7
        nulls = padded_null * (count - 1) + null
        if count and data.startswith(nulls, start):
            decoder.offset = start + len(nulls)
            return (VarType.NULL,) * count
        for _ in range(count):
            offset = decoder.offset
            offset += -offset & 7
            vt, tag = unpack_tags(data, offset)
            decode_arm = decode_arms.get(vt)
            if vt != tag or decode_arm is None:
                decode_one(decoder)  # raises the error
            else:
                inline.append((vt, decode_arm(decoder, offset)))
        return inline

    def resolve(decoder: Decoder, inline: Any) -> tuple[VarType, ...]:
        if type(inline) is tuple:
            return inline
        for _, item in inline:
            if type(item) is tuple:
                item[0](decoder, item)
        return tuple([_TYPES[vt] for vt, _ in inline])

    return Elements(8, variant.minimum, encode, decode, None, resolve)


def _variant_codec(dialect: Dialect) -> tuple[Codec, _Arms]:
    """The codec, and the functions of each type."""
    arms = _Arms(dialect)
    encode_arms, decode_arms, referents = arms.encode, arms.decode, arms.referent
    unpack_tags = dialect.form("H6xH").unpack_from

    def encode(encoder: Encoder, variant: PropVariant) -> None:
        buffer = encoder.buffer
        gap = -len(buffer) & 7
        if gap:
            buffer += ZEROS[gap]
        vt = variant.vt
        encode_arms[vt](encoder, vt, variant.value)

    def encode_deferred(encoder: Encoder, variant: PropVariant) -> None:
        encode_referent = referents.get(variant.vt)
        if encode_referent is not None:
            encode_referent(encoder, variant.value)

    def decode(decoder: Decoder) -> Any:
        offset = decoder.offset
        offset += -offset & 7
        vt, tag = unpack_tags(decoder.data, offset)
        if vt != tag:
            raise decoder.error(f"variant type {vt:#06x} has union arm {tag:#06x}", offset)
        decode_arm = decode_arms.get(vt)
        if decode_arm is None:
            reason = f"variant type {vt:#06x} is not one of MS-MQMQ 2.2.13"
            raise decoder.error(reason, offset, INVALID_TAG)
        return decode_arm(decoder, offset)

    def resolve(decoder: Decoder, inline: Any) -> Any:
        return inline[0](decoder, inline) if type(inline) is tuple else inline

    minimum = 16 if dialect.is_ndr64 else 10
    many = _many(arms, minimum, decode)
    codec = Codec(8, minimum, encode, decode, encode_deferred, resolve, many=many)
    _add_vector_of_variants(arms, dialect, codec)
    return codec, arms


def blank_variants(dialect: Dialect) -> Mapping[int, bytes]:
    """A variant of each type without a value, to find the places of its parts."""
    return _Arms(dialect).blank


def _many(arms: _Arms, minimum: int, decode_one: DecodeInline) -> Elements:
    """The codec for arrays of variants, in one loop: lookup rows are such arrays."""
    encode_arms, decode_arms, referents = arms.encode, arms.decode, arms.referent
    unpack_tags = arms.dialect.form("H6xH").unpack_from

    def encode(encoder: Encoder, variants: tuple[PropVariant, ...]) -> None:
        buffer = encoder.buffer
        for variant in variants:
            gap = -len(buffer) & 7
            if gap:
                buffer += ZEROS[gap]
            vt = variant.vt
            encode_arms[vt](encoder, vt, variant.value)

    def encode_deferred(encoder: Encoder, variants: tuple[PropVariant, ...]) -> None:
        for variant in variants:
            encode_referent = referents.get(variant.vt)
            if encode_referent is not None:
                encode_referent(encoder, variant.value)

    def decode(decoder: Decoder, count: int) -> list[Any]:
        data, inline = decoder.data, []
        for _ in range(count):
            offset = decoder.offset
            offset += -offset & 7
            vt, tag = unpack_tags(data, offset)
            decode_arm = decode_arms.get(vt)
            if vt != tag or decode_arm is None:
                decode_one(decoder)  # raises the error
            else:
                inline.append(decode_arm(decoder, offset))
        return inline

    def resolve(decoder: Decoder, inline: list[Any]) -> tuple[PropVariant, ...]:
        return tuple([item[0](decoder, item) if type(item) is tuple else item for item in inline])

    return Elements(8, minimum, encode, decode, encode_deferred, resolve)


def _add_vector_of_variants(arms: _Arms, dialect: Dialect, variant: Codec) -> None:
    """Adds the vector of variants, which may contain such vectors."""
    vector = Conformant(_Compiled(variant), maximum=MAX_VECTOR_ITEMS).codec_in(dialect)

    def encode_referent(encoder: Encoder, value: tuple[PropVariant, ...]) -> None:
        assert vector.encode_deferred is not None
        vector.encode(encoder, value)
        vector.encode_deferred(encoder, value)

    def decode_referent(decoder: Decoder) -> Any:
        decoder.variants += 1
        assert vector.resolve is not None
        items = vector.resolve(decoder, vector.decode(decoder))
        decoder.variants -= 1
        return items

    arms.add_counted(VarType.VECTOR_VARIANT, (), encode_referent, decode_referent)
    decode_counted = arms.decode[VarType.VECTOR_VARIANT]

    def decode_limited(decoder: Decoder, offset: int) -> Any:
        if decoder.variants >= MAX_VARIANT_DEPTH:
            raise decoder.error(f"variants nest deeper than {MAX_VARIANT_DEPTH}", offset)
        return decode_counted(decoder, offset)

    arms.decode[VarType.VECTOR_VARIANT] = decode_limited


@dataclass(frozen=True, eq=False)
class _Compiled(Description[Any]):
    """A description whose codec already exists, as the element of an array."""

    known: Codec

    def compile(self, dialect: Dialect) -> Codec:
        return self.known


PROPVARIANT = PropVariantDescription()
PROPVARIANT_TYPE = PropVariantTypeDescription()
