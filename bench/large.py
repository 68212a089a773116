"""A store of 100,000 queues, made once per run for all entries that need it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import backends
from bench.backends import Backend
from bench.enterprise import create_machines, create_queues
from bench.measure import Sample, once
from bench.run import Run
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType


@dataclass(frozen=True, slots=True)
class Large:
    backend: Backend
    queues: list[Guid]
    machines: list[Guid]
    #: The time to create the queues in one transaction.
    created: Sample


def large_sqlite(run: Run) -> Large:
    return run.shared("large", lambda: _create(run))


def _create(run: Run) -> Large:
    count = run.scaled(100_000, quick=1_000)
    run.say(f"creating {count:,} queues")
    backend = backends.sqlite(run, "large")
    machines = create_machines(backend.store, count)
    queues: list[Guid] = []

    def create() -> int:
        queues.extend(create_queues(backend.store, range(count)))
        return count

    return Large(backend, queues, machines, once(create))


def copy_to_memory(large: Large) -> Backend:
    store = MemoryStore()
    with large.backend.store.read() as view, store.write() as transaction:
        for partition in view.partitions():
            transaction.put_partition(partition)
        for object_type in ObjectType:
            for obj in view.objects(object_type):
                transaction.insert(obj)
    return Backend("memory", store)


def copy_to_postgres(run: Run, large: Large) -> Backend:
    """Copies table by table, as creating the queues again would take minutes."""
    backend = backends.postgres(run, "large")
    source = sqlite3.connect(Path(large.backend.place))
    with closing(source), psycopg.connect(backend.place) as target:
        for table in ("partitions", "objects", "lookup_keys", "creators"):
            rows = source.execute(f"SELECT * FROM {table}")
            columns = ", ".join(column[0] for column in rows.description)
            with target.cursor().copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
            target.execute(f"ANALYZE {table}".encode())
    return backend
