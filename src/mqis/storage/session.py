"""One database connection and its transactions, as far as the databases agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from mqis.protocol.errors import DamagedStore, StorageError

#: How long a writer waits for another process before it gives up.
BUSY_TIMEOUT_S = 10.0


class Connection(Protocol):
    """One database connection: runs a statement, gives its rows, raises ``StorageError``."""

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]: ...

    def tell_damage(self, error: DamagedStore) -> None:
        """Tell whoever keeps the store that its content is damaged."""


def _silent(_text: str) -> None: ...


class Session(ABC):
    """``Connection`` that begins and ends transactions.

    A full disk or a lost server can end a transaction in the middle. What is run after that would
    stand alone, each statement its own commit, so it is refused until the transaction is over.
    """

    def __init__(self) -> None:
        self._begun = False
        self._lost: StorageError | None = None
        #: Hears of damage that is found here.
        self.on_damage: Callable[[str], None] = _silent

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        if self._lost is not None:
            raise StorageError(f"{self._lost} (all of its transaction was undone)")
        try:
            return self._execute(sql, parameters)
        except StorageError as error:
            if isinstance(error, DamagedStore):
                self.tell_damage(error)
            if self._begun and not self.in_transaction:
                self._lost = error
            raise

    def tell_damage(self, error: DamagedStore) -> None:
        self.on_damage(error.detail)

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        self.begin(begin)
        try:
            yield
        except BaseException:
            self.end(failed=True)
            raise
        self.end(failed=False)

    def begin(self, sql: str) -> None:
        try:
            self.run(sql)
        except BaseException:
            self._roll_back()
            raise
        self._begun = True

    def end(self, *, failed: bool) -> None:
        """Commit what was begun, or undo it if it failed."""
        try:
            if failed:
                self._roll_back()
            else:
                self._commit()
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._begun, self._lost = False, None

    def _commit(self) -> None:
        self.run("COMMIT")

    def _roll_back(self) -> None:
        if self.in_transaction:
            with suppress(StorageError):  # the first error is the one to tell
                self.run("ROLLBACK")

    @property
    def usable(self) -> bool:
        """Whether another transaction can begin here."""
        return not self.in_transaction

    @property
    @abstractmethod
    def in_transaction(self) -> bool: ...

    @abstractmethod
    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        """Run one statement; the database's errors come out as ``StorageError``."""

    @abstractmethod
    def close(self) -> None: ...
