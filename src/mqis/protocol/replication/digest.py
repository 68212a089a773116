"""The digest of a partition's contents: equal in all copies that hold the same.

The digest is the sum, modulo 2^256, of a SHA-256 for each object. So the order of changes does not
matter, and a store keeps it up to date with one addition or subtraction for each change. What is
hashed is what replicates, by the rule of ``convergence``: the type, the identifier and the
properties of ``replicated.content``. Numbers are not: an object that a full synchronisation has
marked is still the same. Tombstones are not: backup controllers keep none, and others purge them
at different times.

Queues that only their site knows are summed apart, because servers of other sites need not have
them (E58).

A sum of hashes finds accidents, stale copies and edited files. It does not stop somebody who can
choose thousands of objects at will; signatures do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Protocol

from mqis.protocol.directory.objects import (
    SECURITY_PROPERTY,
    DirectoryObject,
    Partition,
    PartitionDigest,
    Scope,
)
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.replication.replicated import CONTENT, content, may_be_absent, stored_as
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import TableShape, encode_properties

_HEADS = {kind: bytes([kind]) for kind in ObjectType}
#: Looking a member up in its class takes longer than comparing it.
_QUEUE, _SCOPE, _SITE = ObjectType.QUEUE, PropId.Q_SCOPE, Scope.SITE
_Shape = tuple[TableShape | None, tuple[PropId, ...]]
#: What a damaged object raises: its bytes are hashed as they are.
_DAMAGE = (WireError, ValueError, TypeError, AttributeError)


class _ObjectsView(Protocol):
    """The part of ``ports.View`` that is read here; stores, which implement it, import this."""

    def partitions(self) -> list[Partition]: ...

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]: ...


def computed_digests(view: _ObjectsView) -> dict[Guid, PartitionDigest]:
    """The digests of all partitions, computed from their objects."""
    found = {partition.id: PartitionDigest() for partition in view.partitions()}
    for kind in ObjectType:
        for obj in view.objects(kind):
            found[obj.partition] = with_object(found.get(obj.partition, PartitionDigest()), obj)
    return found


def with_object(
    digest: PartitionDigest, obj: DirectoryObject, body: bytes | None = None
) -> PartitionDigest:
    """The digest with one object more; ``body``: its encoded properties, if they are at hand."""
    value = _hash(obj, body)
    return digest.plus(0, value, 1) if _is_site_only(obj) else digest.plus(value)


def without_object(digest: PartitionDigest, obj: DirectoryObject) -> PartitionDigest:
    value = _hash(obj, None)
    return digest.plus(0, -value, -1) if _is_site_only(obj) else digest.plus(-value)


def _is_site_only(obj: DirectoryObject) -> bool:
    if obj.type is not _QUEUE:
        return False
    try:
        scope = obj.properties.get(_SCOPE)
    except _DAMAGE:
        return False
    return scope is not None and scope.value == _SITE


def _hash(obj: DirectoryObject, body: bytes | None) -> int:
    data = encode_properties(obj.properties) if body is None else body
    try:
        if not _is_canonical(obj, data):
            data = _canonical(obj)
    except _DAMAGE:
        pass
    head = _HEADS[obj.type] + obj.id.raw
    return int.from_bytes(sha256(head + data).digest(), "little")


def _canonical(obj: DirectoryObject) -> bytes:
    """The encoded content. What may be absent is left out if it is empty, as replicas do."""
    omitted = _OPTIONAL[obj.type]
    found = content(obj)
    return encode_properties({p: v for p, v in found.items() if v.value or p not in omitted})


def _is_canonical(obj: DirectoryObject, body: bytes) -> bool:
    """Returns whether the stored form is the canonical one, as it is of most queues."""
    shape, filled = _SHAPES[obj.type].get(body[:1], _NO_SHAPE)
    if shape is None or not shape.fits(body):
        return False
    properties = obj.properties
    for propid in filled:  # noqa: SIM110 -- a generator takes twice the time
        if not properties[propid].value:
            return False
    return True


def _shapes(kind: ObjectType) -> dict[bytes, _Shape]:
    """The shapes of an object that stores exactly its content: with a descriptor, and without.

    They differ in the number of properties, which is in the first byte. Each comes with the
    properties that must not be empty.
    """
    listed, optional = CONTENT[kind], _OPTIONAL[kind]
    if any(stored_as(propid) is not propid for propid in listed):
        return {}
    found: dict[bytes, _Shape] = {}
    for missing in (SECURITY_PROPERTY.get(kind), None):
        stored = [propid for propid in listed if propid != missing]
        types: dict[int, int] = {propid: ROWS[propid].vt for propid in stored}
        filled = tuple(propid for propid in stored if propid in optional)
        found[bytes([len(types)])] = TableShape(types), filled
    return found


#: By type, the properties that a replica does not store if they are empty.
_OPTIONAL = {
    kind: frozenset(propid for propid in listed if may_be_absent(propid))
    for kind, listed in CONTENT.items()
}
_SHAPES = {kind: _shapes(kind) for kind in CONTENT}
_NO_SHAPE: _Shape = (None, ())
