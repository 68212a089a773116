"""Every store that there is, for tests that must hold on all of them.

``store`` is each of memory, sqlite and postgres in turn; ``database`` is each of the two that
outlive their process. The PostgreSQL server is private to the run; where the package is not
installed those tests are skipped and say so.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import psycopg
import pytest

from mqis.protocol.ports import Store
from mqis.storage.memory_store import MemoryStore
from mqis.storage.postgres import CLAIM_CLASS, PostgresStore
from mqis.storage.sqlite import SqliteStore
from tests.waiting import DEADLINE_S, wait_until

SCRIPT = Path(__file__).parents[2] / "tools" / "postgres.sh"
NOT_INSTALLED = 3


class Database(Protocol):
    """A place where a store can be opened again, and be tampered with behind its back."""

    def open(self) -> Store: ...

    def execute(self, sql: str, *parameters: object) -> list[Any]:
        """Run one statement, with ``?`` marks, and commit it."""


class SqliteFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> SqliteStore:
        return SqliteStore(self.path)

    def execute(self, sql: str, *parameters: object) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql, parameters).fetchall()


class PostgresSchema:
    """One schema of the server's database."""

    def __init__(self, server: str, name: str = "public") -> None:
        self.name = name
        self._server = server

    @property
    def conninfo(self) -> str:
        return self.conninfo_with()

    def conninfo_with(self, *settings: str) -> str:
        """With settings of the session, as ``synchronous_commit=off``."""
        options = " ".join(f"-c {s}" for s in (f"search_path={self.name}", *settings))
        return f"{self._server} options='{options}'"

    def open(self) -> PostgresStore:
        return PostgresStore(self.conninfo)

    def claim_by_force(self) -> psycopg.Connection[Any]:
        """Ends the session of whoever has claimed the store, and holds the claim in its place.

        It is next in line when that session ends, so that the other cannot be quicker.
        """
        claims = (
            f"FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = {CLAIM_CLASS} AND "
            "objid::int = (SELECT oid::int FROM pg_namespace WHERE nspname = current_schema())"
        )
        lock = (
            f"SELECT pg_advisory_lock({CLAIM_CLASS}, oid::int) FROM pg_namespace "
            "WHERE nspname = current_schema()"
        )
        claiming = psycopg.connect(self.conninfo, autocommit=True)
        waiting = Thread(target=claiming.execute, args=(lock.encode(),))
        waiting.start()
        wait_until(lambda: self.execute(f"SELECT pid {claims} AND NOT granted"))
        self.execute(f"SELECT pg_terminate_backend(pid) {claims} AND granted")
        waiting.join(DEADLINE_S)
        assert not waiting.is_alive()
        return claiming

    def execute(self, sql: str, *parameters: object) -> list[Any]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s").encode(), parameters)
            return [] if cursor.description is None else cursor.fetchall()


class PostgresServer:
    """A server of its own in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._numbers = count(1)
        self.start()

    def start(self) -> None:
        result = self._script("start")
        if result.returncode == NOT_INSTALLED:
            pytest.skip(result.stderr.strip())
        assert result.returncode == 0, result.stderr
        self.conninfo = result.stdout.strip()

    def stop(self) -> None:
        result = self._script("stop")
        assert result.returncode == 0, result.stderr

    close = stop

    def _script(self, action: str) -> subprocess.CompletedProcess[str]:
        command = [str(SCRIPT), action, str(self.directory)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )

    def new_schema(self) -> PostgresSchema:
        name = f"store{next(self._numbers)}"
        PostgresSchema(self.conninfo).execute(f"CREATE SCHEMA {name}")
        return PostgresSchema(self.conninfo, name)

    @property
    def owner(self) -> tuple[int, int]:
        """User and group that the server runs as."""
        status = (self.directory / "data").stat()
        return status.st_uid, status.st_gid


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    # Not below pytest's own directory: that is closed to the user that the server runs as.
    directory = Path(tempfile.mkdtemp(prefix="mqis-postgres-"))
    try:
        with closing(PostgresServer(directory)) as server:
            yield server
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def postgres_schema(postgres_server: PostgresServer) -> PostgresSchema:
    return postgres_server.new_schema()


@pytest.fixture
def sqlite_file(tmp_path: Path) -> SqliteFile:
    return SqliteFile(tmp_path / "mqis.db")


@pytest.fixture(params=["sqlite_file", "postgres_schema"], ids=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = request.getfixturevalue("sqlite_file").open()
    else:
        opened = request.getfixturevalue("postgres_schema").open()
    with closing(opened):
        yield opened
