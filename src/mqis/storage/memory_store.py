"""A store in memory, for tests and simulations: the port's rules without a disk.

The store consists of layers. The root layer holds the committed contents; a transaction and each
savepoint put another layer on top, with the differences only. A lookup goes from the top down, a
commit merges a layer into the one below, a rollback drops it. Readers keep the root that they
started with: a commit changes it in place if there are no readers, otherwise it changes a copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from threading import Lock

from mqis.protocol.directory.indexing import account_of, index_keys, owner_of, path_key
from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
)
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Change, Transaction, View
from mqis.protocol.replication.digest import with_object, without_object
from mqis.storage.rowfaults import view_faults
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, encode_record
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

#: The key of a change: type and identifier of an object; identifier and partition of a tombstone.
_Key = tuple[int, bytes]
_TOMBSTONE = 0
_NOTHING = PartitionDigest()
#: The changes of one partition, by number.
_Order = list[tuple[SequenceNumber, _Key]]


class _Layer:
    """A layer of changes, indexed for the port's lookups. ``None`` marks a removed item."""

    def __init__(self, below: _Layer | None = None) -> None:
        self.below = below
        self.readers = 0
        self.items: dict[_Key, Change | None] = {}
        self.partitions: dict[Guid, Partition | None] = {}
        #: The changes of the partitions' digests in this layer; in the root, the digests.
        self.digests: dict[Guid, PartitionDigest] = {}
        self.states: dict[tuple[str, bytes], bytes | None] = {}
        #: The accounts that objects count for (``storage.creators``).
        self.creators: dict[_Key, bytes | None] = {}
        #: Records appended here; those up to ``trimmed`` are gone, in every layer below too.
        self.outbox: list[tuple[int, JournalRecord]] = []
        self.last_lsn: int = 0 if below is None else below.last_lsn
        self.trimmed: int = 0 if below is None else below.trimmed
        self.index: defaultdict[object, set[bytes]] = defaultdict(set)
        self.order: defaultdict[Guid, _Order] = defaultdict(list)
        #: The sorted result of ``listed``, until a partition changes here.
        self._listed: list[Partition] | None = None

    def chain(self) -> Iterator[_Layer]:
        layer: _Layer | None = self
        while layer is not None:
            yield layer
            layer = layer.below

    def lookup(self, key: _Key) -> Change | None:
        for layer in self.chain():
            if key in layer.items:
                return layer.items[key]
        return None

    def put_partition(self, id_: Guid, partition: Partition | None) -> None:
        self.partitions[id_] = partition
        self._listed = None

    def listed(self) -> list[Partition]:
        """The partitions ordered by identifier; callers must copy the list before changing it."""
        if self.below is not None and not self.partitions:
            return self.below.listed()
        if self._listed is None:
            merged: dict[Guid, Partition | None] = {}
            for layer in reversed(list(self.chain())):
                merged.update(layer.partitions)
            found = (partition for partition in merged.values() if partition is not None)
            self._listed = sorted(found, key=lambda partition: partition.id.big_endian)
        return self._listed

    def candidates(self, term: object) -> list[bytes]:
        """Identifiers indexed under a term in any layer; the caller checks each again."""
        return sorted(set().union(*(layer.index.get(term, ()) for layer in self.chain())))

    def put(self, key: _Key, change: Change | None) -> None:
        self._remove_from_index(key, self.items.get(key))
        self.items[key] = change
        self._add_to_index(key, change)

    def _add_to_index(self, key: _Key, change: Change | None) -> None:
        if change is not None:
            insort(self.order[change.partition], (change.seq, key))
            for term in _terms(change):
                self.index[term].add(key[1])

    def _remove_from_index(self, key: _Key, change: Change | None) -> None:
        if change is not None:
            order = self.order[change.partition]
            del order[bisect_left(order, (change.seq, key))]
            for term in _terms(change):
                self.index[term].discard(key[1])

    def fold(self, upper: _Layer) -> None:
        """Merges ``upper``, the layer on top of this one."""
        for key, change in upper.items.items():
            self.put(key, change)
            if change is None and self.below is None:
                del self.items[key]
        if upper.partitions:
            self.partitions.update(upper.partitions)
            self._listed = None
        for id_, changes in upper.digests.items():
            self.digests[id_] = self.digests.get(id_, _NOTHING).plus(*changes)
        self.states.update(upper.states)
        self.creators.update(upper.creators)
        self.outbox += upper.outbox
        self.last_lsn, self.trimmed = upper.last_lsn, upper.trimmed
        if self.below is None:
            self._forget_removed(upper)

    def _forget_removed(self, upper: _Layer) -> None:
        """Removes the marks of removed items: below the root there is nothing to hide."""
        for id_ in [id_ for id_, partition in upper.partitions.items() if partition is None]:
            del self.partitions[id_]
        for key in [key for key, value in upper.states.items() if value is None]:
            del self.states[key]
        for gone in [gone for gone, account in upper.creators.items() if account is None]:
            del self.creators[gone]
        del self.outbox[: _behind(self.outbox, self.trimmed)]

    def snapshot(self) -> _Layer:
        twin = _Layer()
        twin.items = copy(self.items)
        twin.partitions = copy(self.partitions)
        twin.digests = copy(self.digests)
        twin.states = copy(self.states)
        twin.creators = copy(self.creators)
        twin.outbox = copy(self.outbox)
        twin.last_lsn, twin.trimmed = self.last_lsn, self.trimmed
        twin.index.update({term: set(ids) for term, ids in self.index.items()})
        twin.order.update({partition: list(seqs) for partition, seqs in self.order.items()})
        return twin


def _tombstone_key(partition: Guid, id_: Guid) -> _Key:
    return _TOMBSTONE, id_.raw + partition.raw


def _terms(change: Change) -> Iterator[object]:
    if isinstance(change, DirectoryObject):
        yield change.type
        yield "owner", change.type, owner_of(change)
        if change.path is not None:
            yield "path", change.type, path_key(change.path)
        for propid, key in index_keys(change):
            yield change.type, propid, key
    else:
        yield "tombstone", change.id


def _after(order: _Order, seq: SequenceNumber) -> int:
    """The index of the first entry with a greater number."""
    return bisect_right(order, seq, key=lambda entry: entry[0])


def _behind(outbox: list[tuple[int, JournalRecord]], lsn: int) -> int:
    """The index of the first record with a greater number."""
    return bisect_right(outbox, lsn, key=lambda entry: entry[0])


class _LayerView:
    """``ports.View`` and ``ports.Transaction`` over the top of a chain of layers."""

    def __init__(self, top: _Layer) -> None:
        self._top = top

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        found = self._top.lookup((object_type, id.raw))
        return found if isinstance(found, DirectoryObject) else None

    def _indexed(self, object_type: ObjectType, term: object) -> Iterator[DirectoryObject]:
        for raw in self._top.candidates(term):
            obj = self.get(object_type, Guid(raw))
            if obj is not None and term in _terms(obj):
                yield obj

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        return next(self._indexed(object_type, ("path", object_type, path_key(path))), None)

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        return self._indexed(object_type, object_type)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        return self._indexed(object_type, ("owner", object_type, owner))

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        return self._indexed(object_type, (object_type, propid, key))

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        return self._numbered(partition, lambda order: order[_after(order, after) :])

    def _numbered(self, partition: Guid, cut: Callable[[_Order], _Order]) -> Iterator[Change]:
        """The changes of a partition in the part of each layer's order that ``cut`` selects."""
        filed: set[tuple[SequenceNumber, _Key]] = set()
        for layer in self._top.chain():
            filed.update(cut(layer.order.get(partition, [])))
        for seq, key in sorted(filed):
            change = self._top.lookup(key)
            if change is not None and change.seq == seq and change.partition == partition:
                yield change

    def tombstones(self, id: Guid) -> list[DeletedObject]:  # noqa: A002
        raws = self._top.candidates(("tombstone", id))
        found = (self._top.lookup((_TOMBSTONE, raw)) for raw in raws)
        return [change for change in found if isinstance(change, DeletedObject)]

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        for layer in self._top.chain():
            if id in layer.partitions:
                return layer.partitions[id]
        return None

    def partitions(self) -> list[Partition]:
        return self._top.listed().copy()

    def digest(self, id: Guid) -> PartitionDigest | None:  # noqa: A002
        if self.partition(id) is None:
            return None
        found = PartitionDigest()
        for layer in self._top.chain():
            if id in layer.digests:
                found = found.plus(*layer.digests[id])
        return found

    def count(self, object_type: ObjectType) -> int:
        return sum(1 for _ in self.objects(object_type))

    def count_created(self, account: bytes) -> int:
        return sum(known == account for known in self._creators().values())

    def _creators(self) -> dict[_Key, bytes | None]:
        merged: dict[_Key, bytes | None] = {}
        for layer in reversed(list(self._top.chain())):
            merged.update(layer.creators)
        return merged

    def state(self, family: str, key: bytes) -> bytes | None:
        for layer in self._top.chain():
            if (family, key) in layer.states:
                return layer.states[family, key]
        return None

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        merged: dict[tuple[str, bytes], bytes | None] = {}
        for layer in reversed(list(self._top.chain())):
            merged.update(layer.states)
        return sorted((k, v) for (f, k), v in merged.items() if f == family and v is not None)

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        found: list[tuple[int, JournalRecord]] = []
        start = max(after, self._top.trimmed)
        for layer in reversed(list(self._top.chain())):
            first = _behind(layer.outbox, start)
            found += layer.outbox[first : first + limit - len(found)]
        return found

    @property
    def writes(self) -> None:
        """Not counted: a savepoint is cheap."""

    def insert(self, obj: DirectoryObject) -> None:
        if self.get(obj.type, obj.id) is not None:
            raise StorageError(f"{obj.type.label} {obj.id} is already in the store")
        self._check_name(obj)
        self._top.put((obj.type, obj.id.raw), obj)
        account, known = account_of(obj), self._creator((obj.type, obj.id.raw))
        if account is not None and known is None:
            self.put_creator(obj.type, obj.id, account)
        self._sum(obj.partition, with_object(self._summed(obj.partition), obj))

    def insert_if_free(self, obj: DirectoryObject) -> bool:
        named = None if obj.path is None else self.find(obj.type, obj.path)
        if named is not None or self.get(obj.type, obj.id) is not None:
            return False
        self.insert(obj)
        return True

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        self._expect(old)
        self._check_name(new)
        self._top.put((new.type, new.id.raw), new)
        if old.partition == new.partition and old.properties is new.properties:
            return  # a full synchronisation marks it
        self._sum(old.partition, without_object(self._summed(old.partition), old))
        self._sum(new.partition, with_object(self._summed(new.partition), new))

    def delete(self, obj: DirectoryObject) -> None:
        self._expect(obj)
        self._top.put((obj.type, obj.id.raw), None)
        self._top.creators[obj.type, obj.id.raw] = None
        self._sum(obj.partition, without_object(self._summed(obj.partition), obj))

    def put_creator(self, object_type: ObjectType, id: Guid, account: bytes) -> None:  # noqa: A002
        self._top.creators[object_type, id.raw] = account

    def _creator(self, key: _Key) -> bytes | None:
        found = (layer.creators[key] for layer in self._top.chain() if key in layer.creators)
        return next(found, None)

    def _summed(self, partition: Guid) -> PartitionDigest:
        """The changes of a digest in the top layer."""
        return self._top.digests.get(partition, _NOTHING)

    def _sum(self, partition: Guid, changes: PartitionDigest) -> None:
        self._top.digests[partition] = changes

    def _expect(self, obj: DirectoryObject) -> None:
        if self.get(obj.type, obj.id) is None:
            raise StorageError(f"{obj.type.label} {obj.id} is not in the store")

    def _check_name(self, obj: DirectoryObject) -> None:
        other = None if obj.path is None else self.find(obj.type, obj.path)
        if other is not None and other.id != obj.id:
            raise StorageError(f"{obj.type.label} {obj.path} is already in the store")

    def bury(self, tombstone: DeletedObject) -> None:
        self._top.put(_tombstone_key(tombstone.partition, tombstone.id), tombstone)

    def unbury(self, partition: Guid, id: Guid) -> None:  # noqa: A002
        self._top.put(_tombstone_key(partition, id), None)

    def put_partition(self, partition: Partition) -> None:
        self._top.put_partition(partition.id, partition)

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        self._top.put_partition(id, None)

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        listed = self._numbered(partition, lambda order: order[: _after(order, through)])
        doomed = [change.id for change in listed if isinstance(change, DeletedObject)]
        for id_ in doomed:
            self.unbury(partition, id_)
        return len(doomed)

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        self._top.states[family, key] = value

    def drop_state(self, family: str, key: bytes) -> None:
        self._top.states[family, key] = None

    def append(self, record: JournalRecord) -> int:
        lsn = self._top.last_lsn + 1
        encode_record(lsn, record)  # refuses a record that no journal could hold
        self._top.last_lsn = lsn
        self._top.outbox.append((lsn, record))
        return lsn

    def trim_outbox(self, through: int) -> None:
        self._top.trimmed = max(self._top.trimmed, min(through, self._top.last_lsn))

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        below = self._top
        self._top = _Layer(below)
        try:
            yield
            below.fold(self._top)
        finally:
            self._top = below


class MemoryStore:
    """A ``ports.Store`` in memory."""

    def __init__(self) -> None:
        self._root = _Layer()
        self._write_lock = Lock()
        self._root_lock = Lock()

    @contextmanager
    def read(self) -> Iterator[View]:
        with self._root_lock:
            root = self._root
            root.readers += 1
        try:
            yield _LayerView(root)
        finally:
            with self._root_lock:
                root.readers -= 1

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._write_lock:
            top = _Layer(self._root)
            yield _LayerView(top)
            with self._root_lock:
                if self._root.readers:
                    self._root = self._root.snapshot()
                self._root.fold(top)

    def check(self) -> list[str]:
        with self.read() as view:
            return list(view_faults(view))

    def close(self) -> None:
        self._root = _Layer()
