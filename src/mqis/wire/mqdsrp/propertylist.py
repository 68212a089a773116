"""The properties of a change: identifiers, then values without tags (MC-MQDSRP 2.2.4).

Stores pack values as messages do, so most values go from a store to a message to a store without
being looked at: a list keeps them packed and decodes one only when it is asked for. The
synchronisation of a partition has a hundred thousand lists, but of seven kinds only. So a plan is
made once for each list of identifiers, which splits runs of fixed size together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from struct import Struct
from typing import overload

from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.propvariant import PACKED_SIZES, PropVariant, Value, VarType
from mqis.wire.reader import Reader

Listed = Sequence[tuple[int, PropVariant]]


class PropertyList(Sequence[tuple[int, PropVariant]]):
    """Properties with their values, which are decoded on first access.

    Each value is of the type that the identifier fixes, and whole: who makes a list sees to it.
    """

    __slots__ = ("_decoded", "ids", "packed")

    def __init__(self, ids: tuple[int, ...], packed: tuple[bytes, ...]) -> None:
        self.ids = ids
        self.packed = packed
        self._decoded: tuple[tuple[int, PropVariant], ...] | None = None

    @classmethod
    def of(cls, properties: Listed) -> PropertyList:
        if isinstance(properties, PropertyList):
            return properties
        ids = tuple([propid for propid, _ in properties])
        return cls(ids, tuple([variant.packed() for _, variant in properties]))

    @property
    def _pairs(self) -> tuple[tuple[int, PropVariant], ...]:
        if self._decoded is None:
            both = zip(self.ids, self.packed, strict=True)
            self._decoded = tuple(
                [(p, PropVariant.decode(Reader(value), PROPERTIES[p].vt)) for p, value in both]
            )
        return self._decoded

    def value(self, propid: int) -> Value:
        """The value of one property, without decoding the others; None if it is not listed."""
        if propid not in self.ids:
            return None
        packed = self.packed[self.ids.index(propid)]
        return PropVariant.decode(Reader(packed), PROPERTIES[propid].vt).value

    def encoded(self) -> bytes:
        """The identifiers, then the values."""
        return _identifiers(len(self.ids)).pack(*self.ids) + b"".join(self.packed)

    @overload
    def __getitem__(self, index: int) -> tuple[int, PropVariant]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, PropVariant], ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[int, PropVariant] | tuple[tuple[int, PropVariant], ...]:
        return self._pairs[index]

    def __iter__(self) -> Iterator[tuple[int, PropVariant]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PropertyList):
            return self.ids == other.ids and self.packed == other.packed
        return self._pairs == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        return repr(self._pairs)


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive values of fixed size, or one of variable size (``form`` is None)."""

    form: Struct | None
    vt: VarType


@lru_cache(maxsize=1024)
def _plan(ids: tuple[int, ...]) -> tuple[_Run, ...]:
    types = [PROPERTIES[propid].vt for propid in ids]
    runs: list[_Run] = []
    for fixed, group in groupby(types, PACKED_SIZES.__contains__):
        members = list(group)
        if fixed:
            form = Struct("".join(f"{PACKED_SIZES[vt]}s" for vt in members))
            runs.append(_Run(form, members[0]))
        else:
            runs += [_Run(None, vt) for vt in members]
    return tuple(runs)


@lru_cache(maxsize=256)
def _identifiers(count: int) -> Struct:
    return Struct(f"<{count}I")


def decode_list(reader: Reader, count: int) -> PropertyList:
    """Splits ``count`` identifiers and their values, and checks them.

    Refuses unknown identifiers: no length tells where the next value starts (MQDSRP-2.2.4-08).
    """
    at = reader.offset
    ids: tuple[int, ...] = reader.unpack(_identifiers(count), "PropertyID")
    try:
        plan = _plan(ids)
    except KeyError:
        index, propid = next((i, p) for i, p in enumerate(ids) if p not in PROPERTIES)
        raise reader.error(
            f"property {propid} is unknown, so nothing behind it can be read", at + 4 * index
        ) from None
    packed: list[bytes] = []
    for run in plan:
        if run.form is not None:
            packed += reader.unpack(run.form, "PropertyValue")
        else:
            start = reader.offset
            PropVariant.decode(reader, run.vt)
            packed.append(reader.since(start))
    return PropertyList(ids, tuple(packed))
