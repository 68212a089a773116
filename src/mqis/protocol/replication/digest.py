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

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from struct import Struct
from typing import Protocol

from mqis.protocol.directory.objects import DirectoryObject, Partition, PartitionDigest, Scope
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.replication.replicated import CONTENT, sent_value, stored_as, zero
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag, encode_properties

_HEAD = Struct("<H16s")
#: What a damaged object raises: its bytes are hashed as they are.
_DAMAGE = (WireError, ValueError, TypeError, AttributeError)

#: A constant value, or the first and the last of consecutive values in the body of an object.
_Piece = bytes | tuple[int, int]


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
    return digest.plus(_hash(obj, body), 1, site_only=_is_site_only(obj))


def without_object(digest: PartitionDigest, obj: DirectoryObject) -> PartitionDigest:
    return digest.plus(_hash(obj, None), -1, site_only=_is_site_only(obj))


def _is_site_only(obj: DirectoryObject) -> bool:
    return obj.type is ObjectType.QUEUE and obj.value(PropId.Q_SCOPE) == Scope.SITE


def _hash(obj: DirectoryObject, body: bytes | None) -> int:
    data = encode_properties(obj.properties) if body is None else body
    head = _HEAD.pack(obj.type, obj.id.raw)
    try:
        canonical = _canonical(obj, PropertyBag(data))
    except _DAMAGE:
        canonical = data
    return int.from_bytes(sha256(head + canonical).digest(), "little")


def _canonical(obj: DirectoryObject, bag: PropertyBag) -> bytes:
    """The values of what replicates: those that are stored, by number, then the computed ones."""
    pieces, computed = _plan(obj.type, bag.ids, bag.types)
    found = [p if isinstance(p, bytes) else bag.between(*p) for p in pieces]
    found += [sent_value(obj, propid).packed() for propid in computed]
    return b"".join(found)


@lru_cache(1024)
def _plan(
    kind: ObjectType, ids: tuple[int, ...], types: tuple[int, ...]
) -> tuple[tuple[_Piece, ...], tuple[PropId, ...]]:
    """Where to find the values in a body that has these properties.

    A property that is absent has the value that replication would send. Objects of a type have a
    few sets of properties, so the plans are kept.
    """
    stored = {stored_as(propid): propid for propid in CONTENT[kind]}
    computed = [propid for propid in CONTENT[kind] if stored_as(propid) is None]
    places: list[int | bytes] = []
    for number, propid in sorted((n, p) for n, p in stored.items() if n is not None):
        if number not in ids:
            places.append(zero(propid).packed())
        elif types[ids.index(number)] == ROWS[propid].vt:
            places.append(ids.index(number))
        else:  # stored with another type than it is sent with
            computed.append(propid)
    return tuple(_runs(places)), tuple(computed)


def _runs(places: list[int | bytes]) -> Iterable[_Piece]:
    """Joins consecutive places to one piece."""
    known = list(enumerate(places))

    def run(entry: tuple[int, int | bytes]) -> object:
        at, place = entry
        return (True, at) if isinstance(place, bytes) else (False, place - at)

    for (constant, _), grouped in groupby(known, key=run):  # type: ignore[misc]
        values = [place for _, place in grouped]
        if constant:
            assert isinstance(values[0], bytes)
            yield values[0]
        else:
            assert isinstance(values[0], int)
            assert isinstance(values[-1], int)
            yield values[0], values[-1]
