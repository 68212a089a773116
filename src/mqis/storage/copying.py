"""A whole store in another one, as it is at one moment, row by row or by the database itself.

What is copied is everything that a server keeps: objects, tombstones, partitions, its states and
what waits for the journal. Rows are the same in every database, so a copy may change the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mqis.protocol.errors import StorageError
from mqis.storage.database import DatabaseStore
from mqis.storage.session import Connection
from mqis.storage.sql import KEYS_AT_ONCE, PAGE
from mqis.storage.sqlite import SqliteStore


class Table(NamedTuple):
    """Its columns, of which the first ``keys`` are unique together."""

    name: str
    columns: tuple[str, ...]
    keys: int


TABLES = (
    Table("objects", ("object_type", "id", "path_key", "owner", "partition_id", "seq", "body"), 2),
    Table("lookup_keys", ("object_type", "propid", "key", "id"), 4),
    Table("tombstones", ("id", "partition_id", "seq", "object_type", "scope"), 1),
    Table(
        "partitions",
        ("id", "owner", "last_seq", "purged_seq", "allowed_purge_seq", "purge_state"),
        1,
    ),
    Table("states", ("family", "key", "value"), 2),
    Table("outbox", ("lsn", "records"), 1),
    Table("outbox_last", ("lsn",), 1),
)


def copy_to_file(store: DatabaseStore, path: Path) -> None:
    """``store`` as it is now in a new SQLite file, while others read and write it."""
    if isinstance(store, SqliteStore):
        store.copy_to(path)
        return
    with closing(SqliteStore(path)) as target:
        copy_rows(store, target)


def copy_rows(source: DatabaseStore, target: DatabaseStore, *, replace: bool = False) -> None:
    """All rows in one transaction; ``StorageError`` unless the target is empty or given up."""
    with source.reading() as rows, target.writing() as sink:
        if not replace and not is_empty(sink):
            raise StorageError("the store is not empty")
        for table in TABLES:
            sink.run(f"DELETE FROM {table.name}")
            for page in _pages(rows, table):
                _insert(sink, table, page)


def forget_server(connection: Connection) -> None:
    """Drops what is of the server that a copy comes from, not of the directory.

    Its states are acknowledgements, answers and marks; the numbers of its journal begin again.
    """
    connection.run("DELETE FROM states")
    connection.run("UPDATE outbox_last SET lsn=0")


def is_empty(connection: Connection) -> bool:
    tables = ("objects", "tombstones", "partitions")
    return not any(connection.run(f"SELECT 1 FROM {name} LIMIT 1") for name in tables)


def _pages(connection: Connection, table: Table) -> Iterator[list[Any]]:
    """By key, so that no database has to hold a table at once."""
    key = ", ".join(table.columns[: table.keys])
    select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
    marks = ", ".join("?" * table.keys)
    rows = connection.run(f"{select} ORDER BY {key} LIMIT {PAGE}")
    while rows:
        yield rows
        last = tuple(rows[-1][: table.keys])
        sql = f"{select} WHERE ({key})>({marks}) ORDER BY {key} LIMIT {PAGE}"
        rows = connection.run(sql, last)


def _insert(connection: Connection, table: Table, rows: Sequence[Any]) -> None:
    one = f"({', '.join('?' * len(table.columns))})"
    into = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES "
    for first in range(0, len(rows), KEYS_AT_ONCE):
        part = rows[first : first + KEYS_AT_ONCE]
        connection.run(into + ", ".join([one] * len(part)), list(chain.from_iterable(part)))
