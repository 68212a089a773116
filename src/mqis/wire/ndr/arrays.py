"""Arrays of one dimension (C706 14.3.3; MS-RPCE 2.2.5.3.2).

    Fixed               elements
    Conformant          maximum count, elements
    Varying             offset, actual count, elements
    ConformantVarying   maximum count, offset, actual count, elements

Counts are checked before memory is allocated: against the declared bounds, against 2^31-1, and
against the rest of the stub. [first_is] is not supported, so an offset has to be zero
(MS-RPCE 3.1.1.5.3.2.1.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any

from mqis.wire.ndr.array_elements import elements_of, measure_of
from mqis.wire.ndr.description import (
    Codec,
    Conformance,
    Correlation,
    Count,
    Description,
    Elements,
    Expression,
    Flat,
    Given,
    Measure,
    flat_codec,
    widest,
)
from mqis.wire.ndr.stream import MAX_COUNT, ZEROS, Decoder, Dialect, Encoder


def expression_of(name: Expression | str | None) -> Expression | None:
    return Count(name) if isinstance(name, str) else name


def correlations_of(
    size_is: Expression | str | None,
    length_is: Expression | str | None,
    maximum: int | Given,
) -> tuple[Correlation, ...]:
    found = []
    size, length = expression_of(size_is), expression_of(length_is)
    if length is not None:
        found.append(Correlation("length_is", length))
    if size is not None:
        found.append(Correlation("size_is", size))
    if isinstance(maximum, Given):
        found.append(Correlation("at_most", maximum))
    return tuple(found)


def align(encoder: Encoder, mask: int) -> None:
    gap = -len(encoder.buffer) & mask
    if gap:
        encoder.buffer += ZEROS[gap]


@dataclass(frozen=True, eq=False)
class Fixed(Description[Any]):
    """An array of exactly ``size`` elements."""

    element: Description[Any]
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError("a fixed array has at least one element")

    def compile(self, dialect: Dialect) -> Codec:
        elements = elements_of(self.element, dialect)
        widest((elements.alignment,))
        size, measure = self.size, measure_of(self.element)

        def checked(value: Any) -> Any:
            if measure(value) != size:
                raise ValueError(f"a fixed array of {size} cannot hold {measure(value)} elements")
            return value

        if self.element.array_form == "bytes":
            octets = Flat(f"{size}s", size, lambda _encoder, value: _octets(checked(value)))
            return flat_codec(dialect, octets, 1)
        simple = self.element.codec_in(dialect).flat
        if self.element.array_form == "tuple" and simple is not None and simple.is_plain:
            form = dialect.form(f"{size}{simple.code}")
            flat = Flat(
                f"{form.size}s",
                form.size,
                lambda _encoder, value: form.pack(*checked(value)),
                lambda _decoder, item, _offset: form.unpack(item),
            )
            return flat_codec(dialect, flat, elements.alignment)

        def encode(encoder: Encoder, value: Any) -> None:
            elements.encode(encoder, checked(value))

        def decode(decoder: Decoder) -> Any:
            return elements.decode(decoder, size)

        return Codec(
            elements.alignment,
            elements.minimum * size,
            encode,
            decode,
            elements.encode_deferred,
            elements.resolve,
        )


def _octets(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"an array of octets is bytes, not {type(value).__name__}")
    return value


@dataclass(frozen=True, eq=False)
class Conformant(Description[Any]):
    """An array with as many elements as its maximum count.

    ``minimum`` and ``maximum`` are [range] on the count (MS-RPCE 2.2.4.14.2); a ``Given`` maximum
    comes from the request that a response answers.
    """

    element: Description[Any]
    size_is: Expression | str | None = None
    minimum: int = 0
    maximum: int | Given = MAX_COUNT

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return correlations_of(self.size_is, None, self.maximum)

    @property
    def measure(self) -> Measure:
        return measure_of(self.element)

    def compile(self, dialect: Dialect) -> Codec:
        elements = elements_of(self.element, dialect)
        measure = measure_of(self.element)
        low, high = self.minimum, _bound(self.maximum)
        form = dialect.form(dialect.count_code)
        mask = form.size - 1
        pack, unpack_from = form.pack, form.unpack_from
        item_size, encode_items, decode_items = elements.minimum, elements.encode, elements.decode

        def encode_maximum(encoder: Encoder, value: Any) -> None:
            count = measure(value)
            if not low <= count <= high:
                raise _bad_count(count, low, high)
            buffer = encoder.buffer
            gap = -len(buffer) & mask
            if gap:
                buffer += ZEROS[gap]
            buffer += pack(count)

        def decode_maximum(decoder: Decoder) -> int:
            offset = decoder.offset
            offset += -offset & mask
            count: int = unpack_from(decoder.data, offset)[0]
            decoder.offset = start = offset + mask + 1
            if not low <= count <= high or count * item_size > decoder.size - start:
                raise decoder.bad_count("conformant array", count, low, high, offset)
            return count

        def encode(encoder: Encoder, value: Any) -> None:
            encode_maximum(encoder, value)
            encode_items(encoder, value)

        def decode(decoder: Decoder) -> Any:
            return decode_items(decoder, decode_maximum(decoder))

        return Codec(
            elements.alignment,
            1,
            encode,
            decode,
            elements.encode_deferred,
            elements.resolve,
            conformance=Conformance(encode_maximum, decode_maximum, elements.encode, decode_items),
        )


@dataclass(frozen=True, eq=False)
class Varying(Description[Any]):
    """An array of ``size`` elements of which the first few are sent."""

    element: Description[Any]
    size: int
    length_is: Expression | str | None = None

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return correlations_of(None, self.length_is, 0)

    @property
    def measure(self) -> Measure:
        return measure_of(self.element)

    def compile(self, dialect: Dialect) -> Codec:
        elements = elements_of(self.element, dialect)
        form = dialect.form(2 * dialect.count_code)
        measure, size = measure_of(self.element), self.size

        def encode(encoder: Encoder, value: Any) -> None:
            count = measure(value)
            _encode_actual(encoder, form, dialect.count_size - 1, _checked(count, 0, size))
            elements.encode(encoder, value)

        def decode(decoder: Decoder) -> Any:
            return _decode_actual(decoder, form, dialect.count_size - 1, elements, size)

        return Codec(
            widest((elements.alignment, dialect.count_size)),
            form.size,
            encode,
            decode,
            elements.encode_deferred,
            elements.resolve,
        )


@dataclass(frozen=True, eq=False)
class ConformantVarying(Description[Any]):
    """An array with a maximum count, of which the first few elements are sent."""

    element: Description[Any]
    size_is: Expression | str | None = None
    length_is: Expression | str | None = None
    minimum: int = 0
    maximum: int | Given = MAX_COUNT

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return correlations_of(self.size_is, self.length_is, self.maximum)

    @property
    def has_maximum(self) -> bool:
        return self.size_is is not None

    @property
    def measure(self) -> Measure:
        return measure_of(self.element)

    def compile(self, dialect: Dialect) -> Codec:
        elements = elements_of(self.element, dialect)
        return varying_codec(
            dialect,
            elements,
            measure_of(self.element),
            (self.minimum, _bound(self.maximum)),
            self.has_maximum,
        )


def varying_codec(
    dialect: Dialect,
    elements: Elements,
    measure: Measure,
    bounds: tuple[int, int],
    pairs: bool,
) -> Codec:
    """The codec of the array. With ``pairs`` a value is (maximum count, elements)."""
    low, high = bounds
    mask = dialect.count_size - 1
    one, two = dialect.form(dialect.count_code), dialect.form(2 * dialect.count_code)
    encode_items = elements.encode

    def encode_maximum(encoder: Encoder, value: Any) -> None:
        count = _checked(value[0] if pairs else measure(value), low, high)
        align(encoder, mask)
        encoder.buffer += one.pack(count)

    def decode_maximum(decoder: Decoder) -> int:
        offset = decoder.offset
        offset += -offset & mask
        count: int = one.unpack_from(decoder.data, offset)[0]
        decoder.offset = offset + mask + 1
        if not low <= count <= high:
            raise decoder.bad_count("conformant varying array", count, low, high, offset)
        return count

    def encode_body(encoder: Encoder, value: Any) -> None:
        maximum, items = value if pairs else (high, value)
        _encode_actual(encoder, two, mask, _checked(measure(items), 0, maximum))
        encode_items(encoder, items)

    def decode_body(decoder: Decoder, maximum: int) -> Any:
        items = _decode_actual(decoder, two, mask, elements, maximum)
        return (maximum, items) if pairs else items

    def encode(encoder: Encoder, value: Any) -> None:
        encode_maximum(encoder, value)
        encode_body(encoder, value)

    def decode(decoder: Decoder) -> Any:
        return decode_body(decoder, decode_maximum(decoder))

    encode_deferred, resolve = elements.encode_deferred, elements.resolve
    if pairs and encode_deferred is not None and resolve is not None:
        plain_deferred, plain_resolve = encode_deferred, resolve

        def encode_deferred(encoder: Encoder, value: Any) -> None:
            plain_deferred(encoder, value[1])

        def resolve(decoder: Decoder, inline: Any) -> Any:
            return inline[0], plain_resolve(decoder, inline[1])

    return Codec(
        # An array of Lazy elements has an unknown alignment too.
        elements.alignment and max(elements.alignment, dialect.count_size),
        2 * dialect.count_size,
        encode,
        decode,
        encode_deferred,
        resolve,
        conformance=Conformance(encode_maximum, decode_maximum, encode_body, decode_body),
    )


def _bound(maximum: int | Given) -> int:
    return MAX_COUNT if isinstance(maximum, Given) else min(maximum, MAX_COUNT)


def _checked(count: int, low: int, high: int) -> int:
    if not low <= count <= high:
        raise _bad_count(count, low, high)
    return count


def _bad_count(count: int, low: int, high: int) -> ValueError:
    return ValueError(f"an array of {low} to {high} elements cannot have {count}")


def _encode_actual(encoder: Encoder, form: Struct, mask: int, count: int) -> None:
    align(encoder, mask)
    encoder.buffer += form.pack(0, count)


def _decode_actual(
    decoder: Decoder, form: Struct, mask: int, elements: Elements, maximum: int
) -> Any:
    offset = decoder.offset
    offset += -offset & mask
    first, count = form.unpack_from(decoder.data, offset)
    decoder.offset = start = offset + form.size
    if first:
        raise decoder.error(f"an array starts at element {first} instead of the first", offset)
    if count > maximum or count * elements.minimum > decoder.size - start:
        raise decoder.bad_count("varying array", count, 0, maximum, offset)
    return elements.decode(decoder, count)
