"""Compares two directories object by object and property by property.

Both are sequences of objects in the order of exports: by type as in ``ORDER``, within a type
ascending by the bytes of the identifier. So the comparison is one merge of two streams and holds
one object of each side. Sequence numbers and partitions are not compared: they are the place of an
object in replication, and not its content. A property without a value is equal to one that has the
value which the directory shows instead (``read_mapping``): a server does not tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.read_mapping import default_of
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant

_PLACES = {object_type: place for place, object_type in enumerate(ORDER)}

_Key = tuple[int, bytes]
_Name = tuple[ObjectType, str]
#: Returns whether a property is to be compared.
Chooses = Callable[[int], bool]


class ObjectFate(StrEnum):
    """The difference of a whole object, from the first directory to the second."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    #: Deleted, and created again under the same name: it has another identifier.
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class PropertyDifference:
    """One property before and after; None is no value."""

    propid: int
    before: PropVariant | None
    after: PropVariant | None


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """One object that differs; an object that was created has no ``before``."""

    before: DirectoryObject | None
    after: DirectoryObject | None
    #: Ascending by number. Of a whole object that came or went: all its properties.
    properties: tuple[PropertyDifference, ...]

    @property
    def fate(self) -> ObjectFate:
        if self.before is None:
            return ObjectFate.CREATED
        if self.after is None:
            return ObjectFate.DELETED
        return ObjectFate.CHANGED if self.before.id == self.after.id else ObjectFate.REPLACED

    @property
    def object(self) -> DirectoryObject:
        """The object as it is afterwards, or as it was if it is gone."""
        found = self.after or self.before
        assert found is not None
        return found


def everything(_propid: int) -> bool:
    return True


def compare(
    before: Iterable[DirectoryObject],
    after: Iterable[DirectoryObject],
    chooses: Chooses = everything,
) -> Iterator[ObjectDifference]:
    """Yields the objects that differ, in the order of exports."""
    for old, new in _pairs(_ordered(before), _ordered(after)):
        properties = tuple(differing(old, new, chooses))
        if properties or old is None or new is None:
            yield ObjectDifference(old, new, properties)


def differing(
    old: DirectoryObject | None, new: DirectoryObject | None, chooses: Chooses = everything
) -> Iterator[PropertyDifference]:
    """Yields the properties that have other values, ascending by number."""
    had = {} if old is None else old.properties
    has = {} if new is None else new.properties
    for propid in sorted(had.keys() | has.keys()):
        if not chooses(propid):
            continue
        was, is_ = had.get(propid), has.get(propid)
        if was != is_ and not (old and new and _shows_same(propid, was, is_)):
            yield PropertyDifference(propid, was, is_)


def _shows_same(propid: int, one: PropVariant | None, other: PropVariant | None) -> bool:
    default = default_of(propid)
    return (one or default) == (other or default)


def paired(
    found: Iterable[ObjectDifference], chooses: Chooses = everything
) -> list[ObjectDifference]:
    """Joins an object that was deleted and one of the same name that was created, if both are."""
    differences = list(found)
    gone = {_name(one): one.before for one in differences if one.after is None}
    new = {_name(one): one for one in differences if one.before is None}
    replaced = {name for name in gone.keys() & new.keys() if name is not None}

    def joined(one: ObjectDifference) -> ObjectDifference:
        name = _name(one)
        if name not in replaced or new[name] is not one:
            return one
        old = gone[name]
        return ObjectDifference(old, one.after, tuple(differing(old, one.after, chooses)))

    left = (one for one in differences if one.after is not None or _name(one) not in replaced)
    return [joined(one) for one in left]


def _name(one: ObjectDifference) -> _Name | None:
    path = one.object.path
    return None if path is None else (one.object.type, name_key(path))


def _pairs(
    before: Iterator[DirectoryObject], after: Iterator[DirectoryObject]
) -> Iterator[tuple[DirectoryObject | None, DirectoryObject | None]]:
    """Merges two ordered streams; an object that only one of them has is paired with None."""
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if new is None or (old is not None and _key(old) < _key(new)):
            yield old, None
            old = next(before, None)
        elif old is None or _key(new) < _key(old):
            yield None, new
            new = next(after, None)
        else:
            yield old, new
            old, new = next(before, None), next(after, None)


def _key(obj: DirectoryObject) -> _Key:
    return _PLACES[obj.type], obj.id.raw


def _ordered(objects: Iterable[DirectoryObject]) -> Iterator[DirectoryObject]:
    last: _Key = (-1, b"")
    for obj in objects:
        key = _key(obj)
        if key <= last:
            what = f"{obj.type.label} {obj.path or obj.id}"
            raise MqisError(
                f"{what} is there twice"
                if key == last
                else f"{what} is out of order: exports "
                "have the types in a fixed order, and each type by identifier; import it into a "
                "new store (mqis import) and compare that"
            )
        last = key
        yield obj
