"""A view that notes what is read through it, so that an answer made of it can be remembered."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.cache import CachedView, Entry, Shelf, entry_of
from mqis.storage.sql_store import SqlView
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: The most objects and keys that are noted one by one.
MAX_ENTRIES = 4_096


class NotedView(SqlView):
    """The same view as ``view``, which it reads through.

    An answer depends on the objects that were found and on the keys that were looked up. If very
    many objects were read, it depends on all of their type.
    """

    def __init__(self, view: CachedView, shelf: Shelf) -> None:
        """``shelf``: the place for the answers."""
        super().__init__(view._connection)
        self._run = self._read_else
        self._view = view
        self._shelf = shelf
        self._entries: set[Entry] = set()
        #: False once something was read of which commits do not tell whether it has changed.
        self._told = True

    def remember(self, question: Hashable, answer: object, size: int) -> None:
        """Keeps the answer, of ``size`` bytes, as long as no commit changes what was read."""
        if self._told:
            view = self._view
            view.cache.keep(self._shelf, question, answer, self._entries, view.generation, size)

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        return self._saw(self._view.get(object_type, id))

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        return self._saw(self._view.find(object_type, path))

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        self._entries.add((object_type,))
        return self._view.objects(object_type)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        self._entries.add((object_type,))
        return self._view.owned_by(object_type, owner)

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        self._entries.add((object_type, propid, key))
        for obj in self._view.having(object_type, propid, key):
            entry = entry_of(obj) if len(self._entries) < MAX_ENTRIES else (object_type,)
            self._entries.add(entry)
            yield obj

    def _saw(self, found: DirectoryObject | None) -> DirectoryObject | None:
        if found is None:  # nothing tells when there will be one
            self._told = False
        else:
            self._entries.add(entry_of(found))
        return found

    def _read_else(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        self._told = False
        return self._connection.run(sql, parameters)
