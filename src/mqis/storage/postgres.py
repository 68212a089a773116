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
from math import ceil
from secrets import token_hex

from mqis.protocol.errors import StorageError
from mqis.storage.database import DatabaseStore
from mqis.storage.postgres_session import (
    NoAnswer,
    Overdue,
    PostgresSession,
    parsed,
    patient,
    place_of,
)
from mqis.storage.postgres_watch import Watch
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
        self._parameters = parsed(conninfo)
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
        bound = self._overdue if self._timeout_s is not None else patient
        session = PostgresSession(self._parameters, overdue or bound)
        try:
            if session.run("SELECT current_schema()")[0][0] is None:
                raise StorageError(
                    f"{place_of(self._parameters)}: no schema of its search_path exists"
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
            f"{place_of(self._parameters)}: another server or command uses this store{by}; stop "
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
        place = place_of(self._parameters)
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
