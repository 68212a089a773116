"""A store in PostgreSQL, for those who outgrow one file.

Its tables lie in the first schema of the connection's search_path, so one database can hold many
stores. An advisory lock makes writers of different processes take turns. ``synchronous_commit`` is
on: a commit returns after the server has flushed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, TransactionStatus

from mqis.protocol.errors import StorageError
from mqis.storage.database import DatabaseStore
from mqis.storage.session import BUSY_TIMEOUT_S, Session

#: "mqis": the first half of the advisory lock; the second is the schema that the tables lie in.
LOCK_CLASS = 0x6D716973

_SETTINGS = (
    "SET synchronous_commit TO on",
    f"SET lock_timeout TO '{BUSY_TIMEOUT_S:g}s'",
    "SELECT set_config('search_path', quote_ident(current_schema()), false)",
)
#: Where one of these is without ``mqis_schema``, the schema is somebody else's.
_TABLES = {
    "objects",
    "tombstones",
    "partitions",
    "lookup_keys",
    "states",
    "outbox",
    "outbox_last",
}
#: Without these a host that vanishes without a word stops us for hours.
_CONNECTION_DEFAULTS = {
    "application_name": "mqis",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
#: By the start of the SQLSTATE: what to tell and what to do.
_EXPLAINED = {
    "53100": "no room left on the server, nothing was written; free some space and try again: ",
    "25006": "the server is read-only, nothing was written; name one that takes changes: ",
    "25P02": "an earlier statement failed outside a savepoint, nothing was written: ",
    "55P03": "another process is writing; stop it or try again: ",
    "23505": "identifier or name is in the store already: ",
    "42501": "this user may not do that; check its privileges: ",
    "42P01": "its tables are gone: ",
    "XX": "the database is damaged; restore it from an export: ",
    "58": "the server's disk failed, nothing was written: ",
    "57P": "the server went away, nothing was written; the next use connects again: ",
    "08": "the server went away, nothing was written; the next use connects again: ",
}


def _parsed(conninfo: str) -> dict[str, str]:
    """The parameters, ours where the caller names none. Errors never quote what was given."""
    given: dict[str, Any] = {}
    with suppress(psycopg.Error):
        given = conninfo_to_dict(conninfo)
    # A password with an unescaped @ in a URL ends up in the host, and would be shown as such.
    if not given or "@" in str(given.get("host", ""))[1:]:
        raise StorageError(
            "the PostgreSQL connection string cannot be understood; write host=... port=... "
            "dbname=... user=... with ' around values that hold spaces, or postgresql://user@host/"
            "database with @ in a password as %40"
        )
    return {**_CONNECTION_DEFAULTS, **{key: str(value) for key, value in given.items()}}


def _place(parameters: dict[str, str]) -> str:
    """Database, host and port as people know them; never user or password."""
    options = Conninfo.get_defaults()
    known = {o.keyword.decode(): o.val.decode() for o in options if o.val is not None} | parameters
    host = known.get("host") or known.get("hostaddr") or "the local socket"
    database = known.get("dbname") or known.get("user", "")
    return f"PostgreSQL database {database} at {host}, port {known.get('port', '5432')}"


@lru_cache(maxsize=256)
def _rewritten(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class _PostgresSession(Session):
    """A connection to the server, with psycopg's errors told in our words."""

    def __init__(self, parameters: dict[str, str]) -> None:
        super().__init__()
        self._place = _place(parameters)
        try:
            # Transactions are begun and ended by Session, never by psycopg.
            self._database = psycopg.connect("", autocommit=True, **parameters)  # type: ignore[arg-type]
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise StorageError(f"{self._place}: cannot connect: {reason}") from error

    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        try:
            if not parameters:  # one round trip, and several statements may go together
                cursor = self._database.execute(sql.encode())
            else:
                cursor = self._database.execute(_rewritten(sql), parameters, binary=True)
            return [] if cursor.description is None else cursor.fetchall()
        except psycopg.Error as error:
            raise self._explained(error) from error

    def _commit(self) -> None:
        # COMMIT of a transaction in which a statement failed rolls back, and does not complain.
        if self._status is TransactionStatus.INERROR:
            raise StorageError(f"{self._place}: {_EXPLAINED['25P02']}rolled back")
        try:
            super()._commit()
        except StorageError as error:
            if self._database.closed:
                raise StorageError(
                    f"{self._place}: the server went away during the commit; whether it was "
                    "done is not known, so look before repeating it"
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
        return StorageError(f"{self._place}: {reason}{primary}")


class PostgresStore(DatabaseStore):
    """``ports.Store`` on a server. A connection that breaks is replaced at the next use."""

    BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # Under the lock, READ COMMITTED sees what the writer before has done, and nothing changes it.
    BEGIN_WRITE = (
        "BEGIN ISOLATION LEVEL READ COMMITTED; "
        f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, oid::int) FROM pg_namespace "
        "WHERE nspname = current_schema()"
    )
    BLOB = "BYTEA"

    def __init__(self, conninfo: str) -> None:
        self._parameters = _parsed(conninfo)
        super().__init__()

    def _connect(self) -> Session:
        session = _PostgresSession(self._parameters)
        try:
            if session.run("SELECT current_schema()")[0][0] is None:
                raise StorageError(
                    f"{_place(self._parameters)}: no schema of its search_path exists"
                )
            for setting in _SETTINGS:
                session.run(setting)
        except BaseException:
            session.close()
            raise
        return session

    def _read_version(self, session: Session) -> int:
        place = _place(self._parameters)
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        tables = {row[0] for row in session.run(sql)}
        if "mqis_schema" in tables:
            found = [row[0] for row in session.run("SELECT version FROM mqis_schema")]
            if len(found) != 1:
                raise StorageError(f"{place}: mqis_schema has {len(found)} rows instead of one")
            return int(found[0])
        taken = sorted(tables & _TABLES)
        if taken:
            raise StorageError(
                f"{place}: holds {', '.join(taken)} of something else; name another database, or "
                "another schema with options='-c search_path=...'"
            )
        return 0

    def _write_version(self, session: Session, version: int) -> None:
        session.run("CREATE TABLE IF NOT EXISTS mqis_schema (version INTEGER NOT NULL)")
        session.run("DELETE FROM mqis_schema")
        session.run("INSERT INTO mqis_schema (version) VALUES (?)", (version,))
