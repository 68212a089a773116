"""A session with a PostgreSQL server: parameters, time limits, error messages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, TransactionStatus

from mqis.protocol.errors import DamagedStore, StorageError, StoreUnavailable
from mqis.storage.database_session import DatabaseSession

#: Without these, a host that vanishes silently would block a session for hours.
_CONNECTION_DEFAULTS = {
    "application_name": "mqis",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
#: Explanations and advice, by the start of the SQLSTATE.
_EXPLAINED = {
    "53100": "no room left on the server, nothing was written; free some space and retry: ",
    "25006": "the server is read-only, nothing was written; name a writable one: ",
    "25P02": "an earlier statement failed outside a savepoint, nothing was written: ",
    "55P03": "another process is writing; stop it or retry: ",
    "23505": "the identifier or name is already in the store: ",
    "42501": "this user has no permission for that; check its privileges: ",
    "42P01": "its tables are gone: ",
    "XX001": "the database is damaged: ",
    "XX002": "the database is damaged: ",
    "XX": "the database server failed: ",
    "58": "the server's disk failed, nothing was written: ",
    "57P": "the server went away, nothing was written; the next use reconnects: ",
    "08": "the server went away, nothing was written; the next use reconnects: ",
}


class NoAnswer(StoreUnavailable):
    """A store cannot be used now; ``reason`` says why, without names."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def parsed(conninfo: str) -> dict[str, str]:
    """The parsed parameters and the defaults. Errors never quote the connection string."""
    given: dict[str, Any] = {}
    with suppress(psycopg.Error):
        given = conninfo_to_dict(conninfo)
    # A password with an unescaped @ in a URL becomes part of the host, and would be shown as such.
    if not given or "@" in str(given.get("host", ""))[1:]:
        raise StorageError(
            "the PostgreSQL connection string cannot be parsed; write host=... port=... "
            "dbname=... user=... with ' around values that have spaces, or postgresql://user@host/"
            "database with @ in a password as %40"
        )
    return {**_CONNECTION_DEFAULTS, **{key: str(value) for key, value in given.items()}}


def place_of(parameters: dict[str, str]) -> str:
    """The database, host and port in words; never user or password."""
    options = Conninfo.get_defaults()
    known = {o.keyword.decode(): o.val.decode() for o in options if o.val is not None} | parameters
    host = known.get("host") or known.get("hostaddr") or "the local socket"
    database = known.get("dbname") or known.get("user", "")
    return f"PostgreSQL database {database} at {host}, port {known.get('port', '5432')}"


@lru_cache(maxsize=256)
def _rewritten(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


#: Returns the error that ends a statement's wait of so many seconds; None to go on waiting.
Overdue = Callable[[float], NoAnswer | None]


def never_overdue(_seconds: float) -> NoAnswer | None:
    return None


def _bounded(waiting: PQGen[RV], overdue: Overdue) -> PQGen[RV]:
    """Waits until ``overdue`` returns an error: psycopg resumes this ten times a second."""
    began = time.monotonic()
    try:
        ready = yield next(waiting)
        while True:
            reason = overdue(time.monotonic() - began)
            if reason is not None:
                raise reason
            ready = yield waiting.send(ready)
    except StopIteration as done:
        value: RV = done.value
        return value


class _BoundedConnection(psycopg.Connection[Any]):
    overdue: Overdue = staticmethod(never_overdue)

    def wait(self, gen: PQGen[RV], *args: Any, **options: Any) -> RV:
        if self.overdue is never_overdue:
            return super().wait(gen, *args, **options)
        return super().wait(_bounded(gen, self.overdue), *args, **options)


#: The address as libpq writes it into an error, behind the one that this side names.
_PLACE_AGAIN = re.compile(r'(connection failed: )?connection to server at "[^"]*"[^:]* failed: ')


class PostgresSession(DatabaseSession):
    """A connection to the server that explains psycopg's errors."""

    def __init__(self, parameters: dict[str, str], overdue: Overdue) -> None:
        super().__init__()
        self._place = place_of(parameters)
        try:
            # Session begins and ends transactions, never psycopg.
            self._database = _BoundedConnection.connect("", autocommit=True, **parameters)  # type: ignore[arg-type]
        except psycopg.Error as error:
            reason = _PLACE_AGAIN.sub("", " ".join(str(error).split()))
            raise StorageError(f"{self._place}: cannot connect: {reason}") from error
        self._database.overdue = overdue

    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        with self._explaining():
            if not parameters:  # one round trip, and several statements may go together
                cursor = self._database.execute(sql.encode())
            else:
                cursor = self._database.execute(_rewritten(sql), parameters, binary=True)
            return [] if cursor.description is None else cursor.fetchall()

    def _execute_change(self, sql: str, parameters: Sequence[object]) -> int:
        with self._explaining():
            return self._database.execute(_rewritten(sql), parameters, binary=True).rowcount

    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._explaining(), self._database.cursor(binary=True) as cursor:
            cursor.executemany(_rewritten(sql), rows)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._explained(error) from error
        except NoAnswer as error:
            self._database.close()  # a late answer would be taken for that of the next statement
            raise NoAnswer(f"{self._place}: {error}", error.reason) from None

    def _commit(self) -> None:
        # COMMIT after a failed statement rolls back without an error.
        if self._status is TransactionStatus.INERROR:
            raise StorageError(f"{self._place}: {_EXPLAINED['25P02']}rolled back")
        try:
            super()._commit()
        except StorageError as error:
            if self._database.closed:
                raise StorageError(
                    f"{self._place}: the server went away during the commit; it is unknown whether "
                    "the changes were made, so check before repeating them"
                ) from error
            raise

    @property
    def _status(self) -> TransactionStatus:
        return self._database.info.transaction_status

    @property
    def in_transaction(self) -> bool:
        return self._status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    @property
    def usable(self) -> bool:
        return self._status is TransactionStatus.IDLE

    def close(self) -> None:
        self._database.close()

    def _explained(self, error: psycopg.Error) -> StorageError:
        state = error.sqlstate or ("08" if self._database.closed else "")
        reason = next((text for key, text in _EXPLAINED.items() if state.startswith(key)), "")
        primary = error.diag.message_primary or " ".join(str(error).split())
        kind = DamagedStore if state in ("XX001", "XX002") else StorageError
        return kind(f"{self._place}: {reason}{primary}")
