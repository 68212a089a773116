"""Counts the flushes of the disk for each acknowledged write.

SQLite flushes in the calling process, so strace counts them in a separate short run. PostgreSQL
flushes in the server, which counts itself (pg_stat_wal). If neither works, commits are counted
instead; each is at least one flush.

The command ``python -m bench.flushes STORE WRITES WRITERS FIRST`` is the traced process: it prints
the numbers of acknowledged writes and of commits.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.backends import ROOT, Backend
from bench.enterprise import create_queue
from mqis.protocol.ports import Store
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.postgres import PostgresStore
from mqis.storage.sqlite import SqliteStore

_SYNCS = b"SELECT wal_sync FROM pg_stat_wal"
_COUNT = re.compile(
    r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(?P<calls>\d+)\s.*\b(fsync|fdatasync)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Flushes:
    writes: int
    flushes: int
    #: The way they were counted.
    how: str

    @property
    def per_write(self) -> float:
        return self.flushes / self.writes


async def _write(store: Store, writes: int, writers: int, first: int) -> int:
    """Makes so many creates by so many tasks; returns the number of commits."""
    writer = GroupCommitWriter(store)
    numbers = iter(range(first, first + writes))

    async def client() -> None:
        for number in numbers:
            await writer.submit(create_queue(number))

    await asyncio.gather(*(client() for _ in range(writers)))
    await writer.close()
    return writer.commits


def of_sqlite(backend: Backend, writes: int, writers: int, first: int) -> Flushes:
    trace = Path(f"{backend.place}.strace")
    numbers = [str(writes), str(writers), str(first)]
    worker = [sys.executable, "-m", "bench.flushes", backend.place, *numbers]
    strace = ["strace", "-f", "--seccomp-bpf", "-c", "-e", "trace=fdatasync,fsync"]
    try:
        subprocess.run(
            [*strace, "-o", str(trace), *worker], cwd=ROOT, check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        untried = first + writes
        commits = asyncio.run(_write(backend.store, writes, writers, untried))
        return Flushes(writes, commits, "commits; strace is not installed or may not trace")
    calls = sum(int(found["calls"]) for found in _COUNT.finditer(trace.read_text("utf-8")))
    return Flushes(writes, calls, "fsync and fdatasync calls by strace, open and close included")


def of_postgres(backend: Backend, writes: int, writers: int, first: int) -> Flushes:
    with psycopg.connect(backend.place, autocommit=True) as connection:
        try:
            before = _syncs(connection)
        except psycopg.Error:  # before version 14 there is no such view, from 18 on no such column
            before = None
        with closing(PostgresStore(backend.place)) as store:  # reports its counts when it closes
            commits = asyncio.run(_write(store, writes, writers, first))
        if before is None:
            return Flushes(writes, commits, "commits; this server does not count its flushes")
        return Flushes(writes, _syncs(connection) - before, "wal_sync of pg_stat_wal")


def _syncs(connection: psycopg.Connection) -> int:
    row = connection.execute(_SYNCS).fetchone()
    assert row is not None
    return int(row[0])


#: By the name of the backend; other backends do not flush.
COUNTERS = {"SQLite": of_sqlite, "PostgreSQL": of_postgres}


def main() -> None:
    place, *numbers = sys.argv[1:]
    writes, writers, first = map(int, numbers)
    with closing(SqliteStore(place, create=False)) as store:
        commits = asyncio.run(_write(store, writes, writers, first))
    print(writes, commits)


if __name__ == "__main__":
    main()
