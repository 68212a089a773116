"""The encoding of an object's properties in a store.

    u16      count
    count x  u32 PROPID, u16 variant type, u32 offset of the value behind the table
             packed values (propvariant), in the order of the table

The order is ascending by PROPID, so that equal sets have equal bytes. Unlike in replication, every
value carries its type: a store must be readable without the catalogue of its writer. The table
comes first because most readers want one property of many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from struct import Struct
from struct import error as struct_error
from typing import Any

from mqis.wire.errors import WireError
from mqis.wire.propvariant import PropVariant, VarType, check_packed
from mqis.wire.reader import Reader

Properties = Mapping[int, PropVariant]
#: The variant type and the packed value of each property.
PackedValues = dict[int, tuple[int, bytes]]

_COUNT = Struct("<H")
_ENTRY = Struct("<IHI")


@lru_cache(maxsize=128)
def _table_of(count: int) -> Struct:
    return Struct("<" + "IHI" * count)


def encode_properties(properties: Properties) -> bytes:
    if isinstance(properties, PropertyBag):
        return properties.data
    return encode_packed(packed_values(properties))


def packed_values(properties: Properties) -> PackedValues:
    """All values as they are encoded; those of a store are checked, not decoded."""
    if isinstance(properties, PropertyBag):
        return properties.packed_values()
    return {propid: (variant.vt, variant.packed()) for propid, variant in properties.items()}


def encode_packed(packed: PackedValues) -> bytes:
    """Encodes values that are packed already."""
    table: list[int] = []
    values: list[bytes] = []
    offset = 0
    for propid in sorted(packed):
        vt, value = packed[propid]
        table += (propid, vt, offset)
        values.append(value)
        offset += len(value)
    try:
        head = _COUNT.pack(len(values)) + _table_of(len(values)).pack(*table)
    except struct_error as error:
        raise ValueError(f"the properties do not fit in their table: {error}") from None
    return head + b"".join(values)


class TableShape:
    """A set of properties with their types, to recognise in the bytes of an object.

    Comparing the table as one number, without the offsets, takes a fraction of reading it.
    """

    __slots__ = ("_end", "_mask", "_wanted")

    def __init__(self, types: Mapping[int, int]) -> None:
        count = _COUNT.pack(len(types))
        entries = sorted(types.items())
        wanted = count + b"".join(_ENTRY.pack(propid, vt, 0) for propid, vt in entries)
        ones = b"\xff" * _COUNT.size + _ENTRY.pack(0xFFFFFFFF, 0xFFFF, 0) * len(entries)
        self._end = len(wanted)
        self._wanted = int.from_bytes(wanted, "little")
        self._mask = int.from_bytes(ones, "little")

    def fits(self, data: bytes) -> bool:
        """Returns whether the encoded properties are exactly these."""
        return int.from_bytes(data[: self._end], "little") & self._mask == self._wanted


def packed_value(properties: Properties, propid: int) -> bytes | None:
    """The encoded value of one property; it serves as a cache key for derived values."""
    if isinstance(properties, PropertyBag):
        return properties.packed(propid)
    found = properties.get(propid)
    return None if found is None else found.packed()


def decode_properties(data: bytes) -> dict[int, PropVariant]:
    """Decodes all properties and checks every byte."""
    bag = PropertyBag(data)
    entries = bag.entries()
    for (propid, *_), (follower, *_) in pairwise(entries):
        if follower <= propid:
            raise WireError(f"property {follower} follows {propid}: they are not ascending", 2)
    properties: dict[int, PropVariant] = {}
    at = bag.values_at
    for propid, number, start in entries:
        if start != at:
            raise WireError(f"the value of property {propid} does not start at {at}", start)
        reader = Reader(data, at)
        properties[propid] = _decode(reader, number)
        at = reader.offset
    Reader(data, at).expect_end("the properties")
    return properties


@lru_cache(maxsize=1024)
def _places_of(wanted: tuple[int, ...], ids: tuple[int, ...]) -> tuple[int, ...]:
    """The places of some properties among those of an object; -1 of those that it has not."""
    return tuple(ids.index(propid) if propid in ids else -1 for propid in wanted)


class PropertyBag(Mapping[int, PropVariant]):
    """A mapping of the properties in ``data``, which decodes each one on first access.

    It serves bytes that a store wrote and protects; use ``decode_properties`` for other bytes. A
    damaged value raises ``WireError`` on access.
    """

    __slots__ = ("_decoded", "_ids", "_starts", "_types", "data", "shown", "values_at")

    def __init__(self, data: bytes) -> None:
        self.data = data
        if len(data) < _COUNT.size:
            raise WireError(f"u16 needs 2 bytes, {len(data)} left", 0)
        (count,) = _COUNT.unpack_from(data)
        self.values_at = _COUNT.size + count * _ENTRY.size
        if self.values_at > len(data):
            raise WireError(f"a table of {count} properties does not fit in {len(data)} bytes", 0)
        table: tuple[int, ...] = _table_of(count).unpack_from(data, _COUNT.size)
        # Objects have a dozen or two: searching them is faster than building a dict.
        self._ids = table[::3]
        if len(set(self._ids)) != count:
            raise WireError("the table contains a property twice", _COUNT.size)
        self._types = table[1::3]
        #: Where values begin behind the table, and where the last one ends.
        self._starts = (*table[2::3], len(data) - self.values_at)
        self._decoded: dict[int, PropVariant] = {}
        #: A list of properties that was read, and what it shows on the wire.
        self.shown: tuple[object, bytes] | None = None

    @classmethod
    def of(cls, properties: Properties) -> PropertyBag:
        """The same properties, encoded: whoever stores, sums up or sends them copies the bytes."""
        if isinstance(properties, PropertyBag):
            return properties
        bag = cls(encode_properties(properties))
        bag._decoded.update(properties)
        return bag

    @property
    def values_size(self) -> int:
        """The bytes of all encoded values."""
        return int(self._starts[-1])

    def entries(self) -> list[tuple[int, int, int]]:
        """The identifier, the variant type and the value's offset of each property."""
        starts = (self.values_at + offset for offset in self._starts[:-1])
        return list(zip(self._ids, self._types, starts, strict=True))

    def __getitem__(self, propid: int) -> PropVariant:
        found: PropVariant | None = self.get(propid)
        if found is None:
            raise KeyError(propid)
        return found

    def get(self, propid: int, default: Any = None) -> Any:
        found = self._decoded.get(propid)
        if found is not None:
            return found
        try:
            at = self._ids.index(propid)
        except ValueError:
            return default
        offset = self.values_at + self._starts[at]
        if offset > len(self.data):
            raise WireError(f"the value of property {propid} is behind the end", offset)
        found = self._decoded[propid] = _decode(Reader(self.data, offset), self._types[at])
        return found

    def packed_values(self) -> PackedValues:
        """The encoded values of all properties, each checked for being one whole value."""
        base, starts = self.values_at, self._starts
        found: PackedValues = {}
        for propid, vt, start, end in zip(self._ids, self._types, starts, starts[1:], strict=False):
            value = self.data[base + start : base + end]
            check_packed(vt, value)
            found[propid] = vt, value
        return found

    def packed(self, propid: int) -> bytes | None:
        """The encoded value, up to the start of the next one, not decoded."""
        found = self.typed(propid)
        return None if found is None else found[1]

    def typed(self, propid: int) -> tuple[int, bytes] | None:
        """The variant type and the encoded value, not decoded."""
        try:
            at = self._ids.index(propid)
        except ValueError:
            return None
        base, starts = self.values_at, self._starts
        return self._types[at], self.data[base + starts[at] : base + starts[at + 1]]

    def select(self, wanted: tuple[int, ...]) -> list[tuple[int, bytes] | None]:
        """``typed`` of several properties, which is faster than one by one."""
        types, starts, data, base = self._types, self._starts, self.data, self.values_at
        return [
            None if at < 0 else (types[at], data[base + starts[at] : base + starts[at + 1]])
            for at in _places_of(wanted, self._ids)
        ]

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, propid: object) -> bool:
        return propid in self._ids

    def __hash__(self) -> int:
        return hash(frozenset(self._ids))

    def __reduce__(self) -> tuple[type[PropertyBag], tuple[bytes]]:
        return PropertyBag, (self.data,)

    def __repr__(self) -> str:
        return f"PropertyBag({dict(self)!r})"


_BY_NUMBER = {int(vt): vt for vt in VarType}


def _decode(reader: Reader, number: int) -> PropVariant:
    vt = _BY_NUMBER.get(number)
    if vt is None:
        raise reader.error(f"variant type 0x{number:04x} is not one of MS-MQDS 2.2.3")
    return PropVariant.decode(reader, vt)
