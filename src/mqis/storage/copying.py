"""The copying of a whole store at one moment, by rows or by the database itself.

A copy contains everything that a server keeps: objects, tombstones, partitions, states and the
records that wait for the journal. Rows are equal in all databases, so a copy may change the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from mqis.protocol.errors import StorageError
from mqis.storage.database import DatabaseStore
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.sql_store import PAGE
from mqis.storage.sqlite import SqliteStore


class CopiedTable(NamedTuple):
    """A table; the first ``keys`` of its columns are its primary key."""

    name: str
    columns: tuple[str, ...]
    keys: int


TABLES = (
    CopiedTable(
        "objects", ("object_type", "id", "path_key", "owner", "partition_id", "seq", "body"), 2
    ),
    CopiedTable("lookup_keys", ("object_type", "propid", "key", "id"), 4),
    CopiedTable("creators", ("object_type", "id", "account"), 2),
    CopiedTable("tombstones", ("id", "partition_id", "seq", "object_type", "scope"), 2),
    CopiedTable(
        "partitions",
        ("id", "owner", "last_seq", "purged_seq", "allowed_purge_seq", "purge_state", "digest"),
        1,
    ),
    CopiedTable("states", ("family", "key", "value"), 2),
    CopiedTable("outbox", ("lsn", "records"), 1),
    CopiedTable("outbox_last", ("lsn",), 1),
)


def copy_to_file(store: DatabaseStore, path: Path) -> None:
    """Copies ``store`` to a new SQLite file, while others read and write it."""
    if isinstance(store, SqliteStore):
        store.copy_to(path)
        return
    with closing(SqliteStore(path)) as target:
        copy_rows(store, target)


def copy_rows(source: DatabaseStore, target: DatabaseStore, *, replace: bool = False) -> None:
    """Copies all rows in one transaction; ``StorageError`` unless empty or to be replaced."""
    with source.reading() as rows, target.writing() as sink:
        if not replace and not is_empty(sink):
            raise StorageError("the store is not empty")
        for table in TABLES:
            sink.run(f"DELETE FROM {table.name}")
            for page in _pages(rows, table):
                _insert(sink, table, page)


def forget_server(connection: DatabaseConnection) -> None:
    """Drops what is of the server that a copy comes from, not of the directory.

    Its states are acknowledgements, answers and marks; the numbers of its journal begin again.
    """
    connection.run("DELETE FROM states")
    connection.run("UPDATE outbox_last SET lsn=0")


def is_empty(connection: DatabaseConnection) -> bool:
    tables = ("objects", "tombstones", "partitions")
    return not any(connection.run(f"SELECT 1 FROM {name} LIMIT 1") for name in tables)


def _pages(connection: DatabaseConnection, table: CopiedTable) -> Iterator[list[Any]]:
    """Yields the rows in pages by key, so that no database has to hold a whole table."""
    key = ", ".join(table.columns[: table.keys])
    select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
    marks = ", ".join("?" * table.keys)
    rows = connection.run(f"{select} ORDER BY {key} LIMIT {PAGE}")
    while rows:
        yield rows
        last = tuple(rows[-1][: table.keys])
        sql = f"{select} WHERE ({key})>({marks}) ORDER BY {key} LIMIT {PAGE}"
        rows = connection.run(sql, last)


def _insert(connection: DatabaseConnection, table: CopiedTable, rows: Sequence[Any]) -> None:
    columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    connection.run_many(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", rows)
