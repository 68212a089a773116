"""Structures (C706 14.3.6, 14.3.7; MS-RPCE 2.2.5.3.4).

A structure is aligned as its widest member. NDR64 pads it at the end to that alignment. If it ends
in a conformant array, the maximum count precedes the whole structure and, in NDR64, the padding
follows the elements.

Consecutive members of fixed size are packed together: the structure's alignment fixes the gaps
between them, up to the first member of variable size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mqis.wire.ndr.correlation import MemberScope, Wire
from mqis.wire.ndr.description import Codec, Conformance, Description, Flat, flat_codec, widest
from mqis.wire.ndr.member_runs import DecodeStep, EncodeStep, Run, layout
from mqis.wire.ndr.stream import ZEROS, Decoder, Dialect, Encoder

T = TypeVar("T")


def _single_step(codec: Codec, index: int) -> tuple[EncodeStep, DecodeStep]:
    encode_one, decode_one = codec.encode, codec.decode

    def encode(encoder: Encoder, wire: Sequence[Any]) -> None:
        encode_one(encoder, wire[index])

    def decode(decoder: Decoder, wire: Wire) -> None:
        wire.append(decode_one(decoder))

    return encode, decode


def _gap_step(alignment: int) -> tuple[EncodeStep, DecodeStep]:
    mask = alignment - 1

    def encode(encoder: Encoder, _wire: Sequence[Any]) -> None:
        gap = -len(encoder.buffer) & mask
        if gap:
            encoder.buffer += ZEROS[gap]

    def decode(decoder: Decoder, _wire: Wire) -> None:
        decoder.offset += -decoder.offset & mask

    return encode, decode


class Struct(Description[T]):
    """A structure held by the dataclass ``cls``; members are named and ordered as its fields.

    A member for which ``cls`` has no field is a count or discriminant that other members name.
    """

    scope: MemberScope

    def __init__(self, cls: type[T], /, **members: Description[Any]) -> None:
        super().__init__()
        if not members:
            raise TypeError("a structure has at least one member")
        object.__setattr__(self, "scope", MemberScope(cls, members))

    def compile(self, dialect: Dialect) -> Codec:
        codecs = [member.codec_in(dialect) for member in self.scope.members]
        if any(codec.conformance is not None for codec in codecs[:-1]):
            raise TypeError(f"{self.scope.cls.__name__}: only the last member can be conformant")
        alignment = widest(codec.alignment for codec in codecs)
        runs = layout(codecs, alignment)
        if dialect.is_ndr64 and isinstance(runs[-1], Run) and runs[-1].base == alignment:
            runs[-1].pad_to(alignment)
        if len(runs) == 1 and isinstance(runs[0], Run):
            return self._flat(dialect, codecs, alignment, runs[0])
        return self._stepwise(dialect, codecs, alignment, runs)

    def _deferred(
        self, codecs: list[Codec]
    ) -> tuple[Callable[[Encoder, Any], None] | None, Callable[[Decoder, Any], Any] | None]:
        lower, build = self.scope.lower(), self.scope.raise_()
        deferrals = [
            (i, codec.encode_deferred)
            for i, codec in enumerate(codecs)
            if codec.encode_deferred is not None
        ]
        resolvers = [(i, c.resolve) for i, c in enumerate(codecs) if c.resolve is not None]

        def encode_deferred(encoder: Encoder, value: Any) -> None:
            wire = lower(value, encoder.given)
            for i, encode in deferrals:
                encode(encoder, wire[i])

        def resolve(decoder: Decoder, wire: Wire) -> Any:
            for i, resolve_one in resolvers:
                wire[i] = resolve_one(decoder, wire[i])
            return build(wire, decoder.given, decoder.offset)

        return encode_deferred if deferrals else None, resolve if resolvers else None

    def _flat(self, dialect: Dialect, codecs: list[Codec], alignment: int, run: Run) -> Codec:
        """The codec for a fixed size; it may be packed together with its neighbours."""
        lower, build = self.scope.lower(), self.scope.raise_()
        encode_deferred, resolve = self._deferred(codecs)
        pack, unpack = run.packer(dialect), run.unpacker(dialect)
        complete = resolve is None

        def dump(encoder: Encoder, value: Any) -> bytes:
            return pack(encoder, lower(value, encoder.given))

        def load(decoder: Decoder, item: bytes, offset: int) -> Any:
            wire = unpack(decoder, item, 0, offset)
            return build(wire, decoder.given, offset) if complete else wire

        def decode(decoder: Decoder) -> Any:
            """Decodes like ``load``, but in place: no slice is cut out."""
            offset = decoder.offset
            offset += -offset & mask
            wire = unpack(decoder, decoder.data, offset, offset)
            decoder.offset = offset + size
            return build(wire, decoder.given, offset) if complete else wire

        size, mask = run.size, alignment - 1
        flat = Flat(f"{size}s", size, dump, load)
        codec = flat_codec(dialect, flat, alignment, resolve, encode_deferred)
        return replace(codec, decode=decode)

    def _stepwise(
        self, dialect: Dialect, codecs: list[Codec], alignment: int, runs: list[Run | int]
    ) -> Codec:
        lower, build = self.scope.lower(), self.scope.raise_()
        encode_deferred, resolve = self._deferred(codecs)
        conformance = codecs[-1].conformance
        gap = _gap_step(alignment)
        # Each run aligns itself; the alignment of the first one is the structure's.
        pairs = [] if isinstance(runs[0], Run) else [gap]
        for run in runs:
            if isinstance(run, Run):
                pairs.append(run.steps(dialect))
            elif conformance is None or run < len(codecs) - 1:
                pairs.append(_single_step(codecs[run], run))
        end = [gap] if dialect.is_ndr64 else []
        if conformance is None:
            pairs += end
        encode_steps = [encode for encode, _ in pairs]
        decode_steps = [decode for _, decode in pairs]
        complete = resolve is None

        def finish(decoder: Decoder, wire: Wire) -> Any:
            return build(wire, decoder.given, decoder.offset) if complete else wire

        def encode(encoder: Encoder, value: Any) -> None:
            wire = lower(value, encoder.given)
            for step in encode_steps:
                step(encoder, wire)

        def decode(decoder: Decoder) -> Any:
            wire: Wire = []
            for step in decode_steps:
                step(decoder, wire)
            return finish(decoder, wire)

        minimum = sum(codec.minimum for codec in codecs)
        if conformance is None:
            return Codec(alignment, minimum, encode, decode, encode_deferred, resolve)

        last = len(codecs) - 1
        hoisted = conformance

        def encode_maximum(encoder: Encoder, value: Any) -> None:
            hoisted.encode_maximum(encoder, lower(value, encoder.given)[last])

        def encode_body(encoder: Encoder, value: Any) -> None:
            wire = lower(value, encoder.given)
            for step in encode_steps:
                step(encoder, wire)
            hoisted.encode_body(encoder, wire[last])
            for step, _ in end:
                step(encoder, wire)

        def decode_body(decoder: Decoder, maximum: int) -> Any:
            wire: Wire = []
            for step in decode_steps:
                step(decoder, wire)
            wire.append(hoisted.decode_body(decoder, maximum))
            for _, step in end:
                step(decoder, wire)
            return finish(decoder, wire)

        def encode_both(encoder: Encoder, value: Any) -> None:
            encode_maximum(encoder, value)
            encode_body(encoder, value)

        def decode_both(decoder: Decoder) -> Any:
            return decode_body(decoder, hoisted.decode_maximum(decoder))

        return Codec(
            alignment,
            minimum,
            encode_both,
            decode_both,
            encode_deferred,
            resolve,
            conformance=Conformance(
                encode_maximum, hoisted.decode_maximum, encode_body, decode_body
            ),
        )
