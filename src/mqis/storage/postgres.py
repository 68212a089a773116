"""A store in PostgreSQL, for directories that outgrow one file.

Its tables are in the first schema of the connection's search_path, so one database can hold many
stores. An advisory lock keeps writers of different processes apart. ``synchronous_commit`` is on:
a commit returns after the server has flushed it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import ceil
from secrets import token_hex
from threading import Event, Thread
from typing import Any, TypeVar

from mqis.protocol.errors import StorageError, StoreUnavailable
from mqis.protocol.ports import View
from mqis.storage.cache import CachedView, KeepingView, SeenCommit
from mqis.storage.commits import NextCommit
from mqis.storage.condition import UNREACHABLE, StoreCondition
from mqis.storage.database import DatabaseStore
from mqis.storage.database_session import BUSY_TIMEOUT_S, DatabaseSession
from mqis.storage.postgres_session import (
    NoAnswer,
    Overdue,
    PostgresSession,
    never_overdue,
    parsed,
    place_of,
)
from mqis.texts import counted, duration

T = TypeVar("T")

#: "mqis", the first half of the advisory lock's key; the second is the schema of the tables.
LOCK_CLASS = 0x6D716973
#: "mqiS", likewise for the lock that a server holds for as long as it uses the store.
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
#: The time to wait for a claim that the session of a server which just ended may still hold.
_CLAIM_WAIT_S, _CLAIM_PAUSE_S = 2.0, 0.1
#: A host that vanishes loses its claim after a minute instead of the system's two hours.
_CLAIM_SETTINGS = (
    "SET tcp_keepalives_idle TO 30",
    "SET tcp_keepalives_interval TO 10",
    "SET tcp_keepalives_count TO 3",
)
#: The time for which a claim is believed, which is looked for more often.
ALONE_S = 2.0
#: The longest that a server's statement may take outside an event loop.
LONG_S = 60.0

_SETTINGS = (
    "SET synchronous_commit TO on",
    f"SET lock_timeout TO '{BUSY_TIMEOUT_S:g}s'",
    "SELECT set_config('search_path', quote_ident(current_schema()), false)",
)
#: If one of these exists without ``mqis_schema``, the schema belongs to another application.
_TABLES = {
    "objects",
    "tombstones",
    "partitions",
    "lookup_keys",
    "states",
    "outbox",
    "outbox_last",
    "commits",
    "creators",
}


class PostgresStore(DatabaseStore):
    """A ``ports.Store`` on a server. A broken connection is replaced at the next use.

    With ``claim`` no other store can be opened with a claim on the same schema. The claim is an
    advisory lock of the writing session, so a server that lost it cannot write either. So nobody
    else changes what is remembered of reads; as soon as the claim is lost, or nobody knows, nothing
    is told from memory. A server never writes without a claim. With
    ``timeout_s`` no caller waits longer for a server that does not answer, and one that blocks an
    event loop waits half as long; see ``StoreCondition``.
    """

    BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # Under the lock, READ COMMITTED sees the previous writer's changes, and nobody makes others.
    BEGIN_WRITE = (
        "BEGIN ISOLATION LEVEL READ COMMITTED; "
        f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, oid::int) FROM pg_namespace "
        "WHERE nspname = current_schema()"
    )
    BLOB = "BYTEA"
    is_remote = True

    def __init__(
        self,
        conninfo: str,
        *,
        create: bool = True,
        read_only: bool = False,
        claim: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        self._parameters = parsed(conninfo)
        self._claims = claim
        self._timeout_s = timeout_s
        if timeout_s is not None and "connect_timeout" not in conninfo:
            self._parameters["connect_timeout"] = str(ceil(timeout_s))
        #: The session name by which other servers see this claim; PostgreSQL allows 63 bytes.
        self._name = f"mqis {token_hex(4)}, process {os.getpid()} at {socket.gethostname()}"[:63]
        self._watch: PostgresWatch | None = None
        #: Until then no other process can have the claim, by this process's clock.
        self._alone_until = 0.0
        super().__init__(create=create, read_only=read_only)
        if timeout_s is not None:
            self._reopen_sessions()
            self._watch = PostgresWatch(
                self.condition, self._connect_watch, self._still_claimed, self._reopen_sessions
            )

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        super().close()

    # --- the memory of readers --------------------------------------------------------------------

    def read(self) -> AbstractContextManager[View]:
        return self._readers.lend(self._keeping_view)

    def _keeping_view(self, session: DatabaseSession) -> KeepingView:
        """The view of a transaction, whose moment is that of its first statement."""
        return KeepingView(session, self._cache, self.moment())

    def ask(self, question: Callable[[View], T]) -> T:
        """The result of a function over a view.

        Most functions read one object. So the first statement is sent without a transaction, which
        would cost two more ways to the server. If there is a second one, or the session is dead,
        the function is called again, over a transaction.
        """
        with self._readers.idle_session() as session:
            if session is not None:
                once = _FirstStatement(session)
                try:
                    return question(KeepingView(once, self._cache, self.moment()))
                except StorageError:
                    if session.usable and not once.is_over:
                        raise
        with self.read() as view:
            return question(view)

    def moment(self, view: View | None = None) -> int:
        """The generation of a view, or of the last commit while nobody else can make one."""
        if isinstance(view, CachedView):
            return view.generation
        return self._cache.generation if time.monotonic() < self._alone_until else -1

    @contextmanager
    def _writing(self) -> Iterator[tuple[DatabaseSession, NextCommit]]:
        commit: NextCommit | None = None
        try:
            with super()._writing() as (session, commit):
                yield session, commit
        except BaseException:
            if commit is not None and commit.number:  # it may have been made all the same
                self._cache.start_over()
            raise

    def _count(self, session: DatabaseSession, commit: NextCommit) -> None:
        commit.take(self._cache.next_number())

    def _committed(self, commit: NextCommit) -> None:
        if commit.number:
            self._cache.enter(SeenCommit(commit.number, self._commits.writer))

    # --- sessions ---------------------------------------------------------------------------------

    def _connect(self, overdue: Overdue | None = None) -> DatabaseSession:
        bound = self._overdue if self._timeout_s is not None else never_overdue
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

    def _connect_writer(self) -> DatabaseSession:
        session = self._connect()
        if not self._claims:
            return session
        try:
            self._claim(session)
        except BaseException:
            session.close()
            raise
        self._cache.start_over()  # another one may have had the claim meanwhile
        return session

    def _claim(self, session: DatabaseSession) -> None:
        session.run("SELECT set_config('application_name', ?, false)", (self._name,))
        for setting in _CLAIM_SETTINGS:
            session.run(setting)
        until = time.monotonic() + _CLAIM_WAIT_S
        while not session.run(_CLAIM)[0][0]:
            if time.monotonic() > until:
                raise self._claimed_elsewhere(session)
            time.sleep(_CLAIM_PAUSE_S)

    def _claimed_elsewhere(self, session: DatabaseSession) -> NoAnswer:
        holders = [row[0] for row in session.run(_CLAIMANT) if row[0]]
        by = f" ({', '.join(holders)})" if holders else ""
        return NoAnswer(
            f"{place_of(self._parameters)}: another server or command uses this store{by}; stop "
            "that one first: two of them would give the same numbers to different changes",
            "another server or command uses it",
        )

    # --- a server that hangs ----------------------------------------------------------------------

    def _overdue(self, seconds: float) -> NoAnswer | None:
        """Decides whether a statement has taken too long, given what is known of the server."""
        outage = self.condition.outage
        if outage is not None and outage.confirmed:
            return NoAnswer(outage.reason, outage.reason)
        assert self._timeout_s is not None
        limit = self._timeout_s / 2 if _blocks_event_loop() else LONG_S
        if seconds <= limit or self._watch is None:
            return None
        reason = f"no answer within {duration(limit)}"
        self.condition.suspect_outage(reason)
        self._watch.wake()
        return NoAnswer(reason, reason)

    def _connect_watch(self) -> DatabaseSession:
        limit = self._timeout_s
        assert limit is not None
        reason = f"no answer within {duration(limit)}"
        late = NoAnswer(reason, reason)
        return self._connect(lambda seconds: late if seconds > limit else None)

    def _still_claimed(self, session: DatabaseSession) -> bool:
        """Returns whether this store still has its claim; ``StorageError`` if another has it."""
        looked = time.monotonic()
        holders = [row[0] for row in session.run(_CLAIMANT)]
        if not self._claims:
            return True
        if self._name in holders:
            self._alone_until = looked + ALONE_S
            return True
        self._alone_until = 0.0
        if holders:
            raise self._claimed_elsewhere(session)
        return False

    def _reopen_sessions(self) -> None:
        """Takes the claim again and opens sessions in advance for readers in an event loop."""
        with self.writing(), self.reading(), self.reading():
            pass

    # --- schema -----------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return place_of(self._parameters)

    def _read_version(self, session: DatabaseSession) -> int:
        place = place_of(self._parameters)
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        tables = {row[0] for row in session.run(sql)}
        if "mqis_schema" in tables:
            found = [row[0] for row in session.run("SELECT version FROM mqis_schema")]
            if len(found) != 1:
                raise StorageError(
                    f"{place}: mqis_schema has {counted(len(found), 'row')} instead of one"
                )
            return int(found[0])
        taken = sorted(tables & _TABLES)
        if taken:
            raise StorageError(
                f"{place}: {', '.join(taken)} belong to something else; name another database, "
                "or another schema with options='-c search_path=...'"
            )
        return 0

    def _write_version(self, session: DatabaseSession, version: int) -> None:
        session.run("CREATE TABLE IF NOT EXISTS mqis_schema (version INTEGER NOT NULL)")
        session.run("DELETE FROM mqis_schema")
        session.run("INSERT INTO mqis_schema (version) VALUES (?)", (version,))


class _FirstStatement:
    """A connection for one statement, which sees a moment of its own."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
        self._is_free = True
        #: True if there was a second statement, which was not run.
        self.is_over = False
        self.change, self.run_many = session.change, session.run_many
        self.report_damage = session.report_damage

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        if not self._is_free:
            self.is_over = True
            raise StoreUnavailable("a second statement needs a transaction")
        self._is_free = False
        return self._session.run(sql, parameters)


def _blocks_event_loop() -> bool:
    """Returns whether the calling thread runs an event loop, which a wait would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# --- A thread that asks a PostgreSQL server every half second whether it answers ------------------
# It has its own session, so that it can tell a server that hangs (no answer to anything) from a
# slow statement. While the server hangs, the thread goes on trying without blocking anybody.

#: The time between two checks.
PAUSE_S = 0.5
#: The longest that ``close`` waits for the thread, which may be connecting.
_CLOSE_S = 0.5


class PostgresWatch:
    """Checks the server until closed, and reports the results to ``condition``.

    ``connect`` makes a session whose statements time out. ``check`` returns whether the store is as
    this process left it, and raises ``StorageError`` if it must not be used. ``resume`` makes it
    usable again.
    """

    def __init__(
        self,
        condition: StoreCondition,
        connect: Callable[[], DatabaseSession],
        check: Callable[[DatabaseSession], bool],
        resume: Callable[[], None],
    ) -> None:
        self._condition = condition
        self._connect = connect
        self._check = check
        self._resume = resume
        self._session: DatabaseSession | None = None
        self._woken = Event()
        self._closing = False
        self._thread = Thread(target=self._run, name="mqis-store-watch", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Checks now, because a call got no answer."""
        self._woken.set()

    def close(self) -> None:
        """Stops the thread; does not wait for one that is blocked by a hanging server."""
        self._closing = True
        self._woken.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closing:
            self._check_server()
            self._woken.wait(PAUSE_S)
            self._woken.clear()
        self._close_session()

    def _check_server(self) -> None:
        try:
            if self._session is None:
                self._session = self._connect()
            ready = self._check(self._session)
            if self._condition.outage is not None or not ready:
                self._condition.report_recovery()
                self._resume()
        except StorageError as error:
            self._close_session()
            if not self._closing:
                self._condition.report_outage(_public_reason(error), str(error))

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _public_reason(error: StorageError) -> str:
    return error.reason if isinstance(error, NoAnswer) else UNREACHABLE
