"""The stub of a request or response: its parameters in order (C706 14.4).

Each parameter is followed at once by its referents. A reference pointer adds nothing to the stub.
A response has the [out] parameters and, last, the return value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import error as struct_error
from typing import Any, Generic, TypeVar

from mqis.wire.ndr.correlation import MemberScope, Wire
from mqis.wire.ndr.description import Codec, Description, check_end
from mqis.wire.ndr.member_runs import DecodeStep, EncodeStep, layout
from mqis.wire.ndr.stream import (
    NOTHING_GIVEN,
    Decoder,
    Dialect,
    Encoder,
    NdrError,
    Syntax,
    dialect_of,
)

T = TypeVar("T")

#: The alignment of the first parameter; nothing is aligned to more.
_STUB_ALIGNMENT = 8


class Parameters(Generic[T]):
    """The parameters of a request or response, named and ordered as the fields of ``cls``.

    A parameter for which ``cls`` has no field is a count or discriminant that others name. Values
    from the request, which a response depends on, come as ``given``: see ``Given``.
    """

    __slots__ = ("_build", "_decoders", "_descriptions", "_encoders", "_lower", "scope")

    def __init__(self, cls: type[T], /, **parameters: Description[Any]) -> None:
        self.scope = MemberScope(cls, parameters)
        self._descriptions = tuple(parameter.at_top for parameter in parameters.values())
        self._lower = self.scope.lower()
        self._build = self.scope.raise_()
        self._encoders: dict[Syntax, list[EncodeStep]] = {}
        self._decoders: dict[Dialect, list[DecodeStep]] = {}

    def _steps(self, dialect: Dialect) -> list[tuple[EncodeStep, DecodeStep]]:
        """The encoding and decoding steps; consecutive fixed-size parameters share one."""
        codecs = [description.codec_in(dialect) for description in self._descriptions]
        return [
            _step(codecs[part], part) if isinstance(part, int) else part.steps(dialect)
            for part in layout(codecs, _STUB_ALIGNMENT, lambda codec: codec.resolve is None)
            if isinstance(part, int) or part.flats
        ]

    def encode(
        self, value: T, syntax: Syntax, *, given: Mapping[str, int] = NOTHING_GIVEN
    ) -> bytes:
        steps = self._encoders.get(syntax)
        if steps is None:
            steps = [encode for encode, _ in self._steps(dialect_of(syntax))]
            self._encoders[syntax] = steps
        encoder = Encoder(given)
        try:
            wire = self._lower(value, given)
            for encode in steps:
                encode(encoder, wire)
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
        """Decodes a stub. ``allow_surplus`` ignores bytes after it, as servers do."""
        value, _ = self.decode_prefix(
            data, syntax, big_endian=big_endian, given=given, allow_surplus=allow_surplus
        )
        return value

    def decode_prefix(
        self,
        data: bytes,
        syntax: Syntax,
        *,
        big_endian: bool = False,
        given: Mapping[str, int] = NOTHING_GIVEN,
        allow_surplus: bool = True,
    ) -> tuple[T, int]:
        """Decodes a stub; returns also the number of bytes that it took."""
        dialect = dialect_of(syntax, big_endian)
        steps = self._decoders.get(dialect)
        if steps is None:
            steps = self._decoders[dialect] = [decode for _, decode in self._steps(dialect)]
        decoder = Decoder(data, given)
        wire: Wire = []
        try:
            for decode in steps:
                decode(decoder, wire)
        except struct_error:
            raise NdrError(f"the stub ends after {len(data)} bytes", decoder.offset) from None
        if decoder.offset != decoder.size:
            check_end(decoder, allow_surplus)
        built: T = self._build(wire, given, decoder.offset)
        return built, decoder.offset


def _step(codec: Codec, index: int) -> tuple[EncodeStep, DecodeStep]:
    """The steps for one parameter and its referents."""
    encode_one, encode_deferred = codec.encode, codec.encode_deferred
    decode_one, resolve = codec.decode, codec.resolve

    def encode(encoder: Encoder, wire: Sequence[Any]) -> None:
        member = wire[index]
        encode_one(encoder, member)
        if encode_deferred is not None:
            encode_deferred(encoder, member)

    def decode(decoder: Decoder, wire: Wire) -> None:
        member = decode_one(decoder)
        wire.append(member if resolve is None else resolve(decoder, member))

    return encode, decode
