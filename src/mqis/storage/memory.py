"""A store in memory, for tests and simulations: the port's rules without a disk.

Layers do the work. The root layer holds what is committed; a transaction and each savepoint lay
another one on top, which holds just what differs. Looking up goes from the top down, committing
folds a layer into the one below, rolling back drops it. Readers keep the root they started with:
a commit changes it in place when nobody reads, else it changes a copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from threading import Lock

from mqis.protocol.directory.indexing import index_keys, owner_of, path_key
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Change, Transaction, View
from mqis.storage.faults import view_faults
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

#: What a change is filed under: objects by type and identifier, tombstones by identifier alone.
_Key = tuple[int, bytes]
_TOMBSTONE = 0


class _Layer:
    """Changes keyed as the port looks them up. ``None`` marks what this layer removes."""

    def __init__(self, below: _Layer | None = None) -> None:
        self.below = below
        self.readers = 0
        self.items: dict[_Key, Change | None] = {}
        self.partitions: dict[Guid, Partition] = {}
        self.index: defaultdict[object, set[bytes]] = defaultdict(set)
        self.order: defaultdict[Guid, list[tuple[SequenceNumber, _Key]]] = defaultdict(list)

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

    def candidates(self, term: object) -> list[bytes]:
        """Identifiers filed under an index term in any layer; the caller checks each again."""
        return sorted(set().union(*(layer.index.get(term, ()) for layer in self.chain())))

    def put(self, key: _Key, change: Change | None) -> None:
        self._unfile(key, self.items.get(key))
        self.items[key] = change
        self._file(key, change)

    def _file(self, key: _Key, change: Change | None) -> None:
        if change is not None:
            insort(self.order[change.partition], (change.seq, key))
            for term in _terms(change):
                self.index[term].add(key[1])

    def _unfile(self, key: _Key, change: Change | None) -> None:
        if change is not None:
            order = self.order[change.partition]
            del order[bisect_left(order, (change.seq, key))]
            for term in _terms(change):
                self.index[term].discard(key[1])

    def fold(self, upper: _Layer) -> None:
        """Take over what ``upper``, which lies on this layer, says."""
        for key, change in upper.items.items():
            self.put(key, change)
            if change is None and self.below is None:
                del self.items[key]
        self.partitions.update(upper.partitions)

    def snapshot(self) -> _Layer:
        twin = _Layer()
        twin.items = copy(self.items)
        twin.partitions = copy(self.partitions)
        twin.index.update({term: set(ids) for term, ids in self.index.items()})
        twin.order.update({partition: list(seqs) for partition, seqs in self.order.items()})
        return twin


def _terms(change: Change) -> Iterator[object]:
    if isinstance(change, DirectoryObject):
        yield change.type
        yield "owner", change.type, owner_of(change)
        if change.path is not None:
            yield "path", change.type, path_key(change.path)
        for propid, key in index_keys(change):
            yield change.type, propid, key


class _LayerView:
    """``ports.View`` and ``ports.Transaction`` over the top of a chain of layers."""

    def __init__(self, top: _Layer) -> None:
        self._top = top

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        found = self._top.lookup((object_type, id.raw))
        return found if isinstance(found, DirectoryObject) else None

    def _filed(self, object_type: ObjectType, term: object) -> Iterator[DirectoryObject]:
        for raw in self._top.candidates(term):
            obj = self.get(object_type, Guid(raw))
            if obj is not None and term in _terms(obj):
                yield obj

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        return next(self._filed(object_type, ("path", object_type, path_key(path))), None)

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        return self._filed(object_type, object_type)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        return self._filed(object_type, ("owner", object_type, owner))

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        return self._filed(object_type, (object_type, propid, key))

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        filed: set[tuple[SequenceNumber, _Key]] = set()
        for layer in self._top.chain():
            order = layer.order.get(partition, [])
            filed.update(order[bisect_right(order, after, key=lambda entry: entry[0]) :])
        for seq, key in sorted(filed):
            change = self._top.lookup(key)
            if change is not None and change.seq == seq and change.partition == partition:
                yield change

    def tombstone(self, id: Guid) -> DeletedObject | None:  # noqa: A002
        found = self._top.lookup((_TOMBSTONE, id.raw))
        return found if isinstance(found, DeletedObject) else None

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        found = (layer.partitions.get(id) for layer in self._top.chain())
        return next((partition for partition in found if partition is not None), None)

    def partitions(self) -> list[Partition]:
        merged: dict[Guid, Partition] = {}
        for layer in reversed(list(self._top.chain())):
            merged.update(layer.partitions)
        return [merged[id] for id in sorted(merged)]  # noqa: A001

    def count(self, object_type: ObjectType) -> int:
        return sum(1 for _ in self.objects(object_type))

    def insert(self, obj: DirectoryObject) -> None:
        if self.get(obj.type, obj.id) is not None:
            raise StorageError(f"{obj.type.label} {obj.id} is in the store already")
        self._check_name(obj)
        self._top.put((obj.type, obj.id.raw), obj)

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        self._expect(old)
        self._check_name(new)
        self._top.put((new.type, new.id.raw), new)

    def delete(self, obj: DirectoryObject) -> None:
        self._expect(obj)
        self._top.put((obj.type, obj.id.raw), None)

    def _expect(self, obj: DirectoryObject) -> None:
        if self.get(obj.type, obj.id) is None:
            raise StorageError(f"{obj.type.label} {obj.id} is not in the store")

    def _check_name(self, obj: DirectoryObject) -> None:
        other = None if obj.path is None else self.find(obj.type, obj.path)
        if other is not None and other.id != obj.id:
            raise StorageError(f"{obj.type.label} {obj.path} is in the store already")

    def bury(self, tombstone: DeletedObject) -> None:
        self._top.put((_TOMBSTONE, tombstone.id.raw), tombstone)

    def unbury(self, id: Guid) -> None:  # noqa: A002
        self._top.put((_TOMBSTONE, id.raw), None)

    def put_partition(self, partition: Partition) -> None:
        self._top.partitions[partition.id] = partition

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
    """``ports.Store`` that forgets everything when it goes."""

    def __init__(self) -> None:
        self._root = _Layer()
        self._turn = Lock()
        self._swap = Lock()

    @contextmanager
    def read(self) -> Iterator[View]:
        with self._swap:
            root = self._root
            root.readers += 1
        try:
            yield _LayerView(root)
        finally:
            with self._swap:
                root.readers -= 1

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._turn:
            top = _Layer(self._root)
            yield _LayerView(top)
            with self._swap:
                if self._root.readers:
                    self._root = self._root.snapshot()
                self._root.fold(top)

    def check(self) -> list[str]:
        with self.read() as view:
            return list(view_faults(view))

    def close(self) -> None:
        self._root = _Layer()
