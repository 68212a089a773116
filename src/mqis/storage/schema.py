"""The tables, as migration steps: a new store runs them all, an old one the missing ones.

A released step is never edited; a change is a new step. ``{blob}`` is the database's type for
bytes. Sequence numbers are eight bytes, so that an index sorts them by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqis.protocol.directory.indexing import account_of, index_keys
from mqis.protocol.directory.objects import (
    SECURITY_PROPERTY,
    DirectoryObject,
    PartitionDigest,
)
from mqis.protocol.errors import StorageError
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.row_conversion import read_object
from mqis.storage.sql_store import PAGE, stored_digests
from mqis.wire.guid import Guid

Step = Callable[[DatabaseConnection, str], None]


def _objects_tombstones_partitions(connection: DatabaseConnection, blob: str) -> None:
    for statement in (
        f"""CREATE TABLE objects (
            object_type INTEGER NOT NULL, id {blob} NOT NULL, path_key {blob},
            owner {blob} NOT NULL, partition_id {blob} NOT NULL, seq {blob} NOT NULL,
            body {blob} NOT NULL)""",
        "CREATE UNIQUE INDEX objects_by_id ON objects (object_type, id)",
        "CREATE UNIQUE INDEX objects_by_path ON objects (object_type, path_key)",
        "CREATE INDEX objects_by_owner ON objects (object_type, owner, id)",
        "CREATE INDEX objects_by_seq ON objects (partition_id, seq)",
        f"""CREATE TABLE tombstones (
            id {blob} NOT NULL PRIMARY KEY, partition_id {blob} NOT NULL, seq {blob} NOT NULL,
            object_type INTEGER NOT NULL, scope INTEGER NOT NULL)""",
        "CREATE INDEX tombstones_by_seq ON tombstones (partition_id, seq)",
        f"""CREATE TABLE partitions (
            id {blob} NOT NULL PRIMARY KEY, owner {blob} NOT NULL, last_seq {blob} NOT NULL,
            purged_seq {blob} NOT NULL, allowed_purge_seq {blob} NOT NULL,
            purge_state INTEGER NOT NULL)""",
    ):
        connection.run(statement)


def _lookup_keys(connection: DatabaseConnection, blob: str) -> None:
    """Creates the secondary keys and fills them from the existing objects."""
    connection.run(
        f"""CREATE TABLE lookup_keys (
            object_type INTEGER NOT NULL, propid INTEGER NOT NULL, key {blob} NOT NULL,
            id {blob} NOT NULL, PRIMARY KEY (object_type, propid, key, id))"""
    )
    _fill_keys(connection)


def _fill_keys(connection: DatabaseConnection) -> None:
    """Inserts the keys of all objects into an empty table."""
    insert = "INSERT INTO lookup_keys (object_type, propid, key, id) VALUES (?, ?, ?, ?)"
    for obj in _objects(connection):
        for propid, key in index_keys(obj):
            connection.run(insert, (obj.type, propid, key, obj.id.raw))


def _objects(connection: DatabaseConnection) -> Iterator[DirectoryObject]:
    select = (
        "SELECT object_type, id, partition_id, seq, body FROM objects "
        f"WHERE object_type>? OR (object_type=? AND id>?) ORDER BY object_type, id LIMIT {PAGE}"
    )
    last: tuple[int, bytes] = (0, b"")
    while rows := connection.run(select, (last[0], *last)):
        yield from map(read_object, rows)
        last = rows[-1][0], rows[-1][1]


def _states_outbox(connection: DatabaseConnection, blob: str) -> None:
    """Creates replication state and the outbox with its counter."""
    # SQLite stores rows in the order of a key of exactly this type, without a separate index.
    number = "INTEGER" if blob == "BLOB" else "BIGINT"
    for statement in (
        f"""CREATE TABLE states (
            family TEXT NOT NULL, key {blob} NOT NULL, value {blob} NOT NULL,
            PRIMARY KEY (family, key))""",
        f"CREATE TABLE outbox (lsn {number} PRIMARY KEY, records {blob} NOT NULL)",
        f"CREATE TABLE outbox_last (lsn {number} NOT NULL)",
        "INSERT INTO outbox_last (lsn) VALUES (0)",
    ):
        connection.run(statement)


def _owner_keys(connection: DatabaseConnection, _blob: str) -> None:
    """Rebuilds all keys, because owners are indexed from this version on."""
    connection.run("DELETE FROM lookup_keys")
    _fill_keys(connection)


def _digests(connection: DatabaseConnection, blob: str) -> None:
    """Adds the digest of each partition's objects, which every change keeps up to date."""
    connection.run(f"ALTER TABLE partitions ADD COLUMN digest {blob}")
    digests = stored_digests(connection)
    for (partition,) in connection.run("SELECT id FROM partitions"):
        digest = digests.get(Guid(partition), PartitionDigest())
        connection.run("UPDATE partitions SET digest=? WHERE id=?", (digest.to_bytes(), partition))


def _tombstones_by_partition(connection: DatabaseConnection, blob: str) -> None:
    """Keeps one tombstone of an identifier for each partition instead of one altogether.

    SQLite cannot change a primary key, so every database copies the table.
    """
    columns = "id, partition_id, seq, object_type, scope"
    for statement in (
        f"""CREATE TABLE tombstones_of_partitions (
            id {blob} NOT NULL, partition_id {blob} NOT NULL, seq {blob} NOT NULL,
            object_type INTEGER NOT NULL, scope INTEGER NOT NULL,
            PRIMARY KEY (id, partition_id))""",
        f"INSERT INTO tombstones_of_partitions ({columns}) SELECT {columns} FROM tombstones",
        "DROP TABLE tombstones",
        "ALTER TABLE tombstones_of_partitions RENAME TO tombstones",
        "CREATE INDEX tombstones_by_seq ON tombstones (partition_id, seq)",
    ):
        connection.run(statement)


def _commits(connection: DatabaseConnection, blob: str) -> None:
    """Counts commits, and says who made the last one, so that caches know what they miss."""
    number = "INTEGER" if blob == "BLOB" else "BIGINT"
    connection.run(f"CREATE TABLE commits (number {number} NOT NULL, writer {blob} NOT NULL)")
    connection.run("INSERT INTO commits (number, writer) VALUES (0, ?)", (b"",))


def _creators(connection: DatabaseConnection, blob: str) -> None:
    """Adds the accounts that objects count for: at first their owners, which were keys before."""
    connection.run(
        f"""CREATE TABLE creators (
            object_type INTEGER NOT NULL, id {blob} NOT NULL, account {blob} NOT NULL,
            PRIMARY KEY (object_type, id))"""
    )
    connection.run("CREATE INDEX creators_by_account ON creators (account)")
    insert = "INSERT INTO creators (object_type, id, account) VALUES (?, ?, ?)"
    owners = ((obj, account_of(obj)) for obj in _objects(connection))
    for obj, account in owners:
        if account is not None:
            connection.run(insert, (obj.type, obj.id.raw, account))
    for object_type, propid in SECURITY_PROPERTY.items():
        sql = "DELETE FROM lookup_keys WHERE object_type=? AND propid=?"
        connection.run(sql, (object_type, propid))


STEPS: tuple[Step, ...] = (
    _objects_tombstones_partitions,
    _lookup_keys,
    _states_outbox,
    _owner_keys,
    _digests,
    _tombstones_by_partition,
    _commits,
    _creators,
)
VERSION = len(STEPS)


def migrate(connection: DatabaseConnection, version: int, blob: str) -> None:
    """Migrates a store from ``version`` (0: empty) to ``VERSION``; the caller commits."""
    if version > VERSION:
        raise StorageError(
            f"the store has schema version {version}, this mqis knows up to {VERSION}: "
            "open it with the newer mqis that wrote it"
        )
    for step in STEPS[version:]:
        step(connection, blob)
