"""A store whose commits fail when a test says so, after the operations have succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, Transaction, View
from mqis.storage.memory_store import MemoryStore


class FailingStore:
    """``ports.Store`` over another store."""

    def __init__(self, inner: Store | None = None) -> None:
        self._inner = inner or MemoryStore()
        self.fail = False

    def read(self) -> AbstractContextManager[View]:
        return self._inner.read()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._inner.write() as transaction:
            yield transaction
            if self.fail:
                raise StorageError("the disk is full")

    def check(self) -> list[str]:
        return self._inner.check()

    def close(self) -> None:
        self._inner.close()
