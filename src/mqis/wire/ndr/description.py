"""Type descriptions, and the codecs that they compile to.

A description is independent of the transfer syntax. Its codec for one syntax is made once, from
closures over everything that is fixed.

Pointers make NDR two-phase: a structure or array contains only a referent identifier. The
referents follow the outermost construction, each followed by its own referents (C706 14.3.12.3).
So a codec has an inline phase, which every type has, and a deferred phase, which types without
embedded pointers lack (``None``). In decoding, the inline phase returns a preliminary value, which
``resolve`` completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from struct import error as struct_error
from typing import Any, Generic, Literal, TypeVar

from mqis.wire.ndr.stream import (
    NOTHING_GIVEN,
    ZEROS,
    Decoder,
    Dialect,
    Encoder,
    NdrError,
    Syntax,
    dialect_of,
)

T = TypeVar("T")
#: The alignment of a type that is not known yet, and of arrays of it: see ``Lazy``.
UNKNOWN_ALIGNMENT = 0
ArrayForm = Literal["tuple", "bytes", "str"]

EncodeInline = Callable[[Encoder, Any], None]
DecodeInline = Callable[[Decoder], Any]
Resolve = Callable[[Decoder, Any], Any]
Measure = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Flat:
    """A fixed-size type as one item of a ``struct`` layout.

    Consecutive flat members of a structure are packed and unpacked together. ``dump`` converts a
    value to a packed item; ``load`` converts a packed item to a preliminary value (third argument:
    its offset). ``None`` means that no conversion is needed.
    """

    code: str
    size: int
    dump: Callable[[Encoder, Any], Any] | None = None
    load: Callable[[Decoder, Any, int], Any] | None = None

    @property
    def is_plain(self) -> bool:
        return self.dump is None and self.load is None


@dataclass(frozen=True, slots=True)
class Conformance:
    """The two parts of a conformant type: a structure sends the maximum count before itself."""

    encode_maximum: EncodeInline
    decode_maximum: DecodeInline
    encode_body: EncodeInline
    decode_body: Callable[[Decoder, int], Any]


@dataclass(frozen=True, slots=True)
class Elements:
    """The codec of an array's elements, without its counts."""

    alignment: int
    #: The smallest size of one element, at least 1.
    minimum: int
    encode: EncodeInline
    #: The caller has checked the number against the rest of the stub.
    decode: Callable[[Decoder, int], Any]
    encode_deferred: EncodeInline | None = None
    resolve: Resolve | None = None


@dataclass(frozen=True, slots=True)
class Codec:
    alignment: int
    #: The smallest encoded size, at least 1; it allows impossible counts to be refused early.
    minimum: int
    encode: EncodeInline
    decode: DecodeInline
    encode_deferred: EncodeInline | None = None
    resolve: Resolve | None = None
    flat: Flat | None = None
    conformance: Conformance | None = None
    #: A faster codec for arrays of this type, if it has one.
    many: Elements | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """The name of a field or parameter that holds a count, possibly in other units: Length / 2."""

    name: str
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Given:
    """A count that is not in this stub: the caller takes it from the request of the call."""

    name: str
    divisor: int = 1


Expression = Count | Given | int


@dataclass(frozen=True, slots=True)
class Correlation:
    """A relation between a value and another one, which the enclosing structure or call checks."""

    kind: Literal["size_is", "length_is", "switch_is", "at_most"]
    expression: Expression


@dataclass(frozen=True, eq=False)
class Description(Generic[T]):
    """An immutable description of a type whose values are ``T``."""

    _codecs: dict[Dialect, Codec] = field(default_factory=dict, init=False, repr=False)

    def codec(self, syntax: Syntax, big_endian: bool = False) -> Codec:
        return self.codec_in(dialect_of(syntax, big_endian))

    def codec_in(self, dialect: Dialect) -> Codec:
        codec = self._codecs.get(dialect)
        if codec is None:
            codec = self._codecs[dialect] = self.compile(dialect)
        return codec

    def compile(self, dialect: Dialect) -> Codec:
        raise NotImplementedError

    @property
    def array_form(self) -> ArrayForm:
        """The Python type that holds an array of these."""
        return "tuple"

    @property
    def nullable(self) -> bool:
        """Returns whether None is a value (a null pointer)."""
        return False

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        """The correlations that the enclosing structure or parameter list has to bind."""
        return ()

    @property
    def has_maximum(self) -> bool:
        """Returns whether the wire value is a pair (maximum count, value): the correlated size
        does not follow from the value alone."""
        return False

    @property
    def measure(self) -> Measure:
        """The function that returns the number of elements, or the discriminant, of a value."""
        raise TypeError(f"{type(self).__name__} has no count")

    @property
    def at_top(self) -> Description[Any]:
        """The description of a parameter of this type; it differs for reference pointers."""
        return self

    def encode(
        self, value: T, syntax: Syntax, *, given: Mapping[str, int] = NOTHING_GIVEN
    ) -> bytes:
        """Encodes a stub whose only parameter is ``value``."""
        encoder = Encoder(given)
        codec = require_bound(self.at_top).codec(syntax)
        try:
            codec.encode(encoder, value)
            if codec.encode_deferred is not None:
                codec.encode_deferred(encoder, value)
        except (struct_error, OverflowError) as error:
            raise ValueError(f"a value does not fit its field: {error}") from None
        return bytes(encoder.buffer)

    def decode(
        self,
        data: bytes,
        syntax: Syntax,
        *,
        big_endian: bool = False,
        given: Mapping[str, int] = NOTHING_GIVEN,
        allow_surplus: bool = False,
    ) -> T:
        """Decodes a stub with one parameter. Bytes after it are refused unless allowed."""
        decoder = Decoder(data, given)
        codec = require_bound(self.at_top).codec(syntax, big_endian)
        try:
            value = codec.decode(decoder)
            if codec.resolve is not None:
                value = codec.resolve(decoder, value)
        except struct_error:
            raise NdrError(f"the stub ends after {len(data)} bytes", decoder.offset) from None
        check_end(decoder, allow_surplus)
        return value  # type: ignore[no-any-return]


def require_bound(description: Description[Any]) -> Description[Any]:
    """Raises ``TypeError`` if the description has correlations, which nothing here binds."""
    for correlation in description.correlations:
        raise TypeError(f"{correlation.kind}={correlation.expression!r} cannot be bound here")
    return description


def widest(alignments: Iterable[int]) -> int:
    """The alignment of a construction with these parts."""
    found = list(alignments)
    if UNKNOWN_ALIGNMENT in found:
        raise TypeError("a Lazy description, or an array of it, is allowed behind a pointer only")
    return max(found, default=1)


def check_end(decoder: Decoder, allow_surplus: bool) -> None:
    surplus = decoder.size - decoder.offset
    if surplus < 0:
        raise NdrError(f"the stub ends after {decoder.size} bytes", decoder.offset)
    if surplus and not allow_surplus:
        raise NdrError(f"{surplus} bytes after the last parameter", decoder.offset)


def flat_codec(
    dialect: Dialect,
    flat: Flat,
    alignment: int,
    resolve: Resolve | None = None,
    encode_deferred: EncodeInline | None = None,
) -> Codec:
    """The codec of a fixed-size type outside a run."""
    form = dialect.form(flat.code)
    pack, unpack_from, size = form.pack, form.unpack_from, form.size
    dump, load = flat.dump, flat.load
    mask = alignment - 1

    def encode(encoder: Encoder, value: Any) -> None:
        buffer = encoder.buffer
        if dump is not None:
            value = dump(encoder, value)
        gap = -len(buffer) & mask
        if gap:
            buffer += ZEROS[gap]
        buffer += pack(value)

    def decode(decoder: Decoder) -> Any:
        offset = decoder.offset
        offset += -offset & mask
        (value,) = unpack_from(decoder.data, offset)
        if load is not None:
            value = load(decoder, value, offset)
        decoder.offset = offset + size
        return value

    return Codec(alignment, size, encode, decode, encode_deferred, resolve, flat)
