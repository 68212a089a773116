"""The default store: one SQLite file.

It uses a write-ahead log with ``synchronous=FULL``: a commit returns after its log frames are
flushed, so committed changes survive the loss of the process and of the machine.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, cast

from mqis.files import system_reason
from mqis.protocol.errors import DamagedStore, MissingStore, StorageError
from mqis.protocol.ports import View
from mqis.storage.cache import CachedView, SeenCommit
from mqis.storage.commits import NextCommit, last_commit
from mqis.storage.database import DatabaseStore
from mqis.storage.database_session import BUSY_TIMEOUT_S, DatabaseSession

#: "mqis" in the file's header (PRAGMA application_id), which identifies a store.
APPLICATION_ID = 0x6D716973

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    # macOS: its fsync leaves data in the drive's cache, this one does not. No effect elsewhere.
    "PRAGMA fullfsync=ON",
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA cache_size=-65536",
    "PRAGMA foreign_keys=ON",
)
#: The settings for reading; the mode of the file's journal is part of the file.
_READING = ("PRAGMA query_only=ON", "PRAGMA cache_size=-65536")
#: Explanations and advice, by the start of SQLite's name for the error.
_EXPLAINED = {
    "SQLITE_FULL": "no room left, nothing was written; free some space and retry: ",
    "SQLITE_READONLY": "the file is read-only, nothing was written; check its owner and mode: ",
    "SQLITE_CANTOPEN": "cannot be opened; check that it exists and is writable: ",
    "SQLITE_BUSY": "another process is writing; stop it or retry: ",
    "SQLITE_NOTADB": "is not an mqis store, or its beginning is damaged: ",
    "SQLITE_CORRUPT": "the file is damaged: ",
    "SQLITE_IOERR": "the disk failed, nothing was written: ",
}


#: The starts of SQLite's names for damage.
_DAMAGE = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_IOERR_CORRUPTFS")
#: The time for the damage check when a server starts, and the SQLite steps between two clock reads.
EXAMINE_S = 2.0
_STEPS = 10_000


class _SqliteSession(DatabaseSession):
    """A connection to the file that explains sqlite3's errors."""

    def __init__(self, path: Path, mode: str, timeout_s: float = BUSY_TIMEOUT_S) -> None:
        super().__init__()
        self._path = path
        self._version = self._rows_before = 0
        self._seen = SeenCommit(0, b"")
        try:
            self._database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=timeout_s,
                isolation_level=None,  # Session begins and ends transactions, sqlite3 does not
                check_same_thread=False,  # the pool lends each connection to one user at a time
                cached_statements=256,
            )
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _execute(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        try:
            return self._database.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _execute_change(self, sql: str, parameters: Sequence[object]) -> int:
        try:
            return self._database.execute(sql, parameters).rowcount
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        try:
            self._database.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def look(self) -> SeenCommit:
        """The last commit that this transaction sees.

        ``data_version`` changes when another connection, of any process, has committed.
        """
        version: int = self.run("PRAGMA data_version")[0][0]
        if version == self._version:
            return self._seen
        number, writer = last_commit(self)
        uncounted = not self._version or number == self._seen.number
        self._version, self._seen = version, SeenCommit(number, writer)
        return SeenCommit(number, writer, uncounted)

    def has_news(self) -> bool:
        """Returns whether there is a commit since the last look; needs no transaction."""
        return bool(self.run("PRAGMA data_version")[0][0] != self._version)

    def begin(self, sql: str) -> None:
        super().begin(sql)
        self._rows_before = self._database.total_changes

    @property
    def has_changed(self) -> bool:
        """True if this transaction has changed a row."""
        return self._database.total_changes != self._rows_before

    def run_until(self, sql: str, deadline: float) -> list[Any]:
        """The rows of ``sql``; none if the deadline passes first."""
        self._database.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        try:
            return self._database.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
                return []
            raise self._explained(error) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error
        finally:
            self._database.set_progress_handler(None, 0)

    @property
    def in_transaction(self) -> bool:
        return self._database.in_transaction

    def close(self) -> None:
        self._database.close()

    def _explained(self, error: sqlite3.Error) -> StorageError:
        code = getattr(error, "sqlite_errorname", "")
        reason = next((text for key, text in _EXPLAINED.items() if code.startswith(key)), "")
        kind = DamagedStore if code.startswith(_DAMAGE) else StorageError
        return kind(f"{self._path}: {reason}{error}")


class SqliteStore(DatabaseStore):
    """A ``ports.Store`` in a file. Closing it merges the log into the file."""

    BEGIN_READ = "BEGIN"
    BEGIN_WRITE = "BEGIN IMMEDIATE"
    BLOB = "BLOB"

    def __init__(self, path: str | Path, *, create: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        try:
            if create:
                make_private(self.path)
            elif not self.path.exists():
                raise MissingStore(f"{self.path}: there is no store")
        except OSError as error:  # a directory on its path may not be searched
            raise StorageError(f"{self.path}: cannot be opened: {system_reason(error)}") from error
        #: A connection of its own that looks for commits, and its last generation.
        self._watching = Lock()
        self._lookout: _SqliteSession | None = None
        self._generation = -1
        super().__init__(create=create, read_only=read_only)
        self._create = False  # a file that vanishes later is an error; do not create a new store
        #: The file that is open; another one may get its name.
        self._file = _file_at(self.path)

    def read(self) -> AbstractContextManager[View]:
        return self._readers.lend(self._cached_view)

    def _cached_view(self, session: DatabaseSession) -> CachedView:
        assert isinstance(session, _SqliteSession)
        return CachedView(session, self._cache, self._cache.enter(session.look()))

    def moment(self, view: View | None = None) -> int:
        """The generation of a view, or of the last commit, for which no transaction is needed."""
        if isinstance(view, CachedView):
            return view.generation
        with self._watching:
            lookout = self._lookout
            if lookout is None or lookout.has_news() or self._generation != self._cache.generation:
                self._generation = self._look_out()
            return self._generation

    def _look_out(self) -> int:
        if self._readers.closed:
            raise StorageError("the store is closed")
        if self._lookout is None:
            self._lookout = cast(_SqliteSession, self._watched(self._connect)())
        with self._lookout.transaction(self.BEGIN_READ):
            return self._cache.enter(self._lookout.look())

    def close(self) -> None:
        """Closes every connection; the file then has all commits, even if another process reads."""
        if not self._read_only and has_log(self.path):
            with suppress(StorageError), closing(self._connect()) as session:
                session.run("PRAGMA wal_checkpoint(PASSIVE)")
        super().close()
        with self._watching:
            if self._lookout is not None:
                self._lookout.close()
                self._lookout = None

    def _count(self, session: DatabaseSession, commit: NextCommit) -> None:
        """Counts the commit unless it is empty: a number would have to be written and flushed."""
        assert isinstance(session, _SqliteSession)
        if session.has_changed:
            self._look_for_file()
            self.condition.admit_writer()
            commit.count(session)

    def _committed(self, commit: NextCommit) -> None:
        """Readers look for commits themselves, since other processes make some, too."""

    def trouble(self) -> str | None:
        self._look_for_file()
        return super().trouble()

    def _look_for_file(self) -> None:
        """Ends all writing if the file was removed or replaced: commits to it would be lost."""
        try:
            there = _file_at(self.path)
        except OSError:  # it may not be looked for any more, but it may be there
            return
        if self._file is not None and there != self._file:
            what = "removed" if there is None else "replaced by another one"
            self.condition.report_damage(f"{self.path}: the file was {what}", f"gone ({what})")

    def copy_to(self, path: Path) -> None:
        """Copies the current store to a new file, without blocking others."""
        with closing(self._connect()) as session:
            try:
                make_private(path)
                session.run("PRAGMA query_only=OFF")  # it would refuse to write the copy too
                session.run("VACUUM INTO ?", (str(path),))
            except StorageError as error:
                path.unlink(missing_ok=True)
                raise StorageError(f"the copy {path} cannot be made: {error}") from error

    def _connect(self) -> DatabaseSession:
        session = _SqliteSession(self.path, self._mode())
        try:
            _recognise(session, self.path, create=self._create)
            for pragma in _READING if self._read_only else _PRAGMAS:
                session.run(pragma)
        except BaseException:
            session.close()
            raise
        return session

    def _mode(self) -> str:
        """The mode of SQLite.

        A store that a crashed server left is read in the mode "ro": closing it in another one
        would move its write-ahead log into the file. In that mode nothing is tidied up either, so a
        store without such a log is not opened in it. In a directory that is not writable no log can
        be made; if nobody else has made one, the file cannot change while it is read.
        """
        if self._create:
            return "rwc"
        if not self._read_only:
            return "rw"
        if os.access(
            self.path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            return "ro" if has_log(self.path) else "rw"
        beside = (self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm"))
        return "ro" if any(file.exists() for file in beside) else "ro&immutable=1"

    @property
    def _place(self) -> str:
        return str(self.path)

    def _read_version(self, session: DatabaseSession) -> int:
        version: int = session.run("PRAGMA user_version")[0][0]
        return version

    def _write_version(self, session: DatabaseSession, version: int) -> None:
        session.run(f"PRAGMA application_id={APPLICATION_ID}")
        session.run(f"PRAGMA user_version={version}")

    def examine(self) -> None:
        """Runs SQLite's quick check for at most two seconds: 30 MB take about 0.1 s."""
        with closing(self._connect()) as session:
            assert isinstance(session, _SqliteSession)
            rows = session.run_until("PRAGMA quick_check(1)", monotonic() + EXAMINE_S)
        found = [row[0] for row in rows if row[0] != "ok"]
        if found:
            raise DamagedStore(f"{self.path}: is damaged: {' '.join(found[0].split())}")
        super().examine()

    def _damage(self, session: DatabaseSession) -> list[str]:
        foreign = session.run(
            "SELECT type || ' ' || name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        )
        found = session.run("PRAGMA integrity_check(20)")
        damage = [row[0] for row in found if row[0] != "ok"]
        return [*(f"{row[0]} is not part of a store" for row in foreign), *damage]


def _file_at(path: Path) -> tuple[int, int] | None:
    """Tells the file apart from every other one; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _recognise(session: DatabaseSession, path: Path, *, create: bool) -> None:
    """Checks that the file is a store, before a pragma changes somebody else's file."""
    with session.transaction(SqliteStore.BEGIN_READ):
        application: int = session.run("PRAGMA application_id")[0][0]
        tables = session.run("SELECT 1 FROM sqlite_master LIMIT 1")
    if application != APPLICATION_ID and tables:
        raise MissingStore(f"{path}: is an SQLite file, but not an mqis store")
    if application != APPLICATION_ID and not create:
        raise MissingStore(f"{path}: this file is empty, there is no store in it")


def fault_at(path: Path) -> str | None:
    """What is wrong with a file that is no store, or is cut off; None if that cannot be known.

    It reads the beginning, changes nothing and waits for nobody. A file without a log is in use by
    nobody, and is opened without making one.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        with closing(_SqliteSession(path, "ro" if log.exists() else "ro&immutable=1", 0.0)) as file:
            _recognise(file, path, create=False)
    except (MissingStore, DamagedStore) as error:
        return error.detail
    except StorageError:  # a process works at it, or it may not be read: the server will tell
        return None
    return None


def has_log(path: Path) -> bool:
    """Returns whether a write-ahead log with content is beside the file."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def make_private(path: Path) -> None:
    """Creates an empty file of mode 0600 if there is none; SQLite gives its log the same mode."""
    with suppress(OSError):  # SQLite, which comes next, reports the error better
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(number, 0o600)
        finally:
            os.close(number)


def user_of(path: Path) -> str:
    """The process that has the file open, with its command; empty if none has."""
    if not _is_in_use(path):
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is another user's
            if any(file.readlink() == path.resolve() for file in (process / "fd").iterdir()):
                words = (process / "cmdline").read_text(errors="replace").split("\0")
                return f"process {process.name} ({' '.join(words).strip()})"
    return "another program"


def _is_in_use(path: Path) -> bool:
    """Returns whether a process has the file open.

    In WAL mode every open connection holds a lock, which makes an exclusive lock impossible.
    """
    with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as alone:
        try:
            alone.execute("PRAGMA locking_mode=EXCLUSIVE")
            alone.execute("BEGIN IMMEDIATE")
            alone.execute("ROLLBACK")
        except sqlite3.Error as error:
            return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
    return False


def schema_version(path: Path) -> int | None:
    """The schema version, read without opening the store, which would migrate it."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            version: int = database.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        return None
    return version
