"""The claims of one object: it is there, it has a name, it refers to others, it has a fault.

References come from the rows of the properties (``refers_to``), so that a new property that refers
to objects is checked without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject, name_key
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.hygiene.checks import Check
from mqis.protocol.security.access import anonymous_rights
from mqis.protocol.security.masks import QueueRights, generic_mapping
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.descriptor import SecurityDescriptor


class ClaimKind(IntEnum):
    IS = 0
    NAMED = 1
    REFERS = 2
    FAULT = 3


class Claim(NamedTuple):
    """A claim of one object. Claims of one ``key`` are judged together."""

    key: str
    kind: int
    #: The check that fails, for references and faults.
    check: str
    #: The label of the object's type.
    type: str
    id: str
    path: str | None
    detail: str


#: The check that a dangling reference fails, by the types of both ends.
_DANGLING = {
    (ObjectType.QUEUE, ObjectType.MACHINE): Check.ORPHANED_QUEUE,
    (ObjectType.MACHINE, ObjectType.SITE): Check.ORPHANED_MACHINE,
    (ObjectType.MACHINE, ObjectType.MACHINE): Check.UNKNOWN_ROUTER,
    (ObjectType.MACHINE, ObjectType.CN): Check.UNKNOWN_NETWORK,
    (ObjectType.ROUTINGLINK, ObjectType.SITE): Check.UNKNOWN_SITE,
    (ObjectType.ROUTINGLINK, ObjectType.MACHINE): Check.UNKNOWN_GATE,
    (ObjectType.SITE, ObjectType.MACHINE): Check.UNKNOWN_GATE,
}
#: Objects cannot do without these references.
_NEEDED = (Check.ORPHANED_QUEUE, Check.ORPHANED_MACHINE, Check.UNKNOWN_SITE)
#: By type: the properties that refer to other objects, the type of these, and the check.
REFERENCES: dict[ObjectType, tuple[tuple[int, ObjectType, Check], ...]] = {
    kind: tuple(
        (int(row.id), row.refers_to, _DANGLING[kind, row.refers_to])
        for row in ROWS.values()
        if row.object_type is kind and row.stored and row.refers_to is not None
    )
    for kind in ObjectType
}
_QUEUE_SECURITY = SECURITY_PROPERTY[ObjectType.QUEUE]


@lru_cache(maxsize=65_536)
def _text(guid: Guid) -> str:
    """Cached, because many objects name the same few."""
    return str(guid)


def claims_of(obj: DirectoryObject) -> Iterator[Claim]:
    """Yields all claims of an object. Its rules look at nothing else."""
    label, id_, path = obj.type.label, str(obj.id), obj.path
    yield Claim(f"{label} {id_}", ClaimKind.IS, "", label, id_, path, _text(obj.partition))
    if path is not None:
        key = f"{label} named {name_key(path)}"
        yield Claim(key, ClaimKind.NAMED, "", label, id_, path, "")
    for propid, target, check in REFERENCES[obj.type]:
        referred = _guids(obj, propid)
        if not referred and check in _NEEDED:
            yield Claim(f"{label} {id_}", ClaimKind.FAULT, check.label, label, id_, path, "")
        for guid in referred:
            referred_id = _text(guid)
            key = f"{target.label} {referred_id}"
            yield Claim(key, ClaimKind.REFERS, check.label, label, id_, path, referred_id)
    if obj.type is ObjectType.QUEUE and _is_open(obj):
        check = Check.WRITABLE
        yield Claim(f"{label} {id_}", ClaimKind.FAULT, check.label, label, id_, path, "")


def _guids(obj: DirectoryObject, propid: int) -> tuple[Guid, ...]:
    """The identifiers in a property, one or a list, without null ones and duplicates."""
    value = obj.value(propid)
    listed = value if isinstance(value, tuple) else (value,)
    return tuple(dict.fromkeys(item for item in listed if isinstance(item, Guid) and item))


# --- permissions ----------------------------------------------------------------------------------


def _is_open(queue: DirectoryObject) -> bool:
    descriptor = queue.value(_QUEUE_SECURITY)
    return isinstance(descriptor, bytes) and anonymous_may_send(descriptor)


@lru_cache(maxsize=4096)
def anonymous_may_send(octets: bytes) -> bool:
    """Returns whether anonymous users may send to a queue with this security descriptor.

    Cached, because most queues of a directory have one of a few descriptors.
    """
    try:
        descriptor = SecurityDescriptor.from_bytes(octets)
    except (WireError, ValueError):
        return False
    granted = anonymous_rights(descriptor, generic_mapping(ObjectType.QUEUE))
    return QueueRights.WRITE_MESSAGE in QueueRights(granted)
