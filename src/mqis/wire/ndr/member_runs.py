"""Runs: consecutive members of fixed size, packed and unpacked as one ``struct`` layout.

The gaps inside a run are fixed, because a run starts at a multiple of its widest alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqis.wire.ndr.correlation import Wire
from mqis.wire.ndr.description import Codec, Flat
from mqis.wire.ndr.stream import ZEROS, Decoder, Dialect, Encoder

EncodeStep = Callable[[Encoder, Sequence[Any]], None]
DecodeStep = Callable[[Decoder, Wire], None]


@dataclass
class Run:
    """Members that are packed together, starting at a multiple of ``base``."""

    base: int
    first: int
    size: int = 0
    codes: list[str] = field(default_factory=list)
    flats: list[Flat] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def pad_to(self, alignment: int) -> None:
        gap = -self.size % alignment
        if gap:
            self.codes.append(f"{gap}x")
            self.size += gap

    def add(self, flat: Flat, alignment: int) -> None:
        self.pad_to(alignment)
        self.offsets.append(self.size)
        self.codes.append(flat.code)
        self.flats.append(flat)
        self.size += flat.size

    def packer(self, dialect: Dialect) -> Callable[[Encoder, Sequence[Any]], bytes]:
        """Returns a function that packs the run's part of all wire values."""
        pack = dialect.form("".join(self.codes)).pack
        first, last = self.first, self.first + len(self.flats)
        dumps = [(i, flat.dump) for i, flat in enumerate(self.flats) if flat.dump is not None]

        def plain(_encoder: Encoder, wire: Sequence[Any]) -> bytes:
            return pack(*wire[first:last])

        def dumped(encoder: Encoder, wire: Sequence[Any]) -> bytes:
            items = list(wire[first:last])
            for i, dump in dumps:
                items[i] = dump(encoder, items[i])
            return pack(*items)

        return dumped if dumps else plain

    def unpacker(self, dialect: Dialect) -> Callable[[Decoder, bytes, int, int], Wire]:
        """Returns a function that unpacks at an offset; its last argument counts in the stub."""
        unpack_from = dialect.form("".join(self.codes)).unpack_from
        loads = [
            (i, at, flat.load)
            for i, (at, flat) in enumerate(zip(self.offsets, self.flats, strict=True))
            if flat.load is not None
        ]

        def unpack(decoder: Decoder, data: bytes, offset: int, in_stub: int) -> Wire:
            items = list(unpack_from(data, offset))
            for i, at, load in loads:
                items[i] = load(decoder, items[i], in_stub + at)
            return items

        return unpack

    def steps(self, dialect: Dialect) -> tuple[EncodeStep, DecodeStep]:
        packer, unpacker = self.packer(dialect), self.unpacker(dialect)
        size, mask = self.size, self.base - 1

        def encode(encoder: Encoder, wire: Sequence[Any]) -> None:
            items = packer(encoder, wire)
            buffer = encoder.buffer
            gap = -len(buffer) & mask
            if gap:
                buffer += ZEROS[gap]
            buffer += items

        def decode(decoder: Decoder, wire: Wire) -> None:
            offset = decoder.offset
            offset += -offset & mask
            wire += unpacker(decoder, decoder.data, offset, offset)
            decoder.offset = offset + size

        return encode, decode


def _is_flat(codec: Codec) -> bool:
    return codec.flat is not None


def layout(
    codecs: Sequence[Codec], alignment: int, joins: Callable[[Codec], bool] = _is_flat
) -> list[Run | int]:
    """Splits members into runs of those that ``joins`` accepts, and the indices of the others.

    ``alignment`` is the alignment of the first member's position.
    """
    runs: list[Run | int] = []
    run: Run | None = Run(alignment, 0)
    for index, codec in enumerate(codecs):
        if codec.flat is None or not joins(codec):
            if run is not None and run.flats:
                runs.append(run)
            runs.append(index)
            run = None
            continue
        if run is None:
            run = Run(codec.alignment, index)
        elif codec.alignment > run.base:
            runs.append(run)
            run = Run(codec.alignment, index)
        run.add(codec.flat, codec.alignment)
    if run is not None:
        runs.append(run)
    return runs
