"""Unions (C706 14.3.8; MS-RPCE 2.2.4.5, 2.2.5.3.4.4).

    NDR20   discriminant, arm at its own alignment (all arms at the widest with [ms_union])
    NDR64   aligned as the widest arm, discriminant, aligned so again, arm

With ``switch_is`` the union is not encapsulated: the discriminant is also elsewhere, and the two
have to agree. Without it, the discriminant is here only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from mqis.wire.ndr.arrays import align, expression_of
from mqis.wire.ndr.description import (
    Codec,
    Correlation,
    Description,
    Expression,
    Measure,
    require_bound,
    widest,
)
from mqis.wire.ndr.stream import INVALID_TAG, Decoder, Dialect, Encoder


@dataclass(frozen=True, slots=True)
class Choice:
    """The value of a union: the arm's discriminant and its content (None in an empty arm)."""

    tag: int
    value: Any = None


class _NoArm:
    """The mark of a union without a default arm; None would be an empty arm."""


NO_DEFAULT: Final = _NoArm()


@dataclass(frozen=True, eq=False)
class Union(Description[Choice]):
    """A union: its arms by discriminant; an arm that is None is empty."""

    switch: Description[Any]
    arms: Mapping[int, Description[Any] | None]
    default: Description[Any] | _NoArm | None = NO_DEFAULT
    switch_is: Expression | str | None = None
    ms_union: bool = False

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        expression = expression_of(self.switch_is)
        return () if expression is None else (Correlation("switch_is", expression),)

    @property
    def measure(self) -> Measure:
        return attrgetter("tag")

    def compile(self, dialect: Dialect) -> Codec:
        switch = self.switch.codec_in(dialect)
        arms = {int(tag): _arm(arm, dialect) for tag, arm in self.arms.items()}
        has_default = not isinstance(self.default, _NoArm)
        default = None if isinstance(self.default, _NoArm) else _arm(self.default, dialect)
        every = [arm for arm in (*arms.values(), default) if arm is not None]
        widest_arm = widest(arm.alignment for arm in every)
        alignment = max(widest_arm, switch.alignment)
        before = widest_arm - 1 if dialect.is_ndr64 else 0
        between = widest_arm - 1 if dialect.is_ndr64 or self.ms_union else 0

        def encode(encoder: Encoder, value: Choice) -> None:
            arm = _chosen(value.tag)
            align(encoder, before)
            switch.encode(encoder, value.tag)
            align(encoder, between)
            if arm is not None:
                arm.encode(encoder, value.value)
            elif value.value is not None:
                raise ValueError(f"arm {value.tag} of the union is empty")

        def _chosen(tag: int) -> Codec | None:
            if tag not in arms and not has_default:
                raise ValueError(f"the union has no arm {tag!r}")
            return arms.get(tag, default)

        def encode_deferred(encoder: Encoder, value: Choice) -> None:
            arm = _chosen(value.tag)
            if arm is not None and arm.encode_deferred is not None:
                arm.encode_deferred(encoder, value.value)

        def decode(decoder: Decoder) -> Choice:
            decoder.offset += -decoder.offset & before
            at = decoder.offset
            tag = switch.decode(decoder)
            if tag not in arms and not has_default:
                raise decoder.error(f"the union has no arm {tag}", at, INVALID_TAG)
            decoder.offset += -decoder.offset & between
            arm = arms.get(tag, default)
            return Choice(tag, None if arm is None else arm.decode(decoder))

        def resolve(decoder: Decoder, inline: Choice) -> Choice:
            arm = arms.get(inline.tag, default)
            if arm is None or arm.resolve is None:
                return inline
            return Choice(inline.tag, arm.resolve(decoder, inline.value))

        return Codec(
            alignment,
            switch.minimum,
            encode,
            decode,
            encode_deferred if any(arm.encode_deferred for arm in every) else None,
            resolve if any(arm.resolve for arm in every) else None,
        )


def _arm(arm: Description[Any] | None, dialect: Dialect) -> Codec | None:
    if arm is None:
        return None
    codec = require_bound(arm).codec_in(dialect)
    if codec.conformance is not None:
        raise TypeError("a conformant arm of a union has to be behind a pointer")
    return codec
