"""A cache of one connection's query results, each valid until a commit changes it.

A directory is read far more often than it changes, and a third of a read is spent in Python's
database interface and the index trees. Objects never change, so all readers can share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.commits import CommitChanges
from mqis.storage.records import MAX_BODY_BYTES
from mqis.storage.session import DatabaseConnection
from mqis.storage.sql import SqlView
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag

#: The most objects in the cached results of one connection; large objects are not cached.
MAX_OBJECTS = 16_384
#: The longest lookup result that is cached: a longer one would displace many short ones.
MAX_ANSWER = 16


class QueryCache:
    """Cached results by query: type and path, type and identifier, or type, property and key."""

    __slots__ = ("_objects", "_queries", "found")

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], Any] = {}
        #: The queries whose results have an object, by its type and identifier.
        self._queries: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        self._objects = 0

    def keep(self, query: tuple[Any, ...], answer: Any, objects: Sequence[DirectoryObject]) -> None:
        """Caches ``answer``, which consists of ``objects``; starts over when the cache is full."""
        if not all(map(_is_small, objects)):
            return
        self._objects += len(objects)
        if self._objects > MAX_OBJECTS:
            self.found.clear()
            self._queries.clear()
            self._objects = len(objects)
        self.found[query] = answer
        for obj in objects:
            self._queries.setdefault((obj.type, obj.id.raw), []).append(query)

    def forget(self, commits: Iterable[CommitChanges]) -> None:
        """Drops the results that these commits have made wrong.

        No query is cached that found nothing, so a new object can only be missing in the result for
        one of its keys. The queries of the other objects in a dropped result stay listed; they are
        dropped as well when the cache starts over.
        """
        for changed in commits:
            for entry in changed.entries:
                self.found.pop(entry, None)
                for query in self._queries.pop(entry, ()):
                    self.found.pop(query, None)


def _is_small(obj: DirectoryObject) -> bool:
    body = obj.properties
    return isinstance(body, PropertyBag) and len(body.data) <= MAX_BODY_BYTES


class CachedView(SqlView):
    """A ``SqlView`` that returns cached results where it can."""

    def __init__(self, connection: DatabaseConnection, answers: QueryCache) -> None:
        super().__init__(connection)
        self._answers = answers

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        query = (object_type, id.raw)
        found: DirectoryObject | None = self._answers.found.get(query)
        if found is None:
            found = super().get(object_type, id)
            if found is not None:
                self._answers.keep(query, found, (found,))
        return found

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        query = (object_type, path)
        found: DirectoryObject | None = self._answers.found.get(query)
        if found is None:
            found = super().find(object_type, path)
            if found is not None:
                self._answers.keep(query, found, (found,))
        return found

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        query = (object_type, propid, key)
        found: list[DirectoryObject] | None = self._answers.found.get(query)
        if found is None:
            rest = super().having(object_type, propid, key)
            found = list(islice(rest, MAX_ANSWER + 1))
            if len(found) > MAX_ANSWER:
                return chain(found, rest)
            if found:
                self._answers.keep(query, found, found)
        return iter(found)
