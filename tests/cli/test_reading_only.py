"""A command that reads neither creates nor changes a file, and tells in one line what is none."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.errors import MissingStore, StorageError
from mqis.storage import schema
from mqis.storage.postgres import PostgresStore
from mqis.wire.errors import MqisError
from tests.cli.commands import process, run
from tests.plugins.stores import PostgresSchema

#: Commands that only read the store that follows.
READING = [
    ("store", "check", "--store"),
    ("lookup", "queue", "--store"),
    ("get", "site", "Amsterdam", "--store"),
    ("check", "--store"),
    ("export", "--store"),
    ("export", "--ldif", "-", "--store"),
    ("map", "--json", "--store"),
    ("route", "ams-dir1", "ber-dir1", "--store"),
    ("estate", "check", "--store"),
    ("journal", "key", "ams-dir1", "--store"),
    ("mirror", "--status", "--store"),
]
IDS = [" ".join(command[:2]) for command in READING]


def _text(path: Path) -> None:
    path.write_text("these are notes, and enough of them to fill a header" * 20)


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE songs (title)")


def _only_a_header(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=0")
        database.execute("PRAGMA journal_mode=WAL")


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.touch, "this file is empty, there is no store in it; 'mqis restore'"),
        (_only_a_header, "this file is empty, there is no store in it; 'mqis restore'"),
        (_text, "is not an mqis store"),
        (_foreign, "is an SQLite file, but not an mqis store"),
        (lambda _path: None, "there is no store; 'mqis restore'"),
    ],
    ids=["empty", "header", "text", "foreign", "missing"],
)
@pytest.mark.parametrize("command", READING, ids=IDS)
def test_what_is_no_store(
    command: tuple[str, ...], make: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.db"
    make(path)
    before = files(tmp_path)
    done = run(*command, path)
    told = str(done.exception) if isinstance(done.exception, MqisError) else done.stderr
    assert done.exit_code in (1, 2)
    assert f"d.db: {words}" in told
    assert len(told.strip().splitlines()) == 1
    assert files(tmp_path) == before


def test_a_server_does_not_serve_an_empty_file(tmp_path: Path) -> None:
    """A PEC would have gone on without its enterprise, and numbered its changes from one."""
    file = tmp_path / "mqis.toml"
    options = ("--enterprise", "Acme", "--site", "Delft", "--name", "del-dir1")
    assert run("init", "--path", file, *options).exit_code == 0
    (tmp_path / "mqis.db").write_bytes(b"")
    done = process("serve", "--config", file)
    assert done.returncode == 1
    assert b"mqis.db: this file is empty, there is no store in it" in done.stderr
    assert (tmp_path / "mqis.db").read_bytes() == b""


# --- sound stores ---------------------------------------------------------------------------------


def _as_it_is(_path: Path) -> None:
    """The store as a server leaves it that was stopped."""


def _without_log(path: Path) -> None:
    """A copy as it is in a backup, in another mode of journal."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=DELETE")


def _killed(path: Path) -> None:
    """The store of a server that was killed: its last changes are in the write-ahead log."""
    script = (
        "import os, sys; from mqis.config.stores import open_store\n"
        "with open_store(sys.argv[1], create=True).write() as tx:\n"
        "    tx.put_state('family', b'key', b'value')\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.with_name(f"{path.name}-wal").stat().st_size > 0


@pytest.mark.parametrize("make", [_as_it_is, _without_log, _killed])
@pytest.mark.parametrize("command", READING, ids=IDS)
def test_a_store_is_as_it_was(
    command: tuple[str, ...], make: Callable[[Path], None], demo_store: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(demo_store, tmp_path / "d.db"))
    make(path)
    before = {name: data for name, data in files(tmp_path).items() if not name.endswith("-shm")}
    status = path.stat()
    done = run(*command, path)
    assert done.exit_code in (0, 1)
    assert isinstance(done.exception, SystemExit | StorageError | None)
    now = {name: data for name, data in files(tmp_path).items() if not name.endswith("-shm")}
    assert now == before
    assert path.stat().st_mtime_ns == status.st_mtime_ns


@pytest.mark.parametrize("make", [_as_it_is, _without_log, _killed])
def test_a_backup_leaves_the_store_as_it_was(
    make: Callable[[Path], None], demo_store: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = Path(shutil.copy(demo_store, home / "mqis.db"))
    assert run("init", "--path", home / "mqis.toml").exit_code == 0
    make(path)
    before = {name: data for name, data in files(home).items() if not name.endswith("-shm")}
    done = run("backup", tmp_path / "b", "--config", home / "mqis.toml")
    assert done.exit_code == 0, done.exception
    now = {name: data for name, data in files(home).items() if not name.endswith("-shm")}
    assert now == before


def test_the_last_changes_of_a_killed_server_are_read(demo_store: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_store, tmp_path / "d.db"))
    _killed(path)
    with closing(open_store(str(path))) as store, store.read() as view:
        assert view.state("family", b"key") == b"value"


def test_a_store_is_complete_when_its_writer_ends_although_another_reads(tmp_path: Path) -> None:
    """Somebody copies the file alone then, without its log."""
    path = tmp_path / "d.db"
    writer = open_store(str(path), create=True)
    with closing(open_store(str(path))) as reader, reader.read():
        pass
    with closing(open_store(str(path))) as reader:
        with reader.read() as view:
            assert view.partitions() == []
        demo.build(writer)
        writer.close()
        shutil.copy(path, tmp_path / "copy.db")
    assert run("store", "check", "--store", tmp_path / "copy.db").stdout.startswith("ok: 1 ent")


def test_nothing_is_written_through_a_store_for_reading(demo_store: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_store, tmp_path / "d.db"))
    with (
        closing(open_store(str(path))) as store,
        pytest.raises(StorageError, match="read-only"),
        store.write() as tx,
    ):
        tx.put_state("family", b"key", b"value")


# --- versions -------------------------------------------------------------------------------------


def _of_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version={version}")


@pytest.mark.parametrize("command", READING, ids=IDS)
def test_a_store_of_an_earlier_version_is_not_upgraded_by_reading(
    command: tuple[str, ...], demo_store: Path, tmp_path: Path
) -> None:
    """The server of that version may still run, and could not open it any more."""
    path = Path(shutil.copy(demo_store, tmp_path / "d.db"))
    _of_version(path, schema.VERSION - 1)
    before = files(tmp_path)
    done = run(*command, path)
    told = str(done.exception) if isinstance(done.exception, MqisError) else done.stderr
    assert f"d.db: has schema version {schema.VERSION - 1}, this mqis reads" in told
    assert "'mqis store upgrade'" in told
    assert files(tmp_path) == before


def test_a_store_is_upgraded_by_its_own_command(demo_store: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_store, tmp_path / "d.db"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE creators")
    _of_version(path, schema.VERSION - 1)
    assert run("store", "upgrade", "--store", path).exit_code == 0
    assert run("store", "check", "--store", path).stdout.startswith("ok: 1 enterprise")
    (tmp_path / "empty.db").touch()
    assert isinstance(
        run("store", "upgrade", "--store", tmp_path / "empty.db").exception, MissingStore
    )
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_no_tables_are_made_in_a_database_by_reading(postgres_schema: PostgresSchema) -> None:
    for claim in (False, True):
        with pytest.raises(MissingStore, match="no store in this database"):
            PostgresStore(postgres_schema.conninfo, create=False, read_only=not claim, claim=claim)
    sql = "SELECT tablename FROM pg_tables WHERE schemaname=current_schema()"
    assert postgres_schema.execute(sql) == []
    PostgresStore(postgres_schema.conninfo).close()
    postgres_schema.execute("UPDATE mqis_schema SET version=1")
    with pytest.raises(StorageError, match="has schema version 1, this mqis reads"):
        PostgresStore(postgres_schema.conninfo, read_only=True, create=False)
