"""Measures export, import and restore of a directory of 100,000 queues."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.large import Large, large_sqlite
from bench.measure import Sample, once
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.admin.transfer import export_file, import_file
from mqis.storage.sqlite import SqliteStore

#: The aim: an administrator waits at most so long.
PATIENCE_S = 30


def _run(run: Run) -> Results:
    large = large_sqlite(run)
    file = run.directory / "export.jsonl"
    run.say("import: exporting")
    exported = once(lambda: export_file(large.backend.store, file))
    run.say("import: importing")
    created = once(lambda: _import(run.directory / "import.db", file, restore=False))
    run.say("import: restoring")
    restored = once(lambda: _import(run.directory / "restore.db", file, restore=True))
    run.say("import: the bare database")
    bare = once(lambda: _insert(run.directory / "bare.db", large))
    size = file.stat().st_size
    peer = "bare INSERT", bare
    queues = f"{len(large.queues):,} queues"
    table = f"SQLite, {queues} and their machines, a file of {size / 1e6:.1f} MB"
    rows = [
        _row(table, "export", exported, size),
        _row(table, "import", created, size, peer),
        _row(table, "import --restore", restored, size, peer),
        _row(table, "bare INSERT, same rows", bare),
    ]
    return Results(rows, [_aim(f"import {queues}", created), _aim(f"restore {queues}", restored)])


BENCH = Bench("import", "100,000 queues to a file and back", _run)


def _import(store_path: Path, file: Path, *, restore: bool) -> int:
    with closing(SqliteStore(store_path)) as store:
        return import_file(store, file, restore=restore).objects.total()


def _insert(path: Path, large: Large) -> int:
    """Inserts finished rows into the bare database: one statement for each table, one commit."""
    SqliteStore(path).close()
    bare = sqlite3.connect(path, isolation_level=None)
    with closing(bare):
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("ATTACH ? AS source", (large.backend.place,))
        bare.execute("BEGIN IMMEDIATE")
        for table in ("partitions", "objects", "lookup_keys", "creators"):
            rows = bare.execute(f"SELECT * FROM source.{table}").fetchall()
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                bare.executemany(f"INSERT INTO main.{table} VALUES ({marks})", rows)
        bare.execute("COMMIT")
    return len(large.queues) + len(large.machines) + 1


def _row(
    table: str, name: str, sample: Sample, size: int = 0, peer: tuple[str, Sample] | None = None
) -> Row:
    seconds = sample.elapsed_ns / 1e9
    return Row(
        table,
        name,
        sample.per_second,
        mb_per_second=size / 1e6 / seconds if size else None,
        seconds=seconds,
        ratio=None if peer is None else ratio([sample], [peer[1]]),
        peer=None if peer is None else peer[0],
    )


def _aim(what: str, sample: Sample) -> Aim:
    seconds = sample.elapsed_ns / 1e9
    return Aim(f"{what} < {PATIENCE_S} s", f"{seconds:.1f} s", seconds < PATIENCE_S)
