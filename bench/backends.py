"""The stores under test, new and empty, and the bare database of each."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.run import Run
from mqis.protocol.ports import Store
from mqis.storage.memory_store import MemoryStore
from mqis.storage.postgres import PostgresStore
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

ROOT = Path(__file__).resolve().parents[1]
_SELECT = "SELECT body FROM objects WHERE object_type=? AND id=?"


class Unavailable(Exception):
    """A store or program is not available here; the text says why."""


@dataclass(frozen=True, slots=True)
class Backend:
    name: str
    store: Store
    #: Reads one row by its primary key from the bare database; None if there is none.
    select: Callable[[Guid], object] | None = None
    #: The path or connection string to open the store again.
    place: str = ""


def memory(run: Run, name: str) -> Backend:
    return Backend("memory", MemoryStore())


def sqlite(run: Run, name: str) -> Backend:
    path = run.directory / f"{name}.db"
    store = run.resources.enter_context(closing(SqliteStore(path)))
    bare = sqlite3.connect(path, isolation_level=None)
    run.resources.enter_context(closing(bare))

    def select(id_: Guid) -> object:
        return bare.execute(_SELECT, (int(ObjectType.QUEUE), id_.raw)).fetchone()

    return Backend("SQLite", store, select, str(path))


def postgres(run: Run, name: str) -> Backend:
    server = run.shared("postgres", lambda: _start_postgres(run))
    if isinstance(server, Unavailable):
        raise server
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    place = f"{server} options='-c search_path={name}'"
    store = run.resources.enter_context(closing(PostgresStore(place)))
    bare = run.resources.enter_context(closing(psycopg.connect(place, autocommit=True)))
    sql = _SELECT.replace("?", "%s").encode()

    def select(id_: Guid) -> object:
        return bare.execute(sql, (int(ObjectType.QUEUE), id_.raw), binary=True).fetchone()

    return Backend("PostgreSQL", store, select, place)


def _start_postgres(run: Run) -> str | Unavailable:
    """Starts a private server; returns its connection string, or why there is none."""
    directory = str(run.directory / "postgres")
    script = str(ROOT / "tools" / "postgres.sh")
    started = subprocess.run(
        [script, "start", directory], capture_output=True, text=True, check=False
    )
    if started.returncode:
        return Unavailable(f"PostgreSQL: skipped: {started.stderr.strip()}")
    run.resources.callback(subprocess.run, [script, "stop", directory], check=True)
    return started.stdout.strip()


#: The functions that make a new store under a given name, one for each kind.
ALL: tuple[Callable[[Run, str], Backend], ...] = (memory, sqlite, postgres)
