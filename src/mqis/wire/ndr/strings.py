"""[string] types (C706 14.3.4; MS-RPCE 2.2.5.3.3): counts include the terminator.

    ConformantString    maximum count, offset 0, actual count, characters, zero
    VaryingString       offset 0, actual count, characters, zero, in an array of fixed size

Behind a pointer, ``Unique(WSTRING)`` is [unique, string] wchar_t*. 8-bit characters are read as
Latin-1, so that no octet is lost. A value cannot contain a zero character: it would end the string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqis.wire.ndr.array_elements import utf16, utf16_units
from mqis.wire.ndr.arrays import align, correlations_of
from mqis.wire.ndr.description import (
    Codec,
    Conformance,
    Correlation,
    DecodeInline,
    Description,
    EncodeInline,
    Expression,
    Given,
    Measure,
)
from mqis.wire.ndr.stream import MAX_COUNT, ZEROS, Decoder, Dialect, Encoder, NdrError


@dataclass(frozen=True, eq=False)
class ConformantString(Description[Any]):
    """A string with its own maximum count; ``minimum`` and ``maximum`` limit its length.

    With ``terminated=False`` the peer may leave the zero out, or send more behind it: the text ends
    at the first zero or with the array. That is for parameters that the receiver ignores.
    """

    size_is: Expression | str | None = None
    minimum: int = 1
    maximum: int | Given = MAX_COUNT
    wide: bool = True
    terminated: bool = True

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return correlations_of(self.size_is, None, self.maximum)

    @property
    def has_maximum(self) -> bool:
        return self.size_is is not None

    @property
    def measure(self) -> Measure:
        units = utf16_units if self.wide else len
        return lambda value: 1 + units(value)

    def compile(self, dialect: Dialect) -> Codec:
        return _codec(self, dialect, self.has_maximum)


@dataclass(frozen=True, eq=False)
class VaryingString(Description[str]):
    """A string in an array of ``size`` characters."""

    size: int
    wide: bool = True

    def compile(self, dialect: Dialect) -> Codec:
        text = _Text(dialect, self.wide)
        mask, form = dialect.count_size - 1, dialect.form(2 * dialect.count_code)
        size = self.size

        def encode(encoder: Encoder, value: str) -> None:
            data, count = text.encode(value, 1, size)
            align(encoder, mask)
            encoder.buffer += form.pack(0, count)
            encoder.buffer += data

        def decode(decoder: Decoder) -> str:
            offset = decoder.offset
            offset += -offset & mask
            first, count = form.unpack_from(decoder.data, offset)
            if first or not 1 <= count <= size:
                raise _bad_string(decoder, (size, first, count), (1, size), offset)
            return text.decode(decoder, offset + form.size, count)

        return Codec(dialect.count_size, form.size + text.unit, encode, decode)


def _to_latin(text: str) -> bytes:
    return text.encode("latin-1")


def _from_latin(data: bytes) -> str:
    return data.decode("latin-1")


class _Text:
    """The codec of characters and terminator in one dialect."""

    __slots__ = ("from_bytes", "terminated", "to_bytes", "unit", "zero")

    def __init__(self, dialect: Dialect, wide: bool, terminated: bool = True) -> None:
        self.unit = 2 if wide else 1
        self.terminated = terminated
        self.zero = bytes(self.unit)
        self.to_bytes, self.from_bytes = utf16(dialect) if wide else (_to_latin, _from_latin)

    def encode(self, value: str, low: int, high: int) -> tuple[bytes, int]:
        if "\0" in value:
            raise ValueError("a zero-terminated string cannot hold a zero character")
        data = self.to_bytes(value) + self.zero
        count = len(data) // self.unit
        if not low <= count <= high:
            raise ValueError(f"a string has {low} to {high} characters with its zero, not {count}")
        return data, count

    def decode(self, decoder: Decoder, start: int, count: int) -> str:
        unit = self.unit
        stop = start + count * unit
        if stop > decoder.size:
            raise decoder.bad_count("string", count, 0, count, start)
        decoder.offset = stop
        if not self.terminated:
            return self.from_bytes(decoder.data[start:stop]).partition("\0")[0]
        text = self.from_bytes(decoder.data[start : stop - unit])
        if decoder.data[stop - unit : stop] != self.zero or "\0" in text:
            raise decoder.error("a string has to end at its only zero character", start)
        return text


def _bad_string(
    decoder: Decoder, counts: tuple[int, int, int], bounds: tuple[int, int], at: int
) -> NdrError:
    """The error for a wrong maximum count, offset or actual count."""
    maximum, first, count = counts
    if first:
        return decoder.error(f"a string starts at character {first} instead of the first", at)
    if count > maximum:
        return decoder.error(f"a string of {count} characters is in an array of {maximum}", at)
    if maximum > MAX_COUNT:
        return decoder.bad_count("string", maximum, 0, MAX_COUNT, at)
    return decoder.bad_count("string", count, bounds[0], bounds[1], at)


def _codec(description: ConformantString, dialect: Dialect, pairs: bool) -> Codec:
    """The codec. With ``pairs``, for a correlated size, a value is (maximum count, text)."""
    text = _Text(dialect, description.wide, description.terminated)
    mask = dialect.count_size - 1
    one, two = dialect.form(dialect.count_code), dialect.form(2 * dialect.count_code)
    measure, low = description.measure, max(description.minimum, int(description.terminated))
    high = description.maximum if isinstance(description.maximum, int) else MAX_COUNT

    def encode_maximum(encoder: Encoder, value: Any) -> None:
        align(encoder, mask)
        encoder.buffer += one.pack(value[0] if pairs else measure(value))

    def decode_maximum(decoder: Decoder) -> int:
        offset = decoder.offset
        offset += -offset & mask
        maximum: int = one.unpack_from(decoder.data, offset)[0]
        if maximum > MAX_COUNT:
            raise decoder.bad_count("string", maximum, 0, MAX_COUNT, offset)
        decoder.offset = offset + one.size
        return maximum

    def encode_body(encoder: Encoder, value: Any) -> None:
        maximum, characters = value if pairs else (high, value)
        data, count = text.encode(characters, low, min(high, maximum))
        align(encoder, mask)
        encoder.buffer += two.pack(0, count)
        encoder.buffer += data

    def decode_body(decoder: Decoder, maximum: int) -> Any:
        offset = decoder.offset
        offset += -offset & mask
        first, count = two.unpack_from(decoder.data, offset)
        if first or not low <= count <= high or count > maximum:
            raise _bad_string(decoder, (maximum, first, count), (low, high), offset)
        characters = text.decode(decoder, offset + two.size, count)
        return (maximum, characters) if pairs else characters

    def encode_both(encoder: Encoder, value: Any) -> None:
        encode_maximum(encoder, value)
        encode_body(encoder, value)

    def decode_both(decoder: Decoder) -> Any:
        return decode_body(decoder, decode_maximum(decoder))

    encode, decode = (encode_both, decode_both) if pairs else _at_once(text, dialect, low, high)
    minimum = two.size + low * text.unit
    conformance = Conformance(encode_maximum, decode_maximum, encode_body, decode_body)
    return Codec(dialect.count_size, minimum, encode, decode, conformance=conformance)


def _at_once(
    text: _Text, dialect: Dialect, low: int, high: int
) -> tuple[EncodeInline, DecodeInline]:
    """The functions for the usual case, with all three counts read or written together."""
    form = dialect.form(3 * dialect.count_code)
    pack, unpack_from, header = form.pack, form.unpack_from, form.size
    mask = dialect.count_size - 1
    encode_text, decode_text = text.encode, text.decode

    def encode(encoder: Encoder, value: str) -> None:
        data, count = encode_text(value, low, high)
        buffer = encoder.buffer
        gap = -len(buffer) & mask
        if gap:
            buffer += ZEROS[gap]
        buffer += pack(count, 0, count)
        buffer += data

    def decode(decoder: Decoder) -> str:
        offset = decoder.offset
        offset += -offset & mask
        maximum, first, count = unpack_from(decoder.data, offset)
        if first or not low <= count <= high or not count <= maximum <= MAX_COUNT:
            raise _bad_string(decoder, (maximum, first, count), (low, high), offset)
        return decode_text(decoder, offset + header, count)

    return encode, decode


WSTRING = ConformantString()
LENIENT_WSTRING = ConformantString(minimum=0, terminated=False)
ASTRING = ConformantString(wide=False)
