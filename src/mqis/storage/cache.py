"""A cache of what readers of a store have found, each valid until a commit changes it.

A directory is read far more often than it changes, and a third of a read is spent in Python's
database interface and the index trees. Objects never change, so all readers can share them. Whole
answers are kept as well, by the question that a caller has asked.

There are three shelves, each with a share: objects, answers to users, and answers to strangers, so
that strangers displace no answer of a user. On each, what was asked for once makes room first: who
reads a whole directory does not displace what many ask for.

A view shows one commit, the cache belongs to one, too: the newest that a reader has seen. A reader
uses the cache only while that is the commit of its own view.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from threading import Lock
from typing import Any, NamedTuple

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DamagedStore, StoreUnavailable
from mqis.storage.commits import CommitChanges, CommitLog
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.row_conversion import MAX_BODY_BYTES
from mqis.storage.sql_store import SqlView
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag

#: The default for the most objects and answers; large objects are not cached.
MAX_OBJECTS = 65_536
#: The shares of users' and strangers' answers, one in so many; objects have the rest.
_USERS, _STRANGERS = 3 / 8, 1 / 8
#: The bytes of an answer that count as one object.
OBJECT_BYTES = 1_024
#: The longest lookup result that is cached: a longer one would displace many short ones.
MAX_ANSWER = 16

Entry = tuple[Any, ...]


class SeenCommit(NamedTuple):
    """The last commit that a connection sees."""

    number: int
    writer: bytes
    #: True if the file may have changed since the cache was filled, and the number has not.
    uncounted: bool = False


class Kept(NamedTuple):
    """A cached result, and what it depends on."""

    answer: Any
    entries: Collection[Entry]
    weight: int


class Tier:
    """Some results, which go together."""

    def __init__(self) -> None:
        self.found: dict[Hashable, Kept] = {}
        #: The queries whose results depend on an entry of ``CommitChanges``.
        self.queries: dict[Entry, list[Hashable]] = {}
        #: The weight of all that came, those included that went since.
        self.size = 0

    def put(self, query: Hashable, kept: Kept) -> None:
        self.size += kept.weight
        self.found[query] = kept
        for entry in kept.entries:
            self.queries.setdefault(entry, []).append(query)

    def forget(self, entry: Entry) -> None:
        for query in self.queries.pop(entry, ()):
            self.found.pop(query, None)


class Shelf:
    """Cached results of one kind, up to a total weight.

    A result that is asked for a second time moves from the first tier to the second. When the
    shelf is full, the first makes room, if it has at least a quarter. Else the second does: what it
    holds has to be asked for once more before the shelf is full again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.start_over()

    def start_over(self) -> None:
        self._once, self._again, self._before = Tier(), Tier(), Tier()
        self._size = 0

    def __len__(self) -> int:
        return sum(len(tier.found) for tier in self.tiers())

    def tiers(self) -> tuple[Tier, ...]:
        return self._once, self._again, self._before

    def get(self, query: Hashable) -> Kept | None:
        """A result that was asked for more than once; of others ``ask_again`` knows."""
        return self._again.found.get(query)

    def may_know(self, query: Hashable) -> bool:
        """Returns whether ``ask_again`` is worth its lock."""
        return query in self._once.found or query in self._before.found

    def keep(self, query: Hashable, kept: Kept) -> None:
        if kept.weight <= self._most // 4:
            self._make_room(kept.weight)
            self._once.put(query, kept)

    def ask_again(self, query: Hashable) -> Kept | None:
        """Moves a result to those that were asked for more than once."""
        kept = self._once.found.pop(query, None) or self._before.found.pop(query, None)
        if kept is None:
            return self._again.found.get(query)
        self._make_room(kept.weight)
        self._again.put(query, kept)
        return kept

    def _make_room(self, weight: int) -> None:
        self._size += weight
        while self._size > self._most:
            if self._once.size >= self._most // 4:
                self._once = Tier()
            else:
                self._again, self._before = Tier(), self._again
            self._size = weight + sum(tier.size for tier in self.tiers())


class QueryCache:
    """Cached results by query: type and path, type and identifier, or type, property and key.

    ``generation`` changes when the cache moves to another commit. A view knows the one of its
    beginning; a result is right for it if the generation is still the same after the access.
    """

    def __init__(self, commits: CommitLog, most: int = MAX_OBJECTS) -> None:
        self._commits = commits
        self._lock = Lock()
        users, strangers = int(most * _USERS), int(most * _STRANGERS)
        self.objects = Shelf(most - users - strangers)
        self.users = Shelf(users)
        self.strangers = Shelf(strangers)
        self._shelves = (self.objects, self.users, self.strangers)
        self._seen = SeenCommit(0, b"")
        self.generation = 0

    def enter(self, seen: SeenCommit) -> int:
        """Moves on to the commit that a view shows; returns the view's generation.

        -1: the cache is ahead of the view, which cannot use it.
        """
        if seen == self._seen:
            return self.generation
        with self._lock:
            known = self._seen
            if seen.number < known.number and not seen.uncounted:
                return -1
            changes = None
            if not seen.uncounted:
                changes = self._commits.between(known.number, seen.number, seen.writer)
            self.generation += 1  # first: who reads now must not take what comes later for its own
            if changes is None:
                for shelf in self._shelves:
                    shelf.start_over()
            else:
                self._forget(changes)
            self._seen = SeenCommit(seen.number, seen.writer)
            return self.generation

    def start_over(self) -> None:
        """Forgets everything: what other writers changed is not known."""
        with self._lock:
            self.generation += 1
            for shelf in self._shelves:
                shelf.start_over()

    def next_number(self) -> int:
        """The number of the next commit, of a store that only one process changes."""
        return self._seen.number + 1

    def recall(self, shelf: Shelf, query: Hashable, generation: int) -> Any:
        """The result of a query in a view of this generation; None: unknown."""
        kept = shelf.get(query)
        if kept is None and shelf.may_know(query):
            with self._lock:
                kept = shelf.ask_again(query)
        return None if kept is None or generation != self.generation else kept.answer

    def keep(  # noqa: PLR0917
        self,
        shelf: Shelf,
        query: Hashable,
        answer: Any,
        entries: Collection[Entry],
        generation: int,
        size: int = 0,
    ) -> None:
        """Caches ``answer``, of ``size`` bytes, which depends on ``entries``."""
        with self._lock:
            if generation == self.generation and not self._commits.changes(entries, self._seen[0]):
                weight = len(entries) + size // OBJECT_BYTES
                shelf.keep(query, Kept(answer, entries, weight))

    def _forget(self, commits: Iterable[CommitChanges]) -> None:
        """Drops the results that these commits have made wrong.

        No query is cached that found nothing, so a new object can only be missing in the result for
        one of its keys. The queries of the other objects in a dropped result stay listed; they are
        dropped as well when the cache starts over.
        """
        tiers = [tier for shelf in self._shelves for tier in shelf.tiers()]
        tiers = [tier for tier in tiers if tier.queries]
        for changed in commits:
            for entry in changed.entries:
                for tier in tiers:
                    tier.forget(entry)


def _is_small(obj: DirectoryObject) -> bool:
    body = obj.properties
    return isinstance(body, PropertyBag) and len(body.data) <= MAX_BODY_BYTES


def entry_of(obj: DirectoryObject) -> Entry:
    """What a commit that changes the object lists."""
    return obj.type, obj.id.raw


class CachedView(SqlView):
    """A ``SqlView`` that returns cached results where it can."""

    def __init__(self, connection: DatabaseConnection, cache: QueryCache, generation: int) -> None:
        super().__init__(connection)
        self.cache = cache
        self.generation = generation

    def _recall(self, query: Entry) -> Any:
        """The cached objects of a query; None: unknown."""
        return self.cache.recall(self.cache.objects, query, self.generation)

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        query = (object_type, id.raw)
        found: DirectoryObject | None = self._recall(query)
        if found is None:
            found = super().get(object_type, id)
            if found is not None:
                self._keep_one(query, found)
        return found

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        query = (object_type, path)
        found: DirectoryObject | None = self._recall(query)
        if found is None:
            found = super().find(object_type, path)
            if found is not None:
                self._keep_one(query, found)
        return found

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        query = (object_type, propid, key)
        found: list[DirectoryObject] | None = self._recall(query)
        if found is None:
            rest = super().having(object_type, propid, key)
            found = list(islice(rest, MAX_ANSWER + 1))
            if len(found) > MAX_ANSWER:
                return chain(found, rest)
            if found:
                self._keep(query, found, found, query)
        return iter(found)

    def _keep_one(self, query: Entry, found: DirectoryObject) -> None:
        if _is_small(found):
            cache = self.cache
            cache.keep(cache.objects, query, found, (entry_of(found),), self.generation)

    def _keep(
        self, query: Entry, answer: object, objects: Sequence[DirectoryObject], *keys: Entry
    ) -> None:
        if all(map(_is_small, objects)):
            entries = [entry_of(obj) for obj in objects]
            cache = self.cache
            cache.keep(cache.objects, query, answer, [*entries, *keys], self.generation)


class KeepingView(CachedView):
    """A ``SqlView`` that shows one moment of a database and keeps what it finds for others.

    It takes nothing from memory, which may be a commit ahead or behind.
    """

    def _recall(self, query: Entry) -> Any:
        return None


class _NoDatabase:
    """The connection of a view that has none."""

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        raise StoreUnavailable("this is not in memory")

    def change(self, sql: str, parameters: Sequence[object]) -> int:
        raise StoreUnavailable("nothing can be changed in memory")

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        raise StoreUnavailable("nothing can be changed in memory")

    def report_damage(self, error: DamagedStore) -> None:
        """Nothing is read, so nothing is damaged."""


NO_DATABASE = _NoDatabase()
