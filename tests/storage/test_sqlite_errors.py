"""Errors of SQLite and of the disk: they raise a helpful StorageError, and no data is lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Transaction
from mqis.storage.database import Pool
from mqis.storage.database_session import DatabaseSession
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.builders import guid, partition, queue, user
from tests.disks import small_disk

QUEUE = ObjectType.QUEUE
NOBODY = 65534


def make(path: Path) -> None:
    with closing(SqliteStore(path)) as store, store.write() as transaction:
        transaction.insert(queue(1))
        for id_ in (Guid.NULL, queue(1).partition):
            transaction.put_partition(partition(id_))


def assert_sound(path: Path, *, users: int = 0) -> None:
    with closing(SqliteStore(path, create=False)) as store:
        assert store.check() == []
        with store.read() as view:
            assert view.get(QUEUE, guid(1)) == queue(1)
            assert view.count(ObjectType.USER) == users
        with store.write() as transaction:
            transaction.insert(queue(2))
            transaction.delete(queue(2))


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may write everywhere, so it steps down for the moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing\.db: there is no store; 'mqis restore' puts"):
        SqliteStore(tmp_path / "missing.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/mqis\.db: cannot be opened; check that"):
        SqliteStore(tmp_path / "nowhere" / "mqis.db")


def test_a_directory_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        SqliteStore(tmp_path)


def test_a_file_that_vanishes_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "mqis.db"
    with closing(SqliteStore(path)) as store:
        path.unlink()
        with pytest.raises(StorageError, match="cannot be opened"), store.read():
            pass
    assert not path.exists()


def test_read_only_file_and_directory(open_directory: Path) -> None:
    path = open_directory / "mqis.db"
    make(path)
    path.chmod(0o444)
    open_directory.chmod(0o555)
    with without_privileges(), pytest.raises(StorageError, match=r"mqis\.db: .*check"):
        SqliteStore(path)
    open_directory.chmod(0o755)
    path.chmod(0o644)
    assert_sound(path)


def test_read_only_file_in_a_writable_directory(open_directory: Path) -> None:
    """The log can be written, so the store can be read."""
    path = open_directory / "mqis.db"
    make(path)
    path.chmod(0o444)
    open_directory.chmod(0o777)
    expected = r"mqis\.db: the file is read-only, nothing was written; check its owner and mode"
    with without_privileges(), closing(SqliteStore(path)) as store:
        with store.read() as view:
            assert view.count(QUEUE) == 1
        with pytest.raises(StorageError, match=expected), store.write() as transaction:
            transaction.insert(queue(2))
    path.chmod(0o644)
    assert_sound(path)


def test_a_store_of_which_nothing_can_be_written_is_read(open_directory: Path) -> None:
    """As one on a medium that is read-only: no log can be made beside it."""
    path = open_directory / "mqis.db"
    make(path)
    os.chown(path, NOBODY if os.geteuid() == 0 else -1, -1)
    path.chmod(0o400)
    open_directory.chmod(0o555)
    with without_privileges(), closing(SqliteStore(path, create=False, read_only=True)) as store:
        with store.read() as view:
            assert view.get(QUEUE, guid(1)) == queue(1)
        assert [file.name for file in open_directory.iterdir()] == ["mqis.db"]
    open_directory.chmod(0o755)
    path.chmod(0o644)
    assert_sound(path)


def test_directory_that_is_not_writable(open_directory: Path) -> None:
    open_directory.chmod(0o555)
    with without_privileges(), pytest.raises(StorageError, match="check that it exists and is"):
        SqliteStore(open_directory / "mqis.db")


@pytest.mark.parametrize("content", [b"# not a database\n" * 100, b"\0" * 4096])
def test_a_file_that_is_not_sqlite(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"notes\.txt: is not an mqis store"):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_an_sqlite_file_of_another_application(tmp_path: Path) -> None:
    """It is refused as it is: not even its journal mode changes."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"other\.db: is an SQLite file, but not an mqis store"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "mqis.db"
    path.touch()
    make(path)
    assert_sound(path)


def test_another_process_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqis.storage.sqlite.BUSY_TIMEOUT_S", 0.05)
    path = tmp_path / "mqis.db"
    make(path)
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="another process is writing"), store.write():
            pass
        with store.read() as view:
            assert view.count(QUEUE) == 1
        other.rollback()
        with store.write() as transaction:
            transaction.insert(queue(2))


# --- a full disk ----------------------------------------------------------------------------------


def large(number: int) -> DirectoryObject:
    return user(number, others={PropId.U_SIGN_CERT: bytes(20_000)})


def limit(store: SqliteStore, pages: int) -> None:
    """Let the file grow by this much: beyond it SQLite finds the disk full."""
    (writer,) = store._writers.idle
    size = writer.run("PRAGMA page_count")[0][0]
    writer.run(f"PRAGMA max_page_count={size + pages}")


def fill_up(transaction: Transaction) -> None:
    for number in range(1, 10_000):
        transaction.insert(large(number))


def test_full_file(tmp_path: Path) -> None:
    path = tmp_path / "mqis.db"
    make(path)
    with closing(SqliteStore(path)) as store:
        limit(store, 20)
        expected = r"mqis\.db: no room left, nothing was written; free some space"
        with pytest.raises(StorageError, match=expected), store.write() as transaction:
            fill_up(transaction)
        assert store.check() == []
        with store.write() as transaction:
            transaction.insert(user(1))
    assert_sound(path, users=1)


def test_what_follows_a_lost_transaction_is_lost_with_it(tmp_path: Path) -> None:
    """SQLite may undo all of it at the first full page; a later savepoint must not commit alone."""
    path = tmp_path / "mqis.db"
    make(path)
    with closing(SqliteStore(path)) as store:
        limit(store, 20)
        failed = committed = 0
        try:
            with store.write() as transaction:
                for number in range(1, 30):
                    # Small ones after the large ones still fit, if anything does.
                    obj = large(number) if number < 20 else user(number)
                    with suppress(StorageError), transaction.savepoint():
                        transaction.insert(obj)
                        committed += 1
        except StorageError as error:
            assert "no room left" in str(error)  # noqa: PT017
            failed, committed = 1, 0
        with store.read() as view:
            assert view.count(ObjectType.USER) == committed
    assert_sound(path, users=committed)
    assert failed or committed < 29


def test_full_disk(tmp_path: Path) -> None:
    """The real thing: the log cannot grow, in the middle of a transaction or at its commit."""
    with small_disk(tmp_path, "2m"):
        path = tmp_path / "mqis.db"
        make(path)
        committed = 0
        with closing(SqliteStore(path)) as store:
            with pytest.raises(StorageError, match="no room left"):  # noqa: PT012
                while committed < 1000:
                    with store.write() as transaction:
                        transaction.insert(large(committed + 1))
                    committed += 1
            assert committed > 5
            with store.read() as view:
                assert view.count(ObjectType.USER) == committed
        assert_no_loss(path, committed)


def test_disk_filled_by_others(tmp_path: Path) -> None:
    """Not a byte is left: what was committed can be read, and works again when there is room."""
    with small_disk(tmp_path, "2m"):
        path, ballast = tmp_path / "mqis.db", tmp_path / "ballast"
        with closing(SqliteStore(path)) as store:
            with store.write() as transaction:
                transaction.insert(queue(1))
                for id_ in (Guid.NULL, queue(1).partition):
                    transaction.put_partition(partition(id_))
            with suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            with pytest.raises(StorageError, match="no room left"), store.write() as transaction:
                fill_up(transaction)
            with store.read() as view:
                assert view.count(QUEUE) == 1
            ballast.unlink()
            with store.write() as transaction:
                transaction.insert(user(1))
        assert_sound(path, users=1)


def assert_no_loss(path: Path, users: int) -> None:
    with closing(SqliteStore(path, create=False)) as store:
        assert store.check() == []
        with store.read() as view:
            assert view.get(QUEUE, guid(1)) == queue(1)
            assert view.count(ObjectType.USER) == users


def test_a_read_that_cannot_look_for_commits_fails_and_locks_nothing(tmp_path: Path) -> None:
    """It neither begins without a view nor leaves its transaction open."""
    path = tmp_path / "store.db"
    make(path)
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE commits RENAME TO gone")
        with pytest.raises(StorageError, match="commits"), store.read():
            pytest.fail("there is no view")
        other.execute("ALTER TABLE gone RENAME TO commits")
        other.execute("DELETE FROM objects")
        other.commit()
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


# --- what a failure leaves open -------------------------------------------------------------------


def opened_files(path: Path) -> int:
    """The number of descriptors of this process that lead to a file."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("no /proc to see the open files of a process")
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += link.readlink() == path
    return found


@pytest.mark.parametrize("spoil", ["PRAGMA application_id=7", "PRAGMA user_version=99999"])
def test_a_store_that_cannot_be_opened_leaves_no_file_open(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "store.db"
    make(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(spoil)
        database.commit()
    with pytest.raises(StorageError) as caught:  # which keeps the frames, and all that they hold
        SqliteStore(path, create=False)
    assert opened_files(path) == 0, caught.value


def test_a_session_whose_first_transaction_fails_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    make(path)
    with closing(SqliteStore(path)) as store:
        made: list[DatabaseSession] = []

        def connect() -> DatabaseSession:
            made.append(store._connect())
            return made[-1]

        pool = Pool(connect, "BEGIN NONSENSE", lambda: None)
        with pytest.raises(StorageError, match="NONSENSE"):
            pool.begun()
        (session,) = made
        with pytest.raises(StorageError, match="closed"):
            session.run("SELECT 1")
