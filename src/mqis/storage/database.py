"""``ports.Store`` over a database: one writer, any number of readers, schema and check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from threading import Lock
from types import TracebackType
from typing import Any, ClassVar, Generic, TypeVar

from mqis.protocol.errors import DamagedStore, MissingStore, StorageError
from mqis.protocol.ports import Transaction, View
from mqis.storage.cache import NO_DATABASE, CachedView, QueryCache, Shelf
from mqis.storage.commits import CommitLog, NextCommit
from mqis.storage.condition import StoreCondition
from mqis.storage.database_session import DatabaseConnection, DatabaseSession
from mqis.storage.rowfaults import database_faults
from mqis.storage.schema import VERSION, migrate
from mqis.storage.sql_store import SqlTransaction, SqlView
from mqis.storage.watching import NotedView


class DatabaseStore(ABC):
    """A thread-safe store with one writer at a time. Subclasses add sessions and SQL dialect."""

    BEGIN_READ: ClassVar[str]
    BEGIN_WRITE: ClassVar[str]
    BLOB: ClassVar[str]
    #: True if a read may take as long as a network takes, so that an event loop should not wait.
    is_remote: ClassVar[bool] = False

    def __init__(self, *, create: bool = True, read_only: bool = False) -> None:
        """``create`` makes a missing store; ``read_only`` neither makes nor upgrades one."""
        self._create, self._read_only = create, read_only
        self._write_lock = Lock()
        self.condition = StoreCondition()
        self._commits = CommitLog()
        self._cache = QueryCache(self._commits)
        admit_reader, admit_writer = self.condition.admit_reader, self.condition.admit_writer
        self._readers = Pool(self._watched(self._connect), self.BEGIN_READ, admit_reader)
        self._writers = Pool(self._watched(self._connect_writer), self.BEGIN_WRITE, admit_writer)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Makes or migrates the tables, in one transaction; a store for reading is as it is."""
        with (self._readers if self._read_only else self._writers).transaction() as session:
            version = self._read_version(session)
            if not version and not self._create:
                raise MissingStore(f"{self._place}: there is no store in this database")
            if version < VERSION and self._read_only:
                raise StorageError(
                    f"{self._place}: has schema version {version}, this mqis reads {VERSION}; "
                    "copy it, then 'mqis store upgrade' or 'mqis serve' upgrades it"
                )
            if version != VERSION:
                migrate(session, version, self.BLOB)
                self._write_version(session, VERSION)

    @property
    @abstractmethod
    def _place(self) -> str:
        """The store's name in messages, without a password."""

    def read(self) -> AbstractContextManager[View]:
        return self._readers.lend(SqlView)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._writing() as (session, commit):
            transaction = SqlTransaction(session, commit.changed)
            yield transaction
            if self.condition.damage is not None:  # found by one of the operations just now
                self.condition.admit_writer()
            transaction.finish()  # which raises an error for damage that it finds itself

    @contextmanager
    def _writing(self) -> Iterator[tuple[DatabaseSession, NextCommit]]:
        with self._write_lock:
            with self._commits.next() as commit, self._writers.transaction() as session:
                yield session, commit
                self._count(session, commit)
            self._committed(commit)

    @abstractmethod
    def _count(self, session: DatabaseSession, commit: NextCommit) -> None:
        """Counts the commit: readers have caches that need to know what it changes."""

    @abstractmethod
    def _committed(self, commit: NextCommit) -> None:
        """Called after a commit, before the next one can begin."""

    @contextmanager
    def read_afresh(self) -> Iterator[View]:
        """Yields a view over a new connection, which has nothing in its cache."""
        with closing(self._connect()) as session, session.transaction(self.BEGIN_READ):
            yield SqlView(session)

    def reading(self) -> AbstractContextManager[DatabaseConnection]:
        """Returns a connection that sees one moment of the store, for copying rows."""
        return self._readers.transaction()

    @contextmanager
    def writing(self) -> Iterator[DatabaseConnection]:
        """Yields a connection with the write lock held; commits at the end."""
        with self._writing() as (session, commit):
            commit.changed.all()
            yield session

    # --- the memory of readers --------------------------------------------------------------------

    def cache_at_most(self, objects: int) -> None:
        """Sets the number of objects that the cache holds."""
        self._cache = QueryCache(self._commits, objects)

    @abstractmethod
    def moment(self, view: View | None = None) -> int:
        """The generation of a view, or of the last commit; -1: nothing is remembered now."""

    def remembered(self) -> AbstractContextManager[View]:
        """A view of what is in memory, which raises ``StoreUnavailable`` for everything else."""
        self.condition.admit_reader()
        return nullcontext(CachedView(NO_DATABASE, self._cache, self.moment()))

    def recall(
        self, question: Hashable, moment: int | None = None, *, stranger: bool = False
    ) -> Any:
        """The answer that a ``NotedView`` has remembered, if it is right then; else None."""
        self.condition.admit_reader()
        moment = self.moment() if moment is None else moment
        return self._cache.recall(self._shelf(stranger), question, moment)

    def watch(self, view: View, *, stranger: bool = False) -> NotedView:
        """A view of the same moment whose answers can be remembered."""
        assert isinstance(view, CachedView)
        return NotedView(view, self._shelf(stranger))

    def _shelf(self, stranger: bool) -> Shelf:
        return self._cache.strangers if stranger else self._cache.users

    # --- faults -----------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Runs the database's check, then compares rows with bodies, then checks the contents."""
        if self._readers.closed:
            raise StorageError("the store is closed")
        try:
            # A new connection, because a used one could answer from its cache.
            with closing(self._connect()) as session, session.transaction(self.BEGIN_READ):
                return self._damage(session) or list(dict.fromkeys(database_faults(session)))
        except StorageError as error:
            return [error.detail if isinstance(error, DamagedStore) else str(error)]

    def examine(self) -> None:
        """Looks for damage in the time of a few reads; raises ``DamagedStore`` if there is any."""
        with self.read() as view:
            view.partitions()

    def trouble(self) -> str | None:
        """The reason why the store cannot be used, in words that anybody may read."""
        return self.condition.trouble

    def close(self) -> None:
        """Waits for the writer, then closes every connection."""
        with self._write_lock:
            self._readers.close()
            self._writers.close()

    def _damage(self, session: DatabaseSession) -> list[str]:
        """The damage that the database itself finds."""
        return []

    @abstractmethod
    def _connect(self) -> DatabaseSession: ...

    def _connect_writer(self) -> DatabaseSession:
        return self._connect()

    def _watched(self, connect: Callable[[], DatabaseSession]) -> Callable[[], DatabaseSession]:
        """Wraps ``connect`` so that damage found by its sessions ends all writing."""

        def watched() -> DatabaseSession:
            session = connect()
            session.on_damage = self.condition.report_damage
            return session

        return watched

    @abstractmethod
    def _read_version(self, session: DatabaseSession) -> int:
        """The schema version; 0 if there are no tables yet."""

    @abstractmethod
    def _write_version(self, session: DatabaseSession, version: int) -> None: ...


# --- A pool of database sessions ------------------------------------------------------------------

T = TypeVar("T")

#: The most idle sessions; others are closed when they return, so that a burst leaves no load.
MAX_IDLE = 16


class Lent(Generic[T]):
    """A session in a transaction, for the duration of a ``with`` block.

    A class, because every read of a server uses it: a generator takes three times as long.
    """

    __slots__ = ("_pool", "_session", "_wrap")

    def __init__(self, pool: Pool, wrap: Callable[[DatabaseSession], T]) -> None:
        self._pool = pool
        self._wrap = wrap

    def __enter__(self) -> T:
        self._session = self._pool.begun()
        try:
            return self._wrap(self._session)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._session.end(failed=kind is not None)
        finally:
            self._pool.keep(self._session)


def _unchanged(session: DatabaseSession) -> DatabaseSession:
    return session


class Pool:
    """A pool that lends each session to one user at a time and closes those that fail."""

    def __init__(
        self, connect: Callable[[], DatabaseSession], begin: str, admit: Callable[[], None]
    ) -> None:
        """``admit`` raises ``StoreUnavailable`` if the store is known to be unusable."""
        self._connect = connect
        self._begin = begin
        self._admit = admit
        self._lock = Lock()
        self.idle: list[DatabaseSession] = []
        self.closed = False

    def transaction(self) -> Lent[DatabaseSession]:
        return self.lend(_unchanged)

    def lend(self, wrap: Callable[[DatabaseSession], T]) -> Lent[T]:
        """Lends a session, wrapped by ``wrap``, for one transaction."""
        return Lent(self, wrap)

    def begun(self) -> DatabaseSession:
        """A session in a new transaction. Sessions that died while idle are skipped."""
        self._admit()
        while (session := self._take()) is not None:
            try:
                session.begin(self._begin)
            except BaseException as error:
                died = isinstance(error, StorageError) and not session.usable
                self.keep(session)
                if not died:
                    raise
                self._admit()
            else:
                return session
        session = self._connect()
        try:
            session.begin(self._begin)
        except BaseException:
            session.close()
            raise
        return session

    @contextmanager
    def idle_session(self) -> Iterator[DatabaseSession | None]:
        """Lends an idle session without a transaction; None if there is none, or it may be dead."""
        self._admit()
        session = self._take()
        try:
            yield session
        finally:
            if session is not None:
                self.keep(session)

    def _take(self) -> DatabaseSession | None:
        with self._lock:
            if self.closed:
                raise StorageError("the store is closed")
            return self.idle.pop() if self.idle else None

    def keep(self, session: DatabaseSession) -> None:
        with self._lock:
            keep = session.usable and not self.closed and len(self.idle) < MAX_IDLE
            if keep:
                self.idle.append(session)
        if not keep:
            session.close()

    def close(self) -> None:
        """Closes idle sessions now, and others when they return."""
        with self._lock:
            self.closed = True
            for session in self.idle:
                session.close()
            self.idle.clear()
