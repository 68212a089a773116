"""The stub of a request or response: parameters in order (C706 14.4).

Each parameter is followed at once by what it points to. A reference pointer sends nothing of its
own. The response has the [out] parameters and, last, the return value.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import error as struct_error
from typing import Any, Generic, TypeVar

from mqis.wire.ndr.correlation import Scope, Wire
from mqis.wire.ndr.description import (
    Codec,
    DecodeInline,
    Description,
    EncodeInline,
    Resolve,
    check_end,
)
from mqis.wire.ndr.errors import NdrError
from mqis.wire.ndr.stream import NOTHING_GIVEN, Decoder, Encoder
from mqis.wire.ndr.syntax import Dialect, Syntax, dialect_of

T = TypeVar("T")


class Parameters(Generic[T]):
    """Parameters held by the dataclass ``cls``; they are named and ordered as its fields are.

    A parameter that ``cls`` has no field for is a count or discriminant that others name. What a
    response owes to its request comes as ``given``: see ``Given``.
    """

    __slots__ = ("_build", "_decoders", "_descriptions", "_encoders", "_lower", "scope")

    def __init__(self, cls: type[T], /, **parameters: Description[Any]) -> None:
        self.scope = Scope(cls, parameters)
        self._descriptions = tuple(parameter.at_top for parameter in parameters.values())
        self._lower = self.scope.lower()
        self._build = self.scope.raise_()
        self._encoders: dict[Syntax, list[tuple[EncodeInline, EncodeInline | None]]] = {}
        self._decoders: dict[Dialect, list[tuple[DecodeInline, Resolve | None]]] = {}

    def _codecs(self, dialect: Dialect) -> list[Codec]:
        return [description.codec_in(dialect) for description in self._descriptions]

    def encode(
        self, value: T, syntax: Syntax, *, given: Mapping[str, int] = NOTHING_GIVEN
    ) -> bytes:
        steps = self._encoders.get(syntax)
        if steps is None:
            codecs = self._codecs(dialect_of(syntax))
            steps = [(codec.encode, codec.encode_deferred) for codec in codecs]
            self._encoders[syntax] = steps
        encoder = Encoder(given)
        try:
            wire = self._lower(value, given)
            for (encode, encode_deferred), member in zip(steps, wire, strict=True):
                encode(encoder, member)
                if encode_deferred is not None:
                    encode_deferred(encoder, member)
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
        """``allow_surplus``: ignore what follows the last parameter, as servers do."""
        dialect = dialect_of(syntax, big_endian)
        steps = self._decoders.get(dialect)
        if steps is None:
            codecs = self._codecs(dialect)
            steps = self._decoders[dialect] = [(codec.decode, codec.resolve) for codec in codecs]
        decoder = Decoder(data, given)
        wire: Wire = []
        try:
            for decode, resolve in steps:
                member = decode(decoder)
                wire.append(member if resolve is None else resolve(decoder, member))
        except struct_error:
            raise NdrError(f"the stub ends after {len(data)} bytes", decoder.offset) from None
        check_end(decoder, allow_surplus)
        built: T = self._build(wire, given, decoder.offset)
        return built
