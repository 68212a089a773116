"""What the machines need from outside, as protocols that storage and runtime implement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

Change = DirectoryObject | DeletedObject


class Entropy(Protocol):
    """Where new identifiers come from: the system's source, or a seeded one in a simulation."""

    def guid(self) -> Guid: ...


class View(Protocol):
    """A consistent picture of a store: what is read through one view does not change under it."""

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        """The object with this identifier."""

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        """The object with this name; names ignore case."""

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        """All objects of a type, ascending by the bytes of their identifiers."""

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        """Those that one machine, site or (null) the enterprise owns, in the same order."""

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        """Those that ``indexing.index_keys`` lists under this property and key, in that order."""

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        """What carries a number greater than ``after``, in ascending order, tombstones included."""

    def tombstone(self, id: Guid) -> DeletedObject | None:  # noqa: A002
        """What is left of a deleted object."""

    def partition(self, id: Guid) -> Partition | None: ...  # noqa: A002

    def partitions(self) -> list[Partition]:
        """All partitions, the enterprise first, then ascending by identifier."""

    def count(self, object_type: ObjectType) -> int: ...

    def count_owned(self, account: bytes) -> int:
        """How many objects have descriptors that name this SID as their owner."""

    def state(self, family: str, key: bytes) -> bytes | None:
        """What a machine has put under this key; replication keeps acknowledgements and replies."""

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        """Everything that a family holds, ascending by key."""

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        """Journal records behind ``after`` that wait to be copied to the journal, by lsn."""


class Transaction(View, Protocol):
    """A view that can also change what it shows. Nothing is seen elsewhere before it commits."""

    def insert(self, obj: DirectoryObject) -> None:
        """Add an object whose identifier and name are free."""

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        """Put ``new`` in the place of ``old``, which is what the store holds now."""

    def delete(self, obj: DirectoryObject) -> None:
        """Remove an object that the store holds."""

    def bury(self, tombstone: DeletedObject) -> None:
        """Add a tombstone, or put it in the place of the one with the same identifier."""

    def unbury(self, id: Guid) -> None:  # noqa: A002
        """Forget a tombstone, if there is one."""

    def put_partition(self, partition: Partition) -> None:
        """Add a partition, or put it in the place of the one with the same identifier."""

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        """Forget a partition's state; its objects and tombstones are the caller's."""

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        """Forget the partition's tombstones up to this number; how many they were."""

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        """Put a value under a key, in the place of the one that is there."""

    def drop_state(self, family: str, key: bytes) -> None:
        """Forget a key, if it is there."""

    def append(self, record: JournalRecord) -> int:
        """Add a record to the outbox; its lsn, which is greater than any before."""

    def trim_outbox(self, through: int) -> None:
        """Forget the records up to this lsn: the journal has them. Their lsns do not come again."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done inside if the block raises; the transaction itself goes on."""


class Store(Protocol):
    """One writer at a time, any number of readers. Errors are ``StorageError``."""

    def read(self) -> AbstractContextManager[View]: ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Commits when the block ends, durably; rolls back when it raises."""

    def check(self) -> list[str]:
        """Everything that is wrong with the store, in words; an empty list if nothing is."""

    def close(self) -> None: ...
