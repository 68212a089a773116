"""The commits of a store, counted in the store itself, and what each of them changed.

A reader's cache holds answers of an earlier commit. If it knows what every commit since then
changed, it forgets only that; if it misses one of them, it has to forget everything. A commit is
known if this store made it: other processes count too, but tell nobody what they changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DamagedStore
from mqis.storage.database_session import DatabaseConnection
from mqis.texts import counted
from mqis.wire.mqds.propid import PropId

#: The most commits whose changes are kept, and the most objects and keys of one of them.
KEPT = 1_024
MAX_CHANGED = 1_024

_COUNT = "UPDATE commits SET number=number+1, writer=? RETURNING number"
_LAST = "SELECT number, writer FROM commits"


def last_commit(connection: DatabaseConnection) -> tuple[int, bytes]:
    """The number of the last commit that a connection sees, and who has made it."""
    number, writer = next(iter(connection.run(_LAST)), (0, b""))
    return number, writer


def commit_faults(connection: DatabaseConnection) -> Iterator[str]:
    counters = len(connection.run(_LAST))
    if counters != 1:
        yield f"the store has {counters} counters of commits instead of one"


class CommitChanges:
    """The objects that a transaction changed, and the index keys that objects got from it."""

    __slots__ = ("entries", "everything")

    def __init__(self) -> None:
        #: (type, identifier) of an object, (type, property, key), or (type,) of any change to it.
        self.entries: set[tuple[Any, ...]] = set()
        #: Too much to say what.
        self.everything = False

    def add(self, obj: DirectoryObject, keys: Iterable[tuple[PropId, bytes]]) -> None:
        if self.everything:
            return
        self.entries.add((obj.type,))
        self.entries.add((obj.type, obj.id.raw))
        self.entries.update((obj.type, propid, key) for propid, key in keys)
        if len(self.entries) > MAX_CHANGED:
            self.all()

    def all(self) -> None:
        self.everything = True
        self.entries.clear()


class CommitLog:
    """What the last commits of one store changed, by their numbers."""

    def __init__(self) -> None:
        self.changed: dict[int, CommitChanges] = {}
        #: Tells this store's commits from those of others, which count in the same row.
        self.writer = secrets.token_bytes(16)

    @contextmanager
    def next(self) -> Iterator[NextCommit]:
        """Yields the commit that ends this block.

        If it fails its number is free again, for another process too.
        """
        commit = NextCommit(self)
        try:
            yield commit
        except BaseException:
            self.changed.pop(commit.number, None)
            raise
        self.changed.pop(commit.number - KEPT, None)

    def between(self, known: int, number: int, writer: bytes) -> list[CommitChanges] | None:
        """All changes after commit ``known`` up to ``number``, which ``writer`` has made.

        None: they are not all known.
        """
        if writer != self.writer or not 0 < number - known <= KEPT:
            return None
        found = [self.changed.get(one) for one in range(known + 1, number + 1)]
        told = [one for one in found if one is not None and not one.everything]
        return told if len(told) == len(found) else None

    def changes(self, entries: Collection[tuple[Any, ...]], known: int) -> bool:
        """Returns whether the commit behind ``known``, if on its way, changes one of these."""
        changed = self.changed.get(known + 1)
        if changed is None:
            return False
        return changed.everything or not changed.entries.isdisjoint(entries)


class NextCommit:
    """A commit that is being prepared."""

    __slots__ = ("_log", "changed", "number")

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.changed = CommitChanges()
        self.number = 0

    def take(self, number: int) -> None:
        """Takes the number, if something has changed that readers may have kept."""
        if self.changed.everything or self.changed.entries:
            self.number = number
            self._log.changed[number] = self.changed

    def count(self, connection: DatabaseConnection) -> None:
        """Takes a number. The last statement before the commit, which readers see at once."""
        rows = connection.run(_COUNT, (self._log.writer,))
        if len(rows) != 1:
            raise DamagedStore(
                f"the store has {counted(len(rows), 'counter')} of commits instead of one"
            )
        self.number = rows[0][0]
        self._log.changed[self.number] = self.changed
