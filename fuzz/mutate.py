"""Mutates valid inputs into hostile ones, from one seeded random source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

#: Numbers at which counts, lengths and offsets tend to go wrong.
_EDGES = (0, 1, 2, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000)
_EDGES_ALL = (*_EDGES, 0xFFFFFFFE, 0xFFFFFFFF)

Mutation = Callable[[bytearray, Random, Sequence[bytes]], None]


def _flip(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _byte(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _edge(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    size = rng.choice((1, 2, 4, 8))
    if len(data) >= size:
        at = rng.randrange(len(data) - size + 1)
        number = rng.choice(_EDGES_ALL) + rng.choice((0, 0, 1, -1))
        order = rng.choice(("little", "big"))
        data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, order)  # type: ignore[arg-type]


def _cut(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    if data:
        del data[rng.randrange(len(data)) :]


def _remove(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    if data:
        at = rng.randrange(len(data))
        del data[at : at + rng.randint(1, 16)]


def _insert(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at:at] = rng.randbytes(rng.randint(1, 16))


def _repeat(data: bytearray, rng: Random, _corpus: Sequence[bytes]) -> None:
    if data:
        at = rng.randrange(len(data))
        part = bytes(data[at : at + rng.randint(1, 64)])
        data[at:at] = part * rng.randint(1, 8)


def _splice(data: bytearray, rng: Random, corpus: Sequence[bytes]) -> None:
    other = rng.choice(corpus)
    data[rng.randint(0, len(data)) :] = other[rng.randint(0, len(other)) :]


_MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _flip,
    _byte,
    _edge,
    _edge,
    _edge,
    _cut,
    _remove,
    _insert,
    _repeat,
    _splice,
)


def mutated(corpus: Sequence[bytes], rng: Random) -> bytes:
    """Returns one input: mostly a valid one with some mutations, sometimes random bytes."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randint(0, 256))
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        rng.choice(_MUTATIONS)(data, rng, corpus)
    return bytes(data)
