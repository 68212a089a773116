"""The storage port over SQL, as far as the databases agree; each adds connections and types.

Statements use ``?`` and are rewritten once for a database with another placeholder. Long results
are read in pages by key, so that no database has to hold a whole result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from heapq import merge
from typing import Any, TypeVar

from mqis.protocol.directory.indexing import index_keys, path_key
from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
)
from mqis.protocol.errors import DamagedStore, StorageError
from mqis.protocol.ports import Change
from mqis.protocol.replication.digest import with_object, without_object
from mqis.storage.commits import CommitChanges
from mqis.storage.creators import CreatorRows
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.keyrows import KeyRows
from mqis.storage.outbox import OutboxTail, last_lsn, read_outbox, trim_outbox
from mqis.storage.row_conversion import (
    cached_object,
    object_row,
    partition_row,
    read_digest,
    read_object,
    read_partition,
    read_state,
    read_tombstone,
    tombstone_row,
)
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, decode_record
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

T = TypeVar("T")

#: The rows of one statement: what an event loop reads between two of its turns.
PAGE = 128
#: The machines that one transaction remembers.
MAX_HOSTS = 256

_OBJECT = "SELECT object_type, id, partition_id, seq, body FROM objects"
_OBJECT_BY_ID = f"{_OBJECT} WHERE object_type=? AND id=?"
_OBJECT_BY_PATH = f"{_OBJECT} WHERE object_type=? AND path_key=?"
_TOMBSTONE = "SELECT id, partition_id, seq, object_type, scope FROM tombstones"
_PARTITION = (
    "SELECT id, owner, last_seq, purged_seq, allowed_purge_seq, purge_state FROM partitions"
)
_DIGEST = "SELECT id, digest FROM partitions"


_INSERT = (
    "INSERT INTO objects (object_type, id, path_key, owner, partition_id, seq, body) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_IF_FREE = f"{_INSERT} ON CONFLICT DO NOTHING"

_NOTHING = PartitionDigest()


def stored_digests(
    connection: DatabaseConnection, read: Callable[[Any], DirectoryObject] = read_object
) -> dict[Guid, PartitionDigest]:
    """Computes the digests of all partitions from their objects."""
    sql = (
        f"{_OBJECT} WHERE object_type>? OR (object_type=? AND id>?) "
        f"ORDER BY object_type, id LIMIT {PAGE}"
    )
    found: dict[Guid, PartitionDigest] = {}
    last: tuple[int, bytes] = (-1 << 31, b"")
    while rows := connection.run(sql, (last[0], *last)):
        for row in rows:
            obj = read(row)
            known = found.get(obj.partition, _NOTHING)
            found[obj.partition] = with_object(known, obj, row[4])
        last = rows[-1][0], rows[-1][1]
    return found


def partition_digest(connection: DatabaseConnection, partition: Guid) -> PartitionDigest:
    """Computes the digest of a new partition from the objects that it has already."""
    sql = (
        f"{_OBJECT} WHERE partition_id=? AND (seq, object_type, id)>(?, ?, ?) "
        f"ORDER BY seq, object_type, id LIMIT {PAGE}"
    )
    found = _NOTHING
    last: tuple[bytes, int, bytes] = (b"", -1 << 31, b"")
    while rows := connection.run(sql, (partition.raw, *last)):
        for row in rows:
            found = with_object(found, read_object(row), row[4])
        last = rows[-1][3], rows[-1][0], rows[-1][1]
    return found


class SqlView:
    """``ports.View`` over one connection inside one transaction."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self._run = connection.run
        self._connection = connection

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        rows = self._run(_OBJECT_BY_ID, (object_type, id.raw))
        return next(self._each(cached_object, rows), None)

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        rows = self._run(_OBJECT_BY_PATH, (object_type, path_key(path)))
        return next(self._each(cached_object, rows), None)

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        sql = f"{_OBJECT} WHERE object_type=? AND id>? ORDER BY id LIMIT {PAGE}"
        rows = self._pages(sql, (object_type,), b"", lambda row: row[1])
        return self._each(read_object, rows)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        sql = f"{_OBJECT} WHERE object_type=? AND owner=? AND id>? ORDER BY id LIMIT {PAGE}"
        rows = self._pages(sql, (object_type, owner.raw), b"", lambda row: row[1])
        return self._each(cached_object, rows)

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        sql = (
            "SELECT o.object_type, o.id, o.partition_id, o.seq, o.body FROM lookup_keys k "
            "JOIN objects o ON o.object_type=k.object_type AND o.id=k.id "
            "WHERE k.object_type=? AND k.propid=? AND k.key=? AND k.id>? "
            f"ORDER BY k.id LIMIT {PAGE}"
        )
        rows = self._pages(sql, (object_type, propid, key), b"", lambda row: row[1])
        return self._each(cached_object, rows)

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        limits = f"WHERE partition_id=? AND seq>? ORDER BY seq LIMIT {PAGE}"
        start = after.to_bytes()
        objects = self._pages(f"{_OBJECT} {limits}", (partition.raw,), start, lambda row: row[3])
        deleted = self._pages(f"{_TOMBSTONE} {limits}", (partition.raw,), start, lambda row: row[2])
        live: Iterator[Change] = self._each(read_object, objects)
        dead: Iterator[Change] = self._each(read_tombstone, deleted)
        return merge(live, dead, key=lambda change: change.seq)

    def tombstones(self, id: Guid) -> list[DeletedObject]:  # noqa: A002
        rows = self._run(f"{_TOMBSTONE} WHERE id=? ORDER BY partition_id", (id.raw,))
        return list(self._each(read_tombstone, rows))

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        rows = self._run(f"{_PARTITION} WHERE id=?", (id.raw,))
        return next(self._each(read_partition, rows), None)

    def partitions(self) -> list[Partition]:
        found = self._each(read_partition, self._run(_PARTITION))
        return sorted(found, key=lambda partition: partition.id)

    def digest(self, id: Guid) -> PartitionDigest | None:  # noqa: A002
        rows = self._run(f"{_DIGEST} WHERE id=?", (id.raw,))
        return next(self._each(read_digest, rows), None)

    def count(self, object_type: ObjectType) -> int:
        rows = self._run("SELECT count(*) FROM objects WHERE object_type=?", (object_type,))
        return int(rows[0][0])

    def count_created(self, account: bytes) -> int:
        rows = self._run("SELECT count(*) FROM creators WHERE account=?", (account,))
        return int(rows[0][0])

    def state(self, family: str, key: bytes) -> bytes | None:
        rows = self._run("SELECT key, value FROM states WHERE family=? AND key=?", (family, key))
        return next((value for _, value in self._each(read_state, rows)), None)

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        rows = self._run("SELECT key, value FROM states WHERE family=? ORDER BY key", (family,))
        return list(self._each(read_state, rows))

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        return [decode_record(record) for _, record in self.encoded_outbox(after, limit)]

    def encoded_outbox(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The outbox records as bytes, which the journal stores as they are."""
        try:
            return read_outbox(self._connection, after, limit)
        except DamagedStore as error:
            self._connection.report_damage(error)
            raise

    def last_lsn(self) -> int:
        """The number of the newest record, even if the outbox no longer has it."""
        return last_lsn(self._connection)

    def _pages(
        self, sql: str, fixed: tuple[object, ...], start: bytes, key: Callable[[Any], bytes]
    ) -> Iterator[Any]:
        """Yields all rows of ``sql``, whose last parameter is the key before a page."""
        while rows := self._run(sql, (*fixed, start)):
            yield from rows
            if len(rows) < PAGE:
                return
            start = key(rows[-1])

    def _each(self, read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
        try:
            yield from map(read, rows)
        except DamagedStore as error:
            self._connection.report_damage(error)
            raise


class SqlTransaction(SqlView):
    """A ``ports.Transaction``: the statements that change something."""

    def __init__(self, connection: DatabaseConnection, changed: CommitChanges) -> None:
        super().__init__(connection)
        self._run = self._counted
        self.writes = 0
        self._changed = changed
        self._depth = 0
        self._tail = OutboxTail(connection)
        self._keys = KeyRows(connection)
        self._creators = CreatorRows(connection)
        # Partitions that have no tombstones: a synchronisation would look for one for each object.
        self._unburied: set[Guid] = set()
        # Every change of a group takes a number, most of them in one partition. So partitions that
        # this transaction read or changed are kept here; the changed ones are written at the end.
        self._known: dict[Guid, Partition | None] = {}
        self._unwritten: set[Guid] = set()
        # The changes of digests, and the digests before them: those of the first change in this
        # transaction, or those written last. None for a partition whose row was dropped: its
        # digest is computed when it gets one again.
        self._summed: dict[Guid, PartitionDigest] = {}
        self._digests: dict[Guid, PartitionDigest | None] = {}
        # Machines found last, by name: creating a queue looks up its machine twice, and an import
        # creates the queues of many machines in any order.
        self._hosts: dict[str, DirectoryObject] = {}

    def _counted(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Runs a statement; whatever does not read counts as a write."""
        if not sql.startswith("SELECT"):
            self.writes += 1
        return self._connection.run(sql, parameters)

    def _change(self, sql: str, parameters: Sequence[object]) -> int:
        """Runs a statement and returns the number of rows that it changed."""
        self.writes += 1
        return self._connection.change(sql, parameters)

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        if object_type is not ObjectType.MACHINE:
            return super().find(object_type, path)
        found = self._hosts.get(path)
        if found is None:
            found = super().find(object_type, path)
            if found is not None:
                if len(self._hosts) >= MAX_HOSTS:
                    self._hosts.clear()
                self._hosts[path] = found
        return found

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        if id not in self._known:
            self._known[id] = super().partition(id)
        return self._known[id]

    def digest(self, id: Guid) -> PartitionDigest | None:  # noqa: A002
        self.finish()
        return super().digest(id)

    def insert(self, obj: DirectoryObject) -> None:
        self._keep_digest(obj.partition)
        row = object_row(obj)
        self._change(_INSERT, row)
        self._inserted(obj, row[6])

    def insert_if_free(self, obj: DirectoryObject) -> bool:
        self._keep_digest(obj.partition)
        row = object_row(obj)
        if not self._change(_INSERT_IF_FREE, row):
            return False
        self._inserted(obj, row[6])
        return True

    def _inserted(self, obj: DirectoryObject, body: bytes) -> None:
        keys = list(index_keys(obj))
        self._keys.add(obj, keys)
        self._creators.add(obj)
        self._changed.add(obj, keys)
        summed = self._summed.get(obj.partition, _NOTHING)
        self._summed[obj.partition] = with_object(summed, obj, body)

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        self._hosts.clear()
        self._keep_digest(old.partition)
        self._keep_digest(new.partition)
        row = object_row(new)
        changed = self._change(
            "UPDATE objects SET path_key=?, owner=?, partition_id=?, seq=?, body=? "
            "WHERE object_type=? AND id=?",
            (*row[2:], *row[:2]),
        )
        if not changed:
            raise StorageError(f"{new.type.label} {new.id} is not in the store")
        before, after = set(index_keys(old)), set(index_keys(new))
        self._keys.drop(old, before - after)
        self._keys.add(new, after - before)
        self._changed.add(new, after - before)
        summed = self._summed
        if old.partition == new.partition and old.properties is new.properties:
            return  # a full synchronisation marks it
        summed[old.partition] = without_object(summed.get(old.partition, _NOTHING), old)
        summed[new.partition] = with_object(summed.get(new.partition, _NOTHING), new, row[6])

    def delete(self, obj: DirectoryObject) -> None:
        self._hosts.clear()
        self._keep_digest(obj.partition)
        sql = "DELETE FROM objects WHERE object_type=? AND id=?"
        if not self._change(sql, (obj.type, obj.id.raw)):
            raise StorageError(f"{obj.type.label} {obj.id} is not in the store")
        self._keys.drop(obj, index_keys(obj))
        self._creators.drop(obj)
        self._changed.add(obj, ())
        summed = self._summed.get(obj.partition, _NOTHING)
        self._summed[obj.partition] = without_object(summed, obj)

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        self._keys.write()
        return super().having(object_type, propid, key)

    def count_created(self, account: bytes) -> int:
        self._creators.write()
        return super().count_created(account)

    def put_creator(self, object_type: ObjectType, id: Guid, account: bytes) -> None:  # noqa: A002
        self.writes += 1
        self._creators.put(object_type, id, account)

    def bury(self, tombstone: DeletedObject) -> None:
        self._unburied.discard(tombstone.partition)
        self._run(
            "INSERT INTO tombstones (id, partition_id, seq, object_type, scope) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (id, partition_id) DO UPDATE SET "
            "seq=excluded.seq, object_type=excluded.object_type, scope=excluded.scope",
            tombstone_row(tombstone),
        )

    def unbury(self, partition: Guid, id: Guid) -> None:  # noqa: A002
        if partition in self._unburied:
            return
        if not self._run("SELECT 1 FROM tombstones WHERE partition_id=? LIMIT 1", (partition.raw,)):
            self._unburied.add(partition)
            return
        sql = "DELETE FROM tombstones WHERE id=? AND partition_id=?"
        self._run(sql, (id.raw, partition.raw))

    def put_partition(self, partition: Partition) -> None:
        self.writes += 1
        self._known[partition.id] = partition
        self._unwritten.add(partition.id)

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        self._known[id] = None
        self._unwritten.discard(id)
        self._digests[id] = None
        self._run("DELETE FROM partitions WHERE id=?", (id.raw,))

    def partitions(self) -> list[Partition]:
        self.finish()
        return super().partitions()

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        where, limits = "WHERE partition_id=? AND seq<=?", (partition.raw, through.to_bytes())
        count: int = self._run(f"SELECT count(*) FROM tombstones {where}", limits)[0][0]
        if count:
            self._run(f"DELETE FROM tombstones {where}", limits)
        return count

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        self._run(
            "INSERT INTO states (family, key, value) VALUES (?, ?, ?) "
            "ON CONFLICT (family, key) DO UPDATE SET value=excluded.value",
            (family, key, value),
        )

    def drop_state(self, family: str, key: bytes) -> None:
        self._run("DELETE FROM states WHERE family=? AND key=?", (family, key))

    def append(self, record: JournalRecord) -> int:
        self.writes += 1
        return self._tail.append(record)

    def encoded_outbox(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        self._tail.write()
        return super().encoded_outbox(after, limit)

    def trim_outbox(self, through: int) -> None:
        self.writes += 1
        self._tail.write()
        trim_outbox(self._connection, through)

    def finish(self) -> None:
        """Writes the deferred changes; has to be called before the commit."""
        for id_ in {*self._unwritten, *self._summed}:
            partition = self.partition(id_)
            if partition is not None:
                self._write(partition)
            else:
                self._digests.pop(id_, None)
        self._summed.clear()
        self._unwritten.clear()
        self._keys.write()
        self._creators.write()
        self._tail.write()

    def _write(self, partition: Partition) -> None:
        digest = self._new_digest(partition.id)
        self._digests[partition.id] = digest
        self._run(
            "INSERT INTO partitions (id, owner, last_seq, purged_seq, allowed_purge_seq, "
            "purge_state, digest) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "owner=excluded.owner, last_seq=excluded.last_seq, "
            "purged_seq=excluded.purged_seq, allowed_purge_seq=excluded.allowed_purge_seq, "
            "purge_state=excluded.purge_state, digest=excluded.digest",
            (*partition_row(partition), digest.to_bytes()),
        )

    def _keep_digest(self, id_: Guid) -> None:
        """Keeps the digest of a partition as it is before its first change.

        One that has no row yet may have objects all the same; mostly it has none.
        """
        if id_ not in self._digests:
            found = super().digest(id_)
            self._digests[id_] = partition_digest(self._connection, id_) if found is None else found

    def _new_digest(self, id_: Guid) -> PartitionDigest:
        self._keep_digest(id_)
        before = self._digests[id_]
        if before is None:
            return partition_digest(self._connection, id_)
        changes = self._summed.get(id_)
        return before if changes is None else before.plus(*changes)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._depth += 1
        name = f"s{self._depth}"
        self._keys.write()
        self._creators.write()
        self._run(f"SAVEPOINT {name}")
        known, unwritten = self._known.copy(), self._unwritten.copy()
        summed, digests = self._summed.copy(), self._digests.copy()
        mark = self._tail.mark()
        try:
            yield
        except BaseException:
            # What was deferred before this block still is; what the block wrote is rolled back.
            self._known, self._unwritten = known, unwritten
            self._summed, self._digests = summed, digests
            self._tail.back_to(mark)
            self._keys.forget()
            self._creators.forget()
            self._unburied.clear()
            self._hosts.clear()
            # If even this fails the transaction is lost, and its commit raises the error.
            with suppress(StorageError):
                self._run(f"ROLLBACK TO SAVEPOINT {name}")
                self._run(f"RELEASE SAVEPOINT {name}")
            raise
        else:
            self._run(f"RELEASE SAVEPOINT {name}")
        finally:
            self._depth -= 1
