"""Lookups (MS-MQDS 3.1.4.17, 3.1.6.7): restriction, columns, sort; checked, planned, run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Protocol, cast, runtime_checkable

from mqis.protocol.directory.indexing import INDEXED, key_of
from mqis.protocol.directory.lookup_rows import Row
from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    DirectoryObject,
)
from mqis.protocol.directory.read_mapping import is_readable, read_property, reader_of
from mqis.protocol.directory.restrictions import (
    MAX_ENTRIES,
    Relation,
    Restriction,
    comparable,
)
from mqis.protocol.directory.types.catalogue import ids_where
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

_NULL = PropVariant(VarType.NULL, None)
_OWNERS = ids_where(lambda row: row.names_owner)


class Order(IntEnum):
    ASCENDING = 0
    DESCENDING = 1

    @classmethod
    def from_wire(cls, number: int) -> Order:
        if number not in (0, 1):
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_SORT, f"sort order {number} is neither 0 nor 1"
            )
        return cls(number)


@dataclass(frozen=True, slots=True)
class SortKey:
    propid: PropId
    order: Order = Order.ASCENDING


@dataclass(frozen=True, slots=True)
class Query:
    """A checked lookup. Columns keep the client's order, duplicates included (3.1.6.7)."""

    object_type: ObjectType
    columns: tuple[PropId, ...]
    restrictions: tuple[Restriction, ...] = ()
    sort: tuple[SortKey, ...] = ()

    @classmethod
    def make(
        cls,
        columns: Sequence[int],
        restrictions: Sequence[Restriction] = (),
        sort: Sequence[SortKey] = (),
    ) -> Query:
        """The lookup of the one type that all identifiers belong to, or ``DirectoryError``."""
        for what, entries in (("columns", columns), ("restrictions", restrictions), ("keys", sort)):
            if len(entries) > MAX_ENTRIES:
                raise DirectoryError(
                    HResult.MQ_ERROR_INVALID_PARAMETER,
                    f"{len(entries)} {what}, at most {MAX_ENTRIES} are allowed",
                )
        object_type = _type_of_columns(columns)
        for restriction in restrictions:
            _expect_type(
                object_type, restriction.propid, HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID
            )
        for key in sort:
            _expect_type(object_type, key.propid, HResult.MQ_ERROR_ILLEGAL_SORT_PROPID)
        if len({key.propid for key in sort}) < len(sort):
            raise DirectoryError(HResult.MQ_ERROR_ILLEGAL_SORT, "a sort column is named twice")
        known = tuple([PROPERTIES[propid].id for propid in columns])
        return cls(object_type, known, tuple(restrictions), tuple(sort))

    def matching(self, view: View) -> Iterator[DirectoryObject | None]:
        """Yields the matches, ascending by identifier, and None for each other object.

        So the caller gets control back after every object of a large directory.
        """
        tests = [restriction.test(view) for restriction in self.restrictions]
        for obj in self._candidates(view):
            for test in tests:
                if not test(obj):
                    yield None
                    break
            else:
                yield obj

    def order(self, view: View) -> Callable[[DirectoryObject], tuple[Any, ...]]:
        """The key by which matches are sorted; it ends with the identifier, so none are equal."""
        keys = [(key.propid, key.order is Order.DESCENDING) for key in self.sort]

        def key_of_object(obj: DirectoryObject) -> tuple[Any, ...]:
            values = [
                Descending(value) if descends else value
                for value, descends in ((_sort_value(obj, p, view), d) for p, d in keys)
            ]
            return (*values, obj.id.raw)

        return key_of_object

    def objects(self, view: View) -> list[DirectoryObject]:
        """Returns the matches, sorted; without a sort set, by identifier."""
        found = [obj for obj in self.matching(view) if obj is not None]
        return sorted(found, key=self.order(view))

    def rows(self, view: View) -> list[Row]:
        """The columns of each match; one without a value is VT_NULL, so rows keep their length."""
        reads = [reader_of(propid) for propid in self.columns]
        return [tuple([read(obj, view) or _NULL for read in reads]) for obj in self.objects(view)]

    def _candidates(self, view: View) -> Iterator[DirectoryObject]:
        """All objects that can match, from the best index there is."""
        equal = [r for r in self.restrictions if r.relation is Relation.EQ]
        comparing = cast(ComparingView, view) if _compares(type(view)) else None
        for by in (_by_name, _by_index) if comparing is None else (_by_name,):
            for restriction in equal:
                found = by(self.object_type, restriction, view)
                if found is not None:
                    return found
        if comparing is not None:
            return comparing.compared(self.object_type, self.restrictions)
        return view.objects(self.object_type)


@runtime_checkable
class ComparingView(Protocol):
    """A view over a directory that itself compares properties, with indexes of its own."""

    def compared(
        self, object_type: ObjectType, restrictions: Sequence[Restriction]
    ) -> Iterator[DirectoryObject]:
        """The objects that meet all restrictions, and perhaps others."""


@cache
def _compares(kind: type[View]) -> bool:
    """Asked for each kind of view once: that takes longer than to find an object."""
    return issubclass(kind, ComparingView)


def _by_name(
    object_type: ObjectType, restriction: Restriction, view: View
) -> Iterator[DirectoryObject] | None:
    """The one object that an identifier or a name belongs to."""
    propid, value = restriction.propid, restriction.constant.value
    if propid == IDENTIFIER_PROPERTY[object_type] and isinstance(value, Guid):
        return _one(view.get(object_type, value))
    if propid == NAME_PROPERTY.get(object_type) and isinstance(value, str):
        return _one(view.find(object_type, value))
    return None


def _by_index(
    object_type: ObjectType, restriction: Restriction, view: View
) -> Iterator[DirectoryObject] | None:
    propid, value = restriction.propid, restriction.constant.value
    if propid in _OWNERS and isinstance(value, Guid) and value:
        return view.owned_by(object_type, value)
    if propid in INDEXED.get(object_type, ()) and not isinstance(value, tuple):
        key = key_of(value)
        return None if key is None else view.having(object_type, propid, key)
    return None


def _one(obj: DirectoryObject | None) -> Iterator[DirectoryObject]:
    return iter(() if obj is None else (obj,))


def _type_of_columns(columns: Sequence[int]) -> ObjectType:
    if not columns:
        raise DirectoryError(HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS, "a lookup needs columns")
    for propid in columns:
        if not is_readable(propid):
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS, f"property {propid} cannot be a column"
            )
    types = {PROPERTIES[propid].object_type for propid in columns}
    if len(types) > 1:
        names = ", ".join(sorted(object_type.label for object_type in types))
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS, f"the columns belong to several types: {names}"
        )
    return types.pop()


def _expect_type(object_type: ObjectType, propid: int, code: HResult) -> None:
    entry = PROPERTIES.get(propid)
    if entry is None or not is_readable(propid) or entry.object_type is not object_type:
        raise DirectoryError(
            code, f"property {propid} is not one that a client reads of a {object_type.label}"
        )


def _sort_value(obj: DirectoryObject, propid: PropId, view: View) -> tuple[bool, Any]:
    """Objects without a value come first."""
    shown = read_property(obj, propid, view)
    return (False, 0) if shown is None else (True, comparable(shown.value))


@dataclass(frozen=True, slots=True)
class Descending:
    """A sort value that comes before smaller ones."""

    value: tuple[bool, Any]

    def __lt__(self, other: Descending) -> bool:
        return other.value < self.value
