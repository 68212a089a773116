"""The conversion between directory values and database rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from mqis.protocol.directory.indexing import owner_of, path_key
from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
    PurgeState,
    Scope,
)
from mqis.protocol.errors import DamagedStore
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import PropertyBag, decode_properties, encode_properties
from mqis.wire.seqnum import SequenceNumber

Row = tuple[object, ...]

#: The exceptions that damaged rows cause in the constructors.
_DAMAGE = (WireError, ValueError, TypeError, AttributeError)


WrittenRow = tuple[int, bytes, bytes | None, bytes, bytes, bytes, bytes]


def object_row(obj: DirectoryObject) -> WrittenRow:
    """The row (object_type, id, path_key, owner, partition_id, seq, body)."""
    path = obj.path
    return (
        int(obj.type),
        obj.id.raw,
        None if path is None else path_key(path),
        owner_of(obj).raw,
        obj.partition.raw,
        obj.seq.to_bytes(),
        encode_properties(obj.properties),
    )


#: The object types by number: calling an enumeration takes as long as the rest of a row.
_TYPES = {int(kind): kind for kind in ObjectType}

ObjectRow = tuple[int, bytes, bytes, bytes, bytes]


def read_object(row: ObjectRow) -> DirectoryObject:
    """Reads (object_type, id, partition_id, seq, body); the body is decoded on access."""
    try:
        return DirectoryObject(
            _TYPES.get(row[0]) or ObjectType(row[0]),
            Guid(row[1]),
            Guid(row[2]),
            _seq(row[3]),
            PropertyBag(row[4]),
        )
    except _DAMAGE as error:
        raise _damaged_object(row, error) from error


#: The largest body of an object that is cached.
MAX_BODY_BYTES = 2_048
_known: dict[str, Callable[[ObjectRow], DirectoryObject]] = {}


def remember(objects: int) -> None:
    """Sets the number of objects that all stores of this process cache together."""
    _known["object"] = lru_cache(objects)(read_object)


remember(16_384)


def cached_object(row: ObjectRow) -> DirectoryObject:
    """Reads an object, from the cache if it is there.

    Making an object takes longer than finding its row. Equal rows are equal objects, and objects
    never change, so the most recently used ones are shared.
    """
    body = row[4]
    small = isinstance(body, bytes) and len(body) <= MAX_BODY_BYTES
    return _known["object"](row) if small else read_object(row)


def read_whole_object(row: ObjectRow) -> DirectoryObject:
    """Reads an object and checks every byte of its body now."""
    obj = read_object(row)
    try:
        return replace(obj, properties=decode_properties(row[4]))
    except _DAMAGE as error:
        raise _damaged_object(row, error) from error


def tombstone_row(tombstone: DeletedObject) -> Row:
    """The row (id, partition_id, seq, object_type, scope)."""
    return (
        tombstone.id.raw,
        tombstone.partition.raw,
        tombstone.seq.to_bytes(),
        int(tombstone.object_type),
        int(tombstone.scope),
    )


def read_tombstone(row: tuple[bytes, bytes, bytes, int, int]) -> DeletedObject:
    try:
        return DeletedObject(
            Guid(row[0]),
            Guid(row[1]),
            _seq(row[2]),
            ObjectType(row[3]),
            Scope(row[4]),
        )
    except _DAMAGE as error:
        raise DamagedStore(f"tombstone {hex_id(row[0])} is damaged: {error}") from error


def partition_row(partition: Partition) -> Row:
    """The row (id, owner, last_seq, purged_seq, allowed_purge_seq, purge_state)."""
    return (
        partition.id.raw,
        partition.owner.encode("utf-8", "surrogatepass"),
        partition.last_seq.to_bytes(),
        partition.purged_seq.to_bytes(),
        partition.allowed_purge_seq.to_bytes(),
        int(partition.purge_state),
    )


def read_partition(row: tuple[bytes, bytes, bytes, bytes, bytes, int]) -> Partition:
    try:
        return Partition(
            Guid(row[0]),
            row[1].decode("utf-8", "surrogatepass"),
            _seq(row[2]),
            _seq(row[3]),
            _seq(row[4]),
            PurgeState(row[5]),
        )
    except _DAMAGE as error:
        raise DamagedStore(f"partition {hex_id(row[0])} is damaged: {error}") from error


def read_digest(row: tuple[bytes, bytes]) -> PartitionDigest:
    """Reads (id, digest) of a partition."""
    try:
        return PartitionDigest.from_bytes(row[1])
    except _DAMAGE as error:
        raise DamagedStore(
            f"partition {hex_id(row[0])} is damaged: its digest is not one: {error}"
        ) from error


def read_state(row: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Reads (key, value) and checks their types, which SQLite does not enforce."""
    key, value = row
    if not isinstance(key, bytes) or not isinstance(value, bytes):
        raise DamagedStore(f"state {hex_id(key)} is damaged: key and value have to be bytes")
    return key, value


def hex_id(raw: object) -> str:
    """The name of a damaged row: its identifier, which may be anything."""
    return raw.hex() if isinstance(raw, bytes) else repr(raw)


def _damaged_object(row: Row, error: Exception) -> DamagedStore:
    return DamagedStore(f"object {hex_id(row[1])} of type {row[0]} is damaged: {error}")


def _seq(data: bytes) -> SequenceNumber:
    if len(data) != SequenceNumber.SIZE:
        raise ValueError(f"a sequence number has {SequenceNumber.SIZE} bytes, not {len(data)}")
    return SequenceNumber.from_bytes(data)
