"""Codecs of an array's elements, without its counts.

Octets are held as ``bytes`` and wide characters as ``str``. Both are copied as a whole, and so is
an array of any other simple type. Other elements are encoded one by one.
"""

from __future__ import annotations

from codecs import utf_16_be_decode, utf_16_be_encode, utf_16_le_decode, utf_16_le_encode
from collections.abc import Callable
from struct import pack, unpack_from
from typing import Any

from mqis.wire.ndr.description import (
    Codec,
    Description,
    Elements,
    Measure,
    require_bound,
)
from mqis.wire.ndr.pointers import Ref
from mqis.wire.ndr.stream import ZEROS, Decoder, Dialect, Encoder


def utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) >> 1


def utf16(dialect: Dialect) -> tuple[Callable[[str], bytes], Callable[[bytes], str]]:
    """Returns an encoder and a decoder of UTF-16 code units; lone surrogates are allowed.

    ``str.encode`` looks up a codec by name at each call, which takes three times as long as using
    it.
    """
    if dialect.big_endian:
        encode, decode = utf_16_be_encode, utf_16_be_decode
    else:
        encode, decode = utf_16_le_encode, utf_16_le_decode
    return (
        lambda text: encode(text, "surrogatepass")[0],
        lambda data: decode(data, "surrogatepass", True)[0],
    )


def measure_of(element: Description[Any]) -> Measure:
    """The function that counts the elements of a value."""
    return utf16_units if element.array_form == "str" else len


def elements_of(element: Description[Any], dialect: Dialect) -> Elements:
    require_bound(element)
    if element.array_form == "bytes":
        return _octets()
    if element.array_form == "str":
        return _wide_characters(dialect)
    codec = element.codec_in(dialect)
    if isinstance(element, Ref) and not dialect.is_ndr64:
        codec = element.without_identifier(dialect)
    if codec.conformance is not None:
        raise TypeError("an array of conformant arrays or structures needs pointers to them")
    if codec.many is not None:
        return codec.many
    if codec.flat is not None and codec.flat.is_plain:
        return _simple(dialect, codec.flat.code, codec.flat.size)
    return _one_by_one(codec)


def _octets() -> Elements:
    def encode(encoder: Encoder, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError(f"an array of octets is bytes, not {type(value).__name__}")
        encoder.buffer += value

    def decode(decoder: Decoder, count: int) -> bytes:
        start = decoder.offset
        stop = start + count
        if stop > decoder.size:
            raise decoder.bad_count("octets", count, 0, count, start)
        decoder.offset = stop
        return decoder.data[start:stop]

    return Elements(1, 1, encode, decode)


def _wide_characters(dialect: Dialect) -> Elements:
    to_bytes, from_bytes = utf16(dialect)

    def encode(encoder: Encoder, value: str) -> None:
        if value:
            buffer = encoder.buffer
            if len(buffer) & 1:
                buffer += ZEROS[1]
            buffer += to_bytes(value)

    def decode(decoder: Decoder, count: int) -> str:
        if not count:
            return ""
        start = decoder.offset + (decoder.offset & 1)
        stop = start + 2 * count
        if stop > decoder.size:
            raise decoder.bad_count("wide characters", count, 0, count, start)
        decoder.offset = stop
        return from_bytes(decoder.data[start:stop])

    return Elements(2, 2, encode, decode)


def _simple(dialect: Dialect, code: str, size: int) -> Elements:
    order, mask = dialect.order, size - 1

    def encode(encoder: Encoder, values: tuple[Any, ...]) -> None:
        if values:
            buffer = encoder.buffer
            gap = -len(buffer) & mask
            if gap:
                buffer += ZEROS[gap]
            buffer += pack(f"{order}{len(values)}{code}", *values)

    def decode(decoder: Decoder, count: int) -> tuple[Any, ...]:
        if not count:
            return ()
        start = decoder.offset
        start += -start & mask
        stop = start + count * size
        if stop > decoder.size:
            raise decoder.bad_count("array", count, 0, count, start)
        decoder.offset = stop
        return unpack_from(f"{order}{count}{code}", decoder.data, start)

    return Elements(size, size, encode, decode)


def _one_by_one(codec: Codec) -> Elements:
    encode_one, decode_one = codec.encode, codec.decode
    encode_deferred, resolve = codec.encode_deferred, codec.resolve

    def encode(encoder: Encoder, values: tuple[Any, ...]) -> None:
        for value in values:
            encode_one(encoder, value)

    def decode(decoder: Decoder, count: int) -> Any:
        return tuple([decode_one(decoder) for _ in range(count)])

    def encode_all_deferred(encoder: Encoder, values: tuple[Any, ...]) -> None:
        assert encode_deferred is not None
        for value in values:
            encode_deferred(encoder, value)

    def resolve_all(decoder: Decoder, items: tuple[Any, ...]) -> Any:
        assert resolve is not None
        return tuple([resolve(decoder, item) for item in items])

    return Elements(
        codec.alignment,
        codec.minimum,
        encode,
        decode,
        None if encode_deferred is None else encode_all_deferred,
        None if resolve is None else resolve_all,
    )
