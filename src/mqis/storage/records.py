"""Directory values as database rows and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from mqis.protocol.directory.indexing import owner_of, path_key
from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
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

#: What a row that someone else wrote, or a bad disk, can make the constructors raise.
_DAMAGE = (WireError, ValueError, TypeError, AttributeError)


def object_row(obj: DirectoryObject) -> Row:
    """(object_type, id, path_key, owner, partition_id, seq, body)."""
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


#: The call of an enumeration takes as long as the rest of a row.
_TYPES = {int(kind): kind for kind in ObjectType}

ObjectRow = tuple[int, bytes, bytes, bytes, bytes]


def read_object(row: ObjectRow) -> DirectoryObject:
    """From (object_type, id, partition_id, seq, body); the body is decoded as it is looked at."""
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


#: How large the body of an object may be that is remembered.
MAX_BODY_BYTES = 2_048
_known: dict[str, Callable[[ObjectRow], DirectoryObject]] = {}


def remember(objects: int) -> None:
    """How many objects all stores of this process remember from now on."""
    _known["object"] = lru_cache(objects)(read_object)


remember(16_384)


def known_object(row: ObjectRow) -> DirectoryObject:
    """``read_object``, for one that is likely to be asked for again.

    To make an object takes longer than to find its row. Rows that are equal, whoever wrote them
    and when, are the same object, and objects never change: those seen last are given again.
    """
    body = row[4]
    small = isinstance(body, bytes) and len(body) <= MAX_BODY_BYTES
    return _known["object"](row) if small else read_object(row)


def read_whole_object(row: ObjectRow) -> DirectoryObject:
    """The same, with every byte of the body checked now."""
    obj = read_object(row)
    try:
        return replace(obj, properties=decode_properties(row[4]))
    except _DAMAGE as error:
        raise _damaged_object(row, error) from error


def tombstone_row(tombstone: DeletedObject) -> Row:
    """(id, partition_id, seq, object_type, scope)."""
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
    """(id, owner, last_seq, purged_seq, allowed_purge_seq, purge_state)."""
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


def read_state(row: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """From (key, value), which SQLite would let be anything."""
    key, value = row
    if not isinstance(key, bytes) or not isinstance(value, bytes):
        raise DamagedStore(f"state {hex_id(key)} is damaged: key and value have to be bytes")
    return key, value


def hex_id(raw: object) -> str:
    """How a damaged row is named: its identifier need not be one."""
    return raw.hex() if isinstance(raw, bytes) else repr(raw)


def _damaged_object(row: Row, error: Exception) -> DamagedStore:
    return DamagedStore(f"object {hex_id(row[1])} of type {row[0]} is damaged: {error}")


def _seq(data: bytes) -> SequenceNumber:
    if len(data) != SequenceNumber.SIZE:
        raise ValueError(f"a sequence number has {SequenceNumber.SIZE} bytes, not {len(data)}")
    return SequenceNumber.from_bytes(data)
