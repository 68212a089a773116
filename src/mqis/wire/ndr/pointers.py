"""Pointers (C706 14.3.10 to 14.3.12; MS-RPCE 2.2.5.3.5).

Inline stands an identifier, zero for null; the referent follows later. As a parameter a reference
pointer has no identifier at all, and NDR20 leaves it out in arrays of them too.

    Ref     never null
    Unique  null or a referent of its own
    Full    as Unique; the same identifier again in a call is the same referent

We never send an identifier twice: equal values then always have equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqis.wire.ndr.description import (
    UNKNOWN_ALIGNMENT,
    Codec,
    Correlation,
    Description,
    EncodeInline,
    Flat,
    Resolve,
    flat_codec,
)
from mqis.wire.ndr.errors import NULL_REF_POINTER
from mqis.wire.ndr.stream import MAX_DEPTH, Decoder, Encoder
from mqis.wire.ndr.syntax import Dialect


@dataclass(frozen=True, eq=False)
class Lazy(Description[Any]):
    """A type that is described later, so that a type can point to its own kind.

    Stands behind a pointer, or as the element of an array behind a pointer: its alignment is not
    known where it is mentioned.
    """

    build: Callable[[], Description[Any]]

    def compile(self, dialect: Dialect) -> Codec:
        def target() -> Codec:
            return self.build().codec_in(dialect)

        def encode_deferred(encoder: Encoder, value: Any) -> None:
            deferred = target().encode_deferred
            if deferred is not None:
                deferred(encoder, value)

        def resolve(decoder: Decoder, inline: Any) -> Any:
            resolve_target = target().resolve
            return inline if resolve_target is None else resolve_target(decoder, inline)

        return Codec(
            alignment=UNKNOWN_ALIGNMENT,
            minimum=1,
            encode=lambda encoder, value: target().encode(encoder, value),
            decode=lambda decoder: target().decode(decoder),
            encode_deferred=encode_deferred,
            resolve=resolve,
        )


@dataclass(frozen=True, eq=False)
class Pointer(Description[Any]):
    """What the three kinds share: correlations of the referent pass through."""

    target: Description[Any]

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return self.target.correlations

    @property
    def has_maximum(self) -> bool:
        return self.target.has_maximum

    def measure(self, value: Any) -> int:
        return self.target.measure(value)


def _deferred(target: Codec) -> EncodeInline:
    """Encode the referent, then what it points to."""
    encode, nested = target.encode, target.encode_deferred
    if nested is None:

        def encode_leaf(encoder: Encoder, value: Any) -> None:
            if value is not None:
                encode(encoder, value)

        return encode_leaf

    def encode_tree(encoder: Encoder, value: Any) -> None:
        if value is None:
            return
        if encoder.depth >= MAX_DEPTH:
            raise ValueError(f"pointers nest deeper than {MAX_DEPTH}")
        encoder.depth += 1
        encode(encoder, value)
        nested(encoder, value)
        encoder.depth -= 1

    return encode_tree


def _resolver(target: Codec) -> Resolve:
    """Decode the referent, then what it points to."""
    decode, nested = target.decode, target.resolve
    if nested is None:

        def resolve_leaf(decoder: Decoder, referent: int) -> Any:
            return decode(decoder) if referent else None

        return resolve_leaf

    def resolve_tree(decoder: Decoder, referent: int) -> Any:
        if not referent:
            return None
        if decoder.depth >= MAX_DEPTH:
            raise decoder.error(f"pointers nest deeper than {MAX_DEPTH}")
        decoder.depth += 1
        value = nested(decoder, decode(decoder))
        decoder.depth -= 1
        return value

    return resolve_tree


def _identifier(encoder: Encoder, value: Any) -> int:
    return 0 if value is None else encoder.refer()


@dataclass(frozen=True, eq=False)
class Unique(Pointer):
    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)
        flat = Flat(dialect.count_code, dialect.count_size, _identifier)
        return flat_codec(dialect, flat, flat.size, _resolver(target), _deferred(target))


@dataclass(frozen=True, eq=False)
class Ref(Pointer):
    @property
    def at_top(self) -> Description[Any]:
        return self.target.at_top if isinstance(self.target, Ref) else self.target

    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)

        def dump(encoder: Encoder, value: Any) -> int:
            if value is None:
                raise ValueError("a reference pointer is never null")
            return encoder.refer()

        def load(decoder: Decoder, item: int, offset: int) -> int:
            if not item:
                raise decoder.error("a reference pointer is null", offset, NULL_REF_POINTER)
            return item

        flat = Flat(dialect.count_code, dialect.count_size, dump, load)
        return flat_codec(dialect, flat, flat.size, _resolver(target), _deferred(target))

    def without_identifier(self, dialect: Dialect) -> Codec:
        """As the element of an NDR20 array (C706 14.3.12.2): the referents alone."""
        target = self.target.codec_in(dialect)
        resolve, encode_referent = _resolver(target), _deferred(target)

        def encode_nothing(_encoder: Encoder, value: Any) -> None:
            if value is None:
                raise ValueError("a reference pointer is never null")

        def decode_nothing(_decoder: Decoder) -> int:
            return 1

        return Codec(1, 1, encode_nothing, decode_nothing, encode_referent, resolve)


_UNRESOLVED = object()


@dataclass(frozen=True, eq=False)
class Full(Pointer):
    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)
        resolve_new = _resolver(target)
        description = self.target

        def resolve(decoder: Decoder, referent: int) -> Any:
            if not referent:
                return None
            known = decoder.full.get(referent)
            if known is None:
                decoder.full[referent] = (description, _UNRESOLVED)
                value = resolve_new(decoder, referent)
                decoder.full[referent] = (description, value)
                return value
            if known[0] is not description:
                raise decoder.error(f"full pointer {referent:#x} names referents of two types")
            if known[1] is _UNRESOLVED:
                raise decoder.error(f"full pointer {referent:#x} points back to what holds it")
            return known[1]

        flat = Flat(dialect.count_code, dialect.count_size, _identifier)
        return flat_codec(dialect, flat, flat.size, resolve, _deferred(target))
