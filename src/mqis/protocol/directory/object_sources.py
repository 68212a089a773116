"""Sources of objects: a store, or (``client.remote``) a server.

Both give the same records, so that both are shown by the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqis.protocol.directory.lookup_query import Query, SortKey
from mqis.protocol.directory.objects import NAME_PROPERTY, DirectoryObject, without_path_name
from mqis.protocol.directory.read_mapping import read_property
from mqis.protocol.directory.restrictions import Restriction
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value

_NOT_FOUND = {
    ObjectType.QUEUE: HResult.MQ_ERROR_QUEUE_NOT_FOUND,
    ObjectType.MACHINE: HResult.MQ_ERROR_MACHINE_NOT_FOUND,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One object and those of its properties that were asked for; None is one without a value."""

    type: ObjectType
    id: Guid
    path: str | None
    values: Mapping[PropId, PropVariant | None]
    #: A server does not tell these two.
    partition: Guid | None = None
    seq: str | None = None

    def value(self, propid: PropId) -> Value:
        """The value of a property; None if there is none, or if it was not asked for."""
        found = self.values.get(propid)
        return None if found is None else found.value


class ReferenceNames(Protocol):
    """The names of what properties refer to by GUID."""

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None: ...  # noqa: A002

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None: ...


class Source(ReferenceNames, Protocol):
    """The source that the commands ``get`` and ``lookup`` ask."""

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> Record:
        """One object by name or identifier: ``chosen`` properties, or all that are stored."""

    def lookup(
        self,
        object_type: ObjectType,
        columns: Sequence[PropId],
        restrictions: Sequence[Restriction],
        sort: Sequence[SortKey],
    ) -> list[Record]:
        """The objects that meet all restrictions, in order."""


def as_guid(text: str) -> Guid | None:
    """The identifier, if ``text`` is one."""
    try:
        return Guid.parse(text)
    except ValueError:
        return None


class NoSuchObject(DirectoryError):
    """A named object is not in the directory, whatever the HRESULT that its type has for that."""


def no_such_object(object_type: ObjectType, name: str) -> NoSuchObject:
    code = _NOT_FOUND.get(object_type, HResult.MQ_ERROR_INVALID_PARAMETER)
    text = f"there is no {object_type.label} {name!r} in the store"
    if object_type not in NAME_PROPERTY and as_guid(name) is None:
        text = f"{text}: {without_path_name(object_type)}"
    return NoSuchObject(code, text)


class StoreSource:
    """``Source`` over a view of a store."""

    def __init__(self, view: View) -> None:
        self._view = view

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        found = self._view.get(object_type, id)
        return None if found is None else found.path

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        found = self._view.find(object_type, name)
        return None if found is None else found.id

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId] = ()) -> Record:
        obj = self._find(object_type, name)
        return self.record(obj, chosen or [PropId(p) for p in sorted(obj.properties)])

    def lookup(
        self,
        object_type: ObjectType,
        columns: Sequence[PropId],
        restrictions: Sequence[Restriction],
        sort: Sequence[SortKey],
    ) -> list[Record]:
        query = Query(object_type, tuple(columns), tuple(restrictions), tuple(sort))
        return [self.record(obj, columns) for obj in query.objects(self._view)]

    def record(self, obj: DirectoryObject, columns: Sequence[PropId]) -> Record:
        values = {propid: read_property(obj, propid, self._view) for propid in columns}
        return Record(obj.type, obj.id, obj.path, values, obj.partition, str(obj.seq))

    def _find(self, object_type: ObjectType, name: str) -> DirectoryObject:
        guid = as_guid(name)
        found = None if guid is None else self._view.get(object_type, guid)
        if found is None and object_type in NAME_PROPERTY:
            found = self._view.find(object_type, name)
        if found is None:
            raise no_such_object(object_type, name)
        return found
