"""Stores with backup and restore: a backup is a copy of everything committed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mqis.protocol.ports import Store, Transaction
from mqis.storage.memory_store import MemoryStore, _Layer
from mqis.storage.sqlite import SqliteStore


class _Discarded(Exception):
    """Raised to roll a transaction back."""


@contextmanager
def discarded(store: Store) -> Iterator[Transaction]:
    """A transaction that is always rolled back."""
    try:
        with store.write() as tx:
            yield tx
            raise _Discarded
    except _Discarded:
        pass


class Disk(Protocol):
    """The disk of one server, with its store."""

    store: Store

    def backup(self) -> Callable[[], None]:
        """Copies the committed state; returns a function that restores it."""

    def close(self) -> None: ...


class _Copyable(MemoryStore):
    def copy(self) -> _Copyable:
        twin = _Copyable()
        twin._root = self._root.snapshot()
        return twin

    def sharing(self) -> _Copyable:
        """A store with these contents, shared, and its own changes; this one must not change."""
        twin = _Copyable()
        twin._root = _Layer(self._root)
        return twin


class MemoryDisk:
    """A disk in memory; the store outlives the node, so a crash loses nothing committed."""

    def __init__(self) -> None:
        self.store: Store = _Copyable()

    def share(self, other: MemoryDisk) -> None:
        """Takes the contents of another disk, without a copy: nothing may change there again."""
        assert isinstance(other.store, _Copyable)
        self.store = other.store.sharing()

    def backup(self) -> Callable[[], None]:
        assert isinstance(self.store, _Copyable)
        kept = self.store.copy()

        def restore() -> None:
            self.store = kept.copy()

        return restore

    def close(self) -> None:
        self.store.close()


class SqliteDisk:
    """The default store of a real server, in a directory of the simulation."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / f"{name}.db"
        self._backups = 0
        self.store: Store = SqliteStore(self._path)

    def backup(self) -> Callable[[], None]:
        self._backups += 1
        kept = self._path.with_suffix(f".backup{self._backups}")
        self._reopen(lambda: shutil.copyfile(self._path, kept))
        return lambda: self._reopen(lambda: shutil.copyfile(kept, self._path))

    def _reopen(self, between: Callable[[], object]) -> None:
        """Runs ``between`` while the store is closed: closing merges SQLite's log into the file."""
        self.store.close()
        between()
        self.store = SqliteStore(self._path, create=False)

    def close(self) -> None:
        self.store.close()
