"""Pointers (C706 14.3.10 to 14.3.12; MS-RPCE 2.2.5.3.5).

A pointer is an identifier, zero for null; the referent follows later. As a parameter a reference
pointer has no identifier at all; in arrays NDR20 omits it too.

    Ref     never null
    Unique  null, or a referent of its own
    Full    like Unique; the same identifier again in a call is the same referent

mqis never sends an identifier twice: equal values then always have equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqis.wire.ndr.description import (
    UNKNOWN_ALIGNMENT,
    Codec,
    Correlation,
    DecodeInline,
    Description,
    EncodeInline,
    Flat,
    Measure,
    Resolve,
    flat_codec,
    require_bound,
)
from mqis.wire.ndr.stream import MAX_DEPTH, NULL_REF_POINTER, Decoder, Dialect, Encoder


@dataclass(frozen=True, eq=False)
class Lazy(Description[Any]):
    """A type that is described later, so that a type can point to its own kind.

    It is allowed behind a pointer, or as the element of an array behind a pointer: its alignment is
    not known where it is used.
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


@dataclass(frozen=True, slots=True)
class To:
    """The referent of a pointer to a nullable pointer.

    ``Unique(Unique(T))``: None, To(None) and To(value) are three different things.
    """

    value: Any


@dataclass(frozen=True, eq=False)
class Pointer(Description[Any]):
    """The base of the three kinds of pointer; it passes on the referent's correlations."""

    target: Description[Any]

    @property
    def wraps(self) -> bool:
        """Returns whether a value is wrapped in ``To``."""
        return self.target.nullable

    @property
    def nullable(self) -> bool:
        return True

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return require_bound(self.target).correlations if self.wraps else self.target.correlations

    @property
    def has_maximum(self) -> bool:
        return self.target.has_maximum

    @property
    def measure(self) -> Measure:
        return self.target.measure


def _encode_referent(target: Codec) -> EncodeInline:
    """Returns an encoder of a referent and its own referents."""
    encode, nested = target.encode, target.encode_deferred
    if nested is None:
        return encode

    def encode_tree(encoder: Encoder, value: Any) -> None:
        if encoder.depth >= MAX_DEPTH:
            raise ValueError(f"pointers nest deeper than {MAX_DEPTH}")
        encoder.depth += 1
        encode(encoder, value)
        nested(encoder, value)
        encoder.depth -= 1

    return encode_tree


def _decode_referent(target: Codec) -> DecodeInline:
    """Returns a decoder of a referent and its own referents."""
    decode, nested = target.decode, target.resolve
    if nested is None:
        return decode

    def decode_tree(decoder: Decoder) -> Any:
        if decoder.depth >= MAX_DEPTH:
            raise decoder.error(f"pointers nest deeper than {MAX_DEPTH}")
        decoder.depth += 1
        value = nested(decoder, decode(decoder))
        decoder.depth -= 1
        return value

    return decode_tree


def _deferred(target: Codec, wraps: bool) -> EncodeInline:
    encode_referent = _encode_referent(target)

    def encode(encoder: Encoder, value: Any) -> None:
        if value is not None:
            encode_referent(encoder, value)

    def encode_wrapped(encoder: Encoder, value: Any) -> None:
        if value is not None:
            encode_referent(encoder, value.value)

    return encode_wrapped if wraps else encode


def _resolver(target: Codec, wraps: bool) -> Resolve:
    decode_referent = _decode_referent(target)

    def resolve(decoder: Decoder, referent: int) -> Any:
        return decode_referent(decoder) if referent else None

    def resolve_wrapped(decoder: Decoder, referent: int) -> Any:
        return To(decode_referent(decoder)) if referent else None

    return resolve_wrapped if wraps else resolve


def _identifier(encoder: Encoder, value: Any) -> int:
    return 0 if value is None else encoder.refer()


@dataclass(frozen=True, eq=False)
class Unique(Pointer):
    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)
        flat = Flat(dialect.count_code, dialect.count_size, _identifier)
        resolve, encode_deferred = _resolver(target, self.wraps), _deferred(target, self.wraps)
        return flat_codec(dialect, flat, flat.size, resolve, encode_deferred)


@dataclass(frozen=True, eq=False)
class Ref(Pointer):
    """A pointer whose value is its referent's, None only if that is a null pointer."""

    @property
    def wraps(self) -> bool:
        return False

    @property
    def nullable(self) -> bool:
        return self.target.nullable

    @property
    def at_top(self) -> Description[Any]:
        return self.target.at_top if isinstance(self.target, Ref) else self.target

    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)
        check = self._check

        def dump(encoder: Encoder, value: Any) -> int:
            check(encoder, value)
            return encoder.refer()

        def load(decoder: Decoder, item: int, offset: int) -> int:
            if not item:
                raise decoder.error("a reference pointer is null", offset, NULL_REF_POINTER)
            return item

        flat = Flat(dialect.count_code, dialect.count_size, dump, load)
        encode_deferred = _encode_referent(target)
        return flat_codec(dialect, flat, flat.size, _resolver(target, False), encode_deferred)

    def _check(self, _encoder: Encoder, value: Any) -> None:
        if value is None and not self.nullable:
            raise ValueError("a reference pointer is never null")

    def without_identifier(self, dialect: Dialect) -> Codec:
        """The codec for an element of an NDR20 array (C706 14.3.12.2): referents only."""
        target = self.target.codec_in(dialect)

        def decode_nothing(_decoder: Decoder) -> int:
            return 1

        return Codec(
            alignment=1,
            minimum=1,
            encode=self._check,
            decode=decode_nothing,
            encode_deferred=_encode_referent(target),
            resolve=_resolver(target, False),
        )


_UNRESOLVED = object()


@dataclass(frozen=True, eq=False)
class Full(Pointer):
    def compile(self, dialect: Dialect) -> Codec:
        target = self.target.codec_in(dialect)
        resolve_new = _resolver(target, self.wraps)
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
                raise decoder.error(f"full pointer {referent:#x} points to its own container")
            return known[1]

        flat = Flat(dialect.count_code, dialect.count_size, _identifier)
        return flat_codec(dialect, flat, flat.size, resolve, _deferred(target, self.wraps))
