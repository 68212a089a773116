"""A store as one visitor may read it: objects without read access are hidden."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Lock
from typing import Generic, TypeVar

from mqis.protocol.directory.guard import Access, Guard
from mqis.protocol.directory.lookup_query import Query, SortKey
from mqis.protocol.directory.object_sources import Record, StoreSource, no_such_object
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject, name_key
from mqis.protocol.directory.read_mapping import is_readable, read_property
from mqis.protocol.directory.restrictions import Restriction
from mqis.protocol.ports import View
from mqis.protocol.security.information import SecurityInformation, extract
from mqis.views.console.visitor_rights import VisitorRights
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import SecurityDescriptor

T = TypeVar("T")

#: The most objects of a list, about ten megabytes; a search finds the rest.
MOST_FOUND = 200_000
#: The most objects that are checked one by one to count the readable ones.
MOST_COUNTED = 10_000

#: The version of a store: the last number of each partition.
Version = tuple[tuple[str, int], ...]
#: Reads a property of the object at hand: only what a test asks for is decoded.
ReadValue = Callable[[PropId], PropVariant | None]
Test = Callable[[str | None, Guid, ReadValue], bool]


def version_of(view: View) -> Version:
    return tuple((str(p.id), p.last_seq.value) for p in view.partitions())


class Remembered(Generic[T]):
    """A cache of values computed from stores, each valid until its store changes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, tuple[Version, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, version: Version, make: Callable[[], T]) -> T:
        with self._lock:
            known = self._known.get(key)
            if known is not None and known[0] == version:
                self._known.move_to_end(key)
                return known[1]
        made = make()
        with self._lock:
            self._known[key] = version, made
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: raw identifiers, sorted by name."""

    ids: tuple[bytes, ...]
    #: True if there are more than are listed.
    cut: bool


class GuardedSource(StoreSource):
    """A source that shows one visitor the objects of a view that they may read."""

    def __init__(
        self, view: View, url: str, rights: VisitorRights, lists: Remembered[Found] | None = None
    ) -> None:
        super().__init__(view)
        self._guard: Guard = rights.guard()
        self._key = url, rights
        self._lists = Remembered(1) if lists is None else lists

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        """The objects that the visitor may read, sorted by identifier."""
        return filter(self.may_read, self._view.objects(object_type))

    def find(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        """Finds an object; None if the visitor may not read it."""
        found = self._view.get(object_type, id)
        return None if found is None or not self.may_read(found) else found

    def may_read(self, obj: DirectoryObject) -> bool:
        return self._guard.allows(obj, Access.READ, self._view)

    def may_read_security(self, obj: DirectoryObject) -> bool:
        return self._guard.allows(obj, Access.READ_SECURITY, self._view)

    # --- Source -----------------------------------------------------------------------------------

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        found = self.find(object_type, id)
        return None if found is None else found.path

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        found = self._view.find(object_type, name)
        return None if found is None or not self.may_read(found) else found.id

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId] = ()) -> Record:
        obj = self._find(object_type, name)
        return self.record(obj, chosen or self._shown(obj))

    def lookup(
        self,
        object_type: ObjectType,
        columns: Sequence[PropId],
        restrictions: Sequence[Restriction],
        sort: Sequence[SortKey],
    ) -> list[Record]:
        query = Query(object_type, tuple(columns), tuple(restrictions), tuple(sort))
        return [self.record(o, columns) for o in query.objects(self._view) if self.may_read(o)]

    def security(self, object_type: ObjectType, name: str, information: int) -> bytes:
        """The requested parts of the stored descriptor; empty if none is stored."""
        obj = self._find(object_type, name)
        self._guard.check(obj, Access.READ_SECURITY, self._view)
        stored = obj.properties.get(SECURITY_PROPERTY[object_type])
        if stored is None or not isinstance(stored.value, bytes):
            return b""
        whole = SecurityDescriptor.from_bytes(stored.value)
        return extract(whole, SecurityInformation(information)).to_bytes()

    def _find(self, object_type: ObjectType, name: str) -> DirectoryObject:
        found = super()._find(object_type, name)
        if not self.may_read(found):
            raise no_such_object(object_type, name)
        return found

    def _shown(self, obj: DirectoryObject) -> list[PropId]:
        """The stored properties that clients may read; for an administrator, all of them."""
        everything = self._guard.is_administrator
        return [PropId(p) for p in sorted(obj.properties) if everything or is_readable(p)]

    # --- lists ------------------------------------------------------------------------------------

    def tally(self, object_type: ObjectType) -> tuple[int, bool]:
        """The number of objects that the visitor may read, and whether there may be more."""
        if self._guard.is_administrator:
            return self._view.count(object_type), False
        objects = self._view.objects(object_type)
        readable = sum(map(self.may_read, islice(objects, MOST_COUNTED)))
        return readable, next(objects, None) is not None

    def search(self, object_type: ObjectType, text: str, test: Test) -> Found:
        """The objects that pass ``test``, sorted by name; all of them if ``text`` is empty."""
        key = *self._key, object_type, text
        found = self._found(object_type, test if text else None)
        return self._lists.get(key, version_of(self._view), lambda: _listed(found))

    def _found(self, object_type: ObjectType, test: Test | None) -> Iterator[tuple[str, bytes]]:
        for obj in self.objects(object_type):
            path = obj.path
            if test is None or test(path, obj.id, partial(self._read, obj)):
                yield name_key(path or ""), obj.id.raw

    def _read(self, obj: DirectoryObject, propid: PropId) -> PropVariant | None:
        return read_property(obj, propid, self._view)

    def records(
        self, object_type: ObjectType, ids: Iterable[bytes], columns: Sequence[PropId]
    ) -> list[Record]:
        objects = (self._view.get(object_type, Guid(raw)) for raw in ids)
        return [self.record(o, columns) for o in objects if o is not None and self.may_read(o)]


def _listed(keyed: Iterable[tuple[str, bytes]]) -> Found:
    listed = list(islice(keyed, MOST_FOUND + 1))
    cut = len(listed) > MOST_FOUND
    return Found(tuple(raw for _, raw in sorted(listed[:MOST_FOUND])), cut)
