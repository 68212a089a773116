"""A store in PostgreSQL, for those who outgrow one file.

Its tables lie in the first schema of the connection's search_path, so one database can hold many
stores. An advisory lock makes writers of different processes take turns. ``synchronous_commit`` is
on: a commit returns after the server has flushed it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from math import ceil
from secrets import token_hex
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.abc import RV, PQGen
from psycopg.pq import Conninfo, TransactionStatus

from mqis.protocol.errors import DamagedStore, StorageError
from mqis.storage.database import DatabaseStore
from mqis.storage.postgres_watch import NoAnswer, Watch
from mqis.storage.session import BUSY_TIMEOUT_S, Session

#: "mqis": the first half of the advisory lock; the second is the schema that the tables lie in.
LOCK_CLASS = 0x6D716973
#: "mqiS": the same of the lock that a server holds for as long as it uses the store.
CLAIM_CLASS = 0x6D716953
_CLAIM = (
    f"SELECT pg_try_advisory_lock({CLAIM_CLASS}, oid::int) FROM pg_namespace "
    "WHERE nspname = current_schema()"
)
_CLAIMANT = (
    "SELECT coalesce(a.application_name, '') FROM pg_locks l JOIN pg_namespace n "
    f"ON l.classid::bigint = {CLAIM_CLASS} AND l.objid = n.oid AND n.nspname = current_schema() "
    "LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: How long a claim is waited for that the session of a server which just ended may still hold.
_CLAIM_WAIT_S, _CLAIM_PAUSE_S = 2.0, 0.1
#: A host that vanishes loses its claim after a minute, not after the two hours of the system.
_CLAIM_SETTINGS = (
    "SET tcp_keepalives_idle TO 30",
    "SET tcp_keepalives_interval TO 10",
    "SET tcp_keepalives_count TO 3",
)
#: The longest that a statement of a server may take where it does not hold the event loop.
LONG_S = 60.0

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
    "XX001": "the database is damaged: ",
    "XX002": "the database is damaged: ",
    "XX": "the database server failed: ",
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


#: Why a statement is not waited for any longer, given for how many seconds it was; None: it is.
Overdue = Callable[[float], NoAnswer | None]


def _patient(_seconds: float) -> NoAnswer | None:
    return None


def _bounded(waiting: PQGen[RV], overdue: Overdue) -> PQGen[RV]:
    """``waiting``, given up when ``overdue`` says so: psycopg looks in here ten times a second."""
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
    overdue: Overdue = staticmethod(_patient)

    def wait(self, gen: PQGen[RV], *args: Any, **options: Any) -> RV:
        if self.overdue is _patient:
            return super().wait(gen, *args, **options)
        return super().wait(_bounded(gen, self.overdue), *args, **options)


class _PostgresSession(Session):
    """A connection to the server, with psycopg's errors told in our words."""

    def __init__(self, parameters: dict[str, str], overdue: Overdue) -> None:
        super().__init__()
        self._place = _place(parameters)
        try:
            # Transactions are begun and ended by Session, never by psycopg.
            self._database = _BoundedConnection.connect("", autocommit=True, **parameters)  # type: ignore[arg-type]
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise StorageError(f"{self._place}: cannot connect: {reason}") from error
        self._database.overdue = overdue

    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        try:
            if not parameters:  # one round trip, and several statements may go together
                cursor = self._database.execute(sql.encode())
            else:
                cursor = self._database.execute(_rewritten(sql), parameters, binary=True)
            return [] if cursor.description is None else cursor.fetchall()
        except psycopg.Error as error:
            raise self._explained(error) from error
        except NoAnswer as error:
            self._database.close()  # what it would still answer is nobody's answer
            raise NoAnswer(f"{self._place}: {error}", error.reason) from None

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
        kind = DamagedStore if state in ("XX001", "XX002") else StorageError
        return kind(f"{self._place}: {reason}{primary}")


class PostgresStore(DatabaseStore):
    """``ports.Store`` on a server. A connection that breaks is replaced at the next use.

    With ``claim`` no other store is opened with a claim at the same place meanwhile: the claim is
    an advisory lock of the session that writes, so whoever has lost it cannot write either. With
    ``timeout_s`` nobody waits longer for a server that does not answer, and whoever holds an event
    loop half as long; see ``StoreCondition``.
    """

    BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # Under the lock, READ COMMITTED sees what the writer before has done, and nothing changes it.
    BEGIN_WRITE = (
        "BEGIN ISOLATION LEVEL READ COMMITTED; "
        f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, oid::int) FROM pg_namespace "
        "WHERE nspname = current_schema()"
    )
    BLOB = "BYTEA"

    def __init__(
        self, conninfo: str, *, claim: bool = False, timeout_s: float | None = None
    ) -> None:
        self._parameters = _parsed(conninfo)
        self._claims = claim
        self._timeout_s = timeout_s
        if timeout_s is not None and "connect_timeout" not in conninfo:
            self._parameters["connect_timeout"] = str(ceil(timeout_s))
        #: What other servers see of the session that holds our claim; it has 63 bytes at most.
        self._name = f"mqis {token_hex(4)}, process {os.getpid()} at {socket.gethostname()}"[:63]
        self._watch: Watch | None = None
        super().__init__()
        if timeout_s is not None:
            self._resume()
            self._watch = Watch(self.condition, self._connect_watch, self._ask, self._resume)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        super().close()

    # --- sessions ---------------------------------------------------------------------------------

    def _connect(self, overdue: Overdue | None = None) -> Session:
        bound = self._overdue if self._timeout_s is not None else _patient
        session = _PostgresSession(self._parameters, overdue or bound)
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

    def _connect_writer(self) -> Session:
        session = self._connect()
        if not self._claims:
            return session
        try:
            self._claim(session)
        except BaseException:
            session.close()
            raise
        return session

    def _claim(self, session: Session) -> None:
        session.run("SELECT set_config('application_name', ?, false)", (self._name,))
        for setting in _CLAIM_SETTINGS:
            session.run(setting)
        until = time.monotonic() + _CLAIM_WAIT_S
        while not session.run(_CLAIM)[0][0]:
            if time.monotonic() > until:
                raise self._taken(session)
            time.sleep(_CLAIM_PAUSE_S)

    def _taken(self, session: Session) -> NoAnswer:
        holders = [row[0] for row in session.run(_CLAIMANT) if row[0]]
        by = f" ({', '.join(holders)})" if holders else ""
        return NoAnswer(
            f"{_place(self._parameters)}: another server or command uses this store{by}; stop "
            "that one first: two of them would give the same numbers to different changes",
            "another server or command uses it",
        )

    # --- a server that hangs ----------------------------------------------------------------------

    def _overdue(self, seconds: float) -> NoAnswer | None:
        """Judge a statement by how long it may take, and by what is known of the server."""
        outage = self.condition.outage
        if outage is not None and outage.confirmed:
            return NoAnswer(outage.reason, outage.reason)
        assert self._timeout_s is not None
        limit = self._timeout_s / 2 if _holds_a_loop() else LONG_S
        if seconds <= limit or self._watch is None:
            return None
        reason = f"no answer within {limit:g} s"
        self.condition.suspect(reason)
        self._watch.wake()
        return NoAnswer(reason, reason)

    def _connect_watch(self) -> Session:
        limit = self._timeout_s
        assert limit is not None
        reason = f"no answer within {limit:g} s"
        late = NoAnswer(reason, reason)
        return self._connect(lambda seconds: late if seconds > limit else None)

    def _ask(self, session: Session) -> bool:
        """Return whether the claim is still ours; ``StorageError`` if it is somebody else's."""
        holders = [row[0] for row in session.run(_CLAIMANT)]
        if not self._claims or self._name in holders:
            return True
        if holders:
            raise self._taken(session)
        return False

    def _resume(self) -> None:
        """Take the claim again, and have sessions ready for whoever reads in an event loop."""
        with self.writing(), self.reading(), self.reading():
            pass

    # --- schema -----------------------------------------------------------------------------------

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


def _holds_a_loop() -> bool:
    """Return whether the calling thread runs an event loop, which stands still meanwhile."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
