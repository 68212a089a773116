"""A database connection and its transactions, as far as the databases agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from mqis.protocol.errors import DamagedStore, StorageError

P = TypeVar("P")
T = TypeVar("T")

#: The longest that a writer waits for another process.
BUSY_TIMEOUT_S = 10.0


class DatabaseConnection(Protocol):
    """A database connection: runs a statement, returns its rows, raises ``StorageError``."""

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]: ...

    def change(self, sql: str, parameters: Sequence[object]) -> int:
        """Runs a statement that returns no rows; returns the number of rows that it changed."""

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each row of parameters."""

    def report_damage(self, error: DamagedStore) -> None:
        """Reports to the store that its contents are damaged."""


def _silent(_text: str) -> None: ...


class DatabaseSession(ABC):
    """A ``DatabaseConnection`` that begins and ends transactions.

    A full disk or a lost server can end a transaction early. Each later statement would then commit
    on its own, so it is refused until the caller has ended the transaction.
    """

    def __init__(self) -> None:
        self._begun = False
        self._lost: StorageError | None = None
        #: Called with damage that is found in this session.
        self.on_damage: Callable[[str], None] = _silent

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        return self._attempt(self._execute, sql, parameters)

    def change(self, sql: str, parameters: Sequence[object]) -> int:
        return self._attempt(self._execute_change, sql, parameters)

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._attempt(self._execute_many, sql, rows)

    def _attempt(self, execute: Callable[[str, P], T], sql: str, parameters: P) -> T:
        """Runs a statement in one of three ways, unless the transaction is lost already."""
        if self._lost is not None:
            raise StorageError(f"{self._lost} (the whole transaction was rolled back)")
        try:
            return execute(sql, parameters)
        except StorageError as error:
            if isinstance(error, DamagedStore):
                self.report_damage(error)
            if self._begun and not self.in_transaction:
                self._lost = error
            raise

    def report_damage(self, error: DamagedStore) -> None:
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
        """Commits the transaction, or rolls it back if it failed."""
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
            with suppress(StorageError):  # the caller gets the first error
                self.run("ROLLBACK")

    @property
    def usable(self) -> bool:
        """Returns whether another transaction can begin in this session."""
        return not self.in_transaction

    @property
    @abstractmethod
    def in_transaction(self) -> bool: ...

    @abstractmethod
    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        """Runs one statement; converts the database's errors to ``StorageError``."""

    @abstractmethod
    def _execute_change(self, sql: str, parameters: Sequence[object]) -> int:
        """Runs a statement; returns the number of changed rows; converts errors likewise."""

    @abstractmethod
    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement for each row; converts errors likewise."""

    @abstractmethod
    def close(self) -> None: ...
