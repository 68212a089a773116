"""Descriptions, and the codecs that they compile to.

A description says what travels, independent of syntax. Its codec for one syntax is made once, of
functions with everything fixed bound into them.

Pointers make NDR two-phase: inside a structure or array stands only a referent identifier, the
referents follow the outermost construction, each with its own referents after it (C706 14.3.12.3).
So a codec has an inline phase, which every type takes part in, and a deferred phase, which types
without embedded pointers leave out (``None``). Decoding, the inline phase gives a preliminary
value that ``resolve`` completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from struct import error as struct_error
from typing import Any, Generic, Literal, TypeVar

from mqis.wire.ndr.errors import NdrError
from mqis.wire.ndr.stream import NOTHING_GIVEN, ZEROS, Decoder, Encoder
from mqis.wire.ndr.syntax import Dialect, Syntax, dialect_of

T = TypeVar("T")
#: Of a type that is not known yet, and of arrays of it: see ``Lazy``.
UNKNOWN_ALIGNMENT = 0
ArrayForm = Literal["tuple", "bytes", "str"]

EncodeInline = Callable[[Encoder, Any], None]
DecodeInline = Callable[[Decoder], Any]
Resolve = Callable[[Decoder, Any], Any]
Measure = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Flat:
    """The form of a fixed-size type as one item of a ``struct`` layout.

    Neighbouring flat members of a structure are packed and unpacked together. ``dump`` makes the
    packed item of a value, ``load`` the preliminary value of a packed item (third argument: its
    offset); ``None`` means that they are the same.
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
    """The two parts of a conformant type: a structure sends the maximum count ahead of itself."""

    encode_maximum: EncodeInline
    decode_maximum: DecodeInline
    encode_body: EncodeInline
    decode_body: Callable[[Decoder, int], Any]


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an array, without its counts."""

    alignment: int
    #: Of one element, at least 1.
    minimum: int
    encode: EncodeInline
    #: The caller has checked the number against the rest of the stub.
    decode: Callable[[Decoder, int], Any]
    encode_deferred: EncodeInline | None = None
    resolve: Resolve | None = None


@dataclass(frozen=True, slots=True)
class Codec:
    alignment: int
    #: The fewest bytes that one of these takes, so that counts can be refused early; at least 1.
    minimum: int
    encode: EncodeInline
    decode: DecodeInline
    encode_deferred: EncodeInline | None = None
    resolve: Resolve | None = None
    flat: Flat | None = None
    conformance: Conformance | None = None
    #: Of a type that knows better than one element after the other.
    many: Elements | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """Names the field or parameter that holds a count, possibly in other units: Length / 2."""

    name: str
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Given:
    """A count that stands not in this stub: the caller gives it, from the request of the call."""

    name: str
    divisor: int = 1


Expression = Count | Given | int


@dataclass(frozen=True, slots=True)
class Correlation:
    """What else the stub says about a value, for the surrounding structure or call to check."""

    kind: Literal["size_is", "length_is", "switch_is", "at_most"]
    expression: Expression


@dataclass(frozen=True, eq=False)
class Description(Generic[T]):
    """An immutable description of values of ``T``."""

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
        """How an array of these is held."""
        return "tuple"

    @property
    def nullable(self) -> bool:
        """Whether None is a value: a null pointer."""
        return False

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        """Those that the surrounding structure or parameter list has to bind."""
        return ()

    @property
    def has_maximum(self) -> bool:
        """Whether the wire value is a pair (maximum count, value): a correlated size that the
        value alone does not tell."""
        return False

    @property
    def measure(self) -> Measure:
        """Gives the number of elements, or the discriminant, that a correlation compares."""
        raise TypeError(f"{type(self).__name__} has no count")

    @property
    def at_top(self) -> Description[Any]:
        """What a parameter of this type puts on the wire; differs for reference pointers."""
        return self

    def encode(
        self, value: T, syntax: Syntax, *, given: Mapping[str, int] = NOTHING_GIVEN
    ) -> bytes:
        """The stub whose only parameter is ``value``."""
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
        """The only parameter of a stub. Bytes after it are refused unless allowed."""
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
    """A correlation needs a structure or parameter list around it that has the other side."""
    for correlation in description.correlations:
        raise TypeError(f"nothing here can bind {correlation.kind}={correlation.expression!r}")
    return description


def widest(alignments: Iterable[int]) -> int:
    """The alignment of what has these parts."""
    found = list(alignments)
    if UNKNOWN_ALIGNMENT in found:
        raise TypeError("only a pointer leads to a Lazy description, or to an array of it")
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
    """The codec of a fixed-size type that stands alone."""
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
