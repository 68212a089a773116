"""The faults of rows that ``mqis store check`` looks for, beside those of ``content_faults``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mqis.protocol.directory.indexing import index_keys
from mqis.protocol.directory.objects import DirectoryObject, PartitionDigest
from mqis.protocol.errors import DamagedStore
from mqis.protocol.ports import View
from mqis.storage.commits import commit_faults
from mqis.storage.creators import creator_faults
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.outbox import split_row
from mqis.storage.row_conversion import (
    hex_id,
    object_row,
    read_digest,
    read_object,
    read_partition,
    read_state,
    read_tombstone,
    read_whole_object,
)
from mqis.storage.sql_store import PAGE, SqlView, stored_digests
from mqis.texts import counted
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import decode_record
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber

T = TypeVar("T")

_OBJECT = ("object_type", "id", "path_key", "owner", "partition_id", "seq", "body")
_TOMBSTONE = ("id", "partition_id", "seq", "object_type", "scope")
_PARTITION = ("id", "owner", "last_seq", "purged_seq", "allowed_purge_seq", "purge_state")


def database_faults(connection: DatabaseConnection) -> Iterator[str]:
    """Yields the faults of the rows, then those in the contents of the readable rows."""
    yield from _object_faults(connection)
    yield from _tombstone_faults(connection)
    for row in connection.run(f"SELECT {', '.join(_PARTITION)} FROM partitions ORDER BY id"):
        yield from _damage(read_partition, row)
    yield from _digest_faults(connection)
    for row in connection.run("SELECT key, value FROM states ORDER BY family, key"):
        yield from _damage(read_state, row)
    yield from _outbox_faults(connection)
    yield from commit_faults(connection)
    yield from creator_faults(connection)
    yield from view_faults(_SoundRows(connection))


class _SoundRows(SqlView):
    """A view of the readable rows of a damaged store; the functions below name the others."""

    def _each(self, read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
        whole = read_whole_object if read is read_object else read
        for row in rows:
            if not list(_damage(whole, row)):
                yield read(row)


def _damage(read: Callable[[Any], object], row: object) -> Iterator[str]:
    try:
        read(row)
    except DamagedStore as error:
        yield error.detail


def _object_faults(connection: DatabaseConnection) -> Iterator[str]:
    """Yields columns and index entries that differ from the object's body."""
    accounted = 0
    for row in _object_rows(connection):
        try:
            obj = read_whole_object((row[0], row[1], *row[4:]))
        except DamagedStore as error:
            yield error.detail
            accounted += _count(connection, "WHERE object_type=? AND id=?", *row[:2])
            continue
        where = f"object {obj.id.raw.hex()} of type {row[0]}"
        for column, stored, wanted in zip(_OBJECT, row, object_row(obj), strict=True):
            if stored != wanted:
                yield f"{where}: column {column} differs from the object"
        for propid, key in index_keys(obj):
            entry = "WHERE object_type=? AND propid=? AND key=? AND id=?"
            found = _count(connection, entry, obj.type, propid, key, obj.id.raw)
            accounted += found
            if not found:
                yield f"{where}: is not indexed by property {int(propid)}"
    strays = _count(connection) - accounted
    if strays:
        yield f"{strays} index entries belong to no object"


def _count(connection: DatabaseConnection, where: str = "", *parameters: object) -> int:
    return int(connection.run(f"SELECT count(*) FROM lookup_keys {where}", parameters)[0][0])


def _object_rows(connection: DatabaseConnection) -> Iterator[Any]:
    sql = (
        f"SELECT {', '.join(_OBJECT)} FROM objects WHERE object_type>? OR (object_type=? AND id>?)"
        f" ORDER BY object_type, id LIMIT {PAGE}"
    )
    last: tuple[int, bytes] = (-1 << 31, b"")
    while rows := connection.run(sql, (last[0], *last)):
        yield from rows
        last = rows[-1][0], rows[-1][1]


def _tombstone_faults(connection: DatabaseConnection) -> Iterator[str]:
    partitions = {row[0] for row in connection.run("SELECT id FROM partitions")}
    sql = (
        f"SELECT {', '.join(_TOMBSTONE)} FROM tombstones WHERE (id, partition_id)>(?, ?) "
        f"ORDER BY id, partition_id LIMIT {PAGE}"
    )
    last = b"", b""
    while rows := connection.run(sql, last):
        for row in rows:
            yield from _damage(read_tombstone, row)
            if row[1] not in partitions:
                yield f"tombstone {hex_id(row[0])} is in a partition that does not exist"
        last = rows[-1][0], rows[-1][1]


def _digest_faults(connection: DatabaseConnection) -> Iterator[str]:
    """Yields the partitions whose digest is not that of their objects.

    Objects that cannot be read are faults of their own, and then no digest fits.
    """
    try:
        right = stored_digests(connection, read_whole_object)
    except DamagedStore:
        return
    for row in connection.run("SELECT id, digest FROM partitions ORDER BY id"):
        try:
            found = read_digest(row)
        except DamagedStore as error:
            yield error.detail
            continue
        if found != right.get(Guid(row[0]), PartitionDigest()):
            yield (
                f"partition {hex_id(row[0])}: its digest differs from its objects, so an object "
                "was changed, added or removed by something else than mqis"
            )


def _outbox_faults(connection: DatabaseConnection) -> Iterator[str]:
    counters = [row[0] for row in connection.run("SELECT lsn FROM outbox_last")]
    if len(counters) != 1:
        yield f"the outbox has {counted(len(counters), 'counter')} instead of one"
    sql = f"SELECT lsn, records FROM outbox WHERE lsn>? ORDER BY lsn LIMIT {PAGE}"
    last = -1 << 63
    while rows := connection.run(sql, (last,)):
        for row in rows:
            yield from _damage(_read_records, row)
        last = rows[-1][0]
        if counters and last > counters[0]:
            yield f"the outbox holds record {last}, but its counter is {counters[0]}"


def _read_records(row: tuple[int, bytes]) -> None:
    for lsn, record in split_row(row):
        try:
            decode_record(record)
        except WireError as error:
            raise DamagedStore(f"record {lsn} of the outbox is damaged: {error}") from error


def view_faults(view: View) -> Iterator[str]:
    """Yields the faults of the contents: numbers, partitions, tombstones, properties."""
    known = {partition.id: partition for partition in view.partitions()}
    for object_type in ObjectType:
        for obj in view.objects(object_type):
            yield from _object_faults_content_faults(obj)
            if obj.partition not in known:
                yield f"{_name(obj)} is in partition {obj.partition}, which does not exist"
            if any(gone.partition == obj.partition for gone in view.tombstones(obj.id)):
                yield f"{_name(obj)} exists and also has a tombstone"
    for partition in known.values():
        previous = None
        for change in view.changes(partition.id, SequenceNumber.MIN):
            if change.seq == previous:
                yield f"number {change.seq} of partition {partition.id} is used twice"
            previous = change.seq
        if previous is not None and previous > partition.last_seq:
            yield (
                f"partition {partition.id} ends at {partition.last_seq}, "
                f"but holds a change numbered {previous}"
            )


def _object_faults_content_faults(obj: DirectoryObject) -> Iterator[str]:
    for propid, variant in obj.properties.items():
        entry = PROPERTIES.get(propid)
        if entry is None or entry.object_type is not obj.type:
            yield f"{_name(obj)} has property {propid}, which its type does not have"
        elif entry.vt is not variant.vt:
            yield f"{_name(obj)} has {entry.name} as {variant.vt}, not {entry.vt}"


def _name(obj: DirectoryObject) -> str:
    return f"{obj.type.label} {obj.path or obj.id}"
