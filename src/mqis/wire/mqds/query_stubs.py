"""MQRESTRICTION, MQCOLUMNSET, MQSORTSET (MS-MQDS 2.2.11 to 2.2.15) in RPC stubs."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.ndr import PROPVARIANT, U32, Conformant, Range, Struct, Unique
from mqis.wire.propvariant import PropVariant

#: The maximum number of restrictions, columns, sort keys or properties in one call.
MAX_ENTRIES = 128


@dataclass(frozen=True, slots=True)
class PropertyRestriction:
    """MQPROPERTYRESTRICTION: property ``prop`` compared by ``rel`` with ``prval``."""

    rel: int
    prop: int
    prval: PropVariant


@dataclass(frozen=True, slots=True)
class RestrictionSet:
    """MQRESTRICTION: conditions that all have to hold."""

    restrictions: tuple[PropertyRestriction, ...] | None


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """MQCOLUMNSET: the property identifiers to return."""

    columns: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class SortColumn:
    """MQSORTKEY; order 0 ascends, 1 descends."""

    column: int
    order: int


@dataclass(frozen=True, slots=True)
class SortSet:
    """MQSORTSET, most significant key first."""

    keys: tuple[SortColumn, ...] | None


_COUNT = Range(U32, 0, MAX_ENTRIES)

PROPERTY_RESTRICTION = Struct(PropertyRestriction, rel=U32, prop=U32, prval=PROPVARIANT)
RESTRICTION = Struct(
    RestrictionSet,
    count=_COUNT,
    restrictions=Unique(Conformant(PROPERTY_RESTRICTION, size_is="count", maximum=MAX_ENTRIES)),
)
COLUMN_SET = Struct(
    ColumnSet,
    count=_COUNT,
    columns=Unique(Conformant(U32, size_is="count", maximum=MAX_ENTRIES)),
)
SORT_KEY = Struct(SortColumn, column=U32, order=U32)
SORT_SET = Struct(
    SortSet,
    count=_COUNT,
    keys=Unique(Conformant(SORT_KEY, size_is="count", maximum=MAX_ENTRIES)),
)
