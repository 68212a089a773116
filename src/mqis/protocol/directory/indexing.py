"""The properties that every store indexes, and the keys of the index.

One function for all stores, so that the same lookup is fast, and gives the same answer, in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject, name_key
from mqis.protocol.directory.types.catalogue import by_type
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.descriptor import owner_in

#: Beyond path, identifier, owner and sequence number. A list is indexed element by element.
INDEXED: dict[ObjectType, tuple[PropId, ...]] = by_type(lambda row: int(row.indexed))

#: A longer key is replaced by its digest.
MAX_KEY_BYTES = 1024


def owner_of(obj: DirectoryObject) -> Guid:
    """A machine owns its queues, a site its machines, the enterprise everything else.

    (MS-MQDS 3.1.4.21.1; the null GUID stands for the enterprise.)
    """
    if obj.type is ObjectType.QUEUE:
        machine = obj.value(PropId.Q_QMID)
        return machine if isinstance(machine, Guid) else Guid.NULL
    if obj.type is ObjectType.MACHINE:
        return next(iter(sites_of(obj)), Guid.NULL)
    return Guid.NULL


def key_of(value: Value | PropVariant) -> bytes | None:
    """The index key of one value; None for one that no index holds.

    Zero, empty and null are what an object has when nobody chose anything. Half of all objects
    share them, so an index on them costs and never helps.
    """
    if not value:
        return None
    if isinstance(value, str):
        return path_key(value)
    if isinstance(value, Guid):
        return value.raw
    if isinstance(value, bytes):
        return _bounded(value)
    return None


def index_keys(obj: DirectoryObject) -> Iterator[tuple[PropId, bytes]]:
    """Every (property, key) under which ``obj`` is to be found, each once."""
    for propid in INDEXED.get(obj.type, ()):
        value = obj.value(propid)
        keys = map(key_of, value) if isinstance(value, tuple) else [key_of(value)]
        for key in dict.fromkeys(keys):
            if key is not None:
                yield propid, key


def account_of(obj: DirectoryObject) -> bytes | None:
    """The SID that the descriptor of an object names as its owner; None without one."""
    security = SECURITY_PROPERTY.get(obj.type)
    descriptor = None if security is None else obj.value(security)
    return owner_in(descriptor) if isinstance(descriptor, bytes) else None


def path_key(path: str) -> bytes:
    """Names are unit sequences that may not be valid text, so they are keyed as bytes."""
    return _bounded(name_key(path).encode("utf-8", "surrogatepass"))


def _bounded(key: bytes) -> bytes:
    """Databases bound their keys (PostgreSQL: 2,704 bytes), a peer's strings are not bounded."""
    return key if len(key) <= MAX_KEY_BYTES else sha256(key).digest()
