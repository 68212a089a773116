"""A transaction for very many creations at once.

Every object takes a number, so each create would read and write its partition; every queue asks
for its machine; every name and identifier is looked up to see that it is free. Inside one
transaction nobody else can change the answers, so they are kept here: partitions are written once,
by ``flush``, and of a type that the store did not hold at the start everything is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    name_key,
)
from mqis.protocol.ports import Change, Transaction
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber


class BulkTransaction:
    """``ports.Transaction`` over another one. Without ``flush`` at the end, numbers are lost."""

    def __init__(self, transaction: Transaction) -> None:
        self._tx = transaction
        self._partitions = {partition.id: partition for partition in transaction.partitions()}
        self._machines: dict[str, DirectoryObject] = {}
        # Tombstones lie in partitions: where none of these is, there are none of those.
        self._buried = bool(self._partitions)
        self._known = {kind: set[object]() for kind in ObjectType if not transaction.count(kind)}

    def flush(self) -> None:
        for partition in self._partitions.values():
            self._tx.put_partition(partition)

    # --- kept here --------------------------------------------------------------------------------

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        return self._partitions.get(id)

    def partitions(self) -> list[Partition]:
        return sorted(self._partitions.values(), key=lambda partition: partition.id)

    def put_partition(self, partition: Partition) -> None:
        self._partitions[partition.id] = partition

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        self._partitions.pop(id, None)
        self._tx.drop_partition(id)

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        return self._tx.get(object_type, id) if self._may_hold(object_type, id.raw) else None

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        key = name_key(path)
        if not self._may_hold(object_type, key):
            return None
        if object_type is not ObjectType.MACHINE:
            return self._tx.find(object_type, path)
        found = self._machines.get(key) or self._tx.find(object_type, path)
        if found is not None:
            self._machines[key] = found
        return found

    def insert(self, obj: DirectoryObject) -> None:
        self._tx.insert(obj)
        self._remember(obj)

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        self._machines.clear()
        self._tx.update(old, new)
        self._remember(new)

    def delete(self, obj: DirectoryObject) -> None:
        self._machines.clear()
        self._tx.delete(obj)

    def bury(self, tombstone: DeletedObject) -> None:
        self._buried = True
        self._tx.bury(tombstone)

    def unbury(self, id: Guid) -> None:  # noqa: A002
        if self._buried:
            self._tx.unbury(id)

    def savepoint(self) -> AbstractContextManager[None]:
        raise NotImplementedError("what is kept here could not be undone")

    def _may_hold(self, object_type: ObjectType, key: object) -> bool:
        known = self._known.get(object_type)
        return known is None or key in known

    def _remember(self, obj: DirectoryObject) -> None:
        known = self._known.get(obj.type)
        if known is not None:
            known.add(obj.id.raw)
            if obj.path is not None:
                known.add(name_key(obj.path))

    # --- passed on --------------------------------------------------------------------------------

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        return self._tx.objects(object_type)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        return self._tx.owned_by(object_type, owner)

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        return self._tx.having(object_type, propid, key)

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        return self._tx.changes(partition, after)

    def tombstone(self, id: Guid) -> DeletedObject | None:  # noqa: A002
        return self._tx.tombstone(id)

    def count(self, object_type: ObjectType) -> int:
        return self._tx.count(object_type)

    def count_owned(self, account: bytes) -> int:
        return self._tx.count_owned(account)

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        return self._tx.purge(partition, through)

    def state(self, family: str, key: bytes) -> bytes | None:
        return self._tx.state(family, key)

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        return self._tx.states(family)

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        self._tx.put_state(family, key, value)

    def drop_state(self, family: str, key: bytes) -> None:
        self._tx.drop_state(family, key)

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        return self._tx.outbox(after, limit)

    def append(self, record: JournalRecord) -> int:
        return self._tx.append(record)

    def trim_outbox(self, through: int) -> None:
        self._tx.trim_outbox(through)
