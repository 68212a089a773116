"""The ports of the machines: protocols that storage and runtime implement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
)
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

Change = DirectoryObject | DeletedObject
T = TypeVar("T")


class Entropy(Protocol):
    """The source of new identifiers: the system's, or a seeded one in a simulation."""

    def guid(self) -> Guid: ...


class View(Protocol):
    """A consistent snapshot of a store: concurrent writers do not change what a view shows."""

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        """The object with this identifier."""

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        """The object with this name; names ignore case."""

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        """All objects of a type, ascending by the bytes of their identifiers."""

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        """The objects of a machine, a site or (null) the enterprise, in the same order."""

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        """The objects that ``indexing.index_keys`` lists under a property and key, in order."""

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        """Objects and tombstones with sequence numbers greater than ``after``, ascending."""

    def tombstones(self, id: Guid) -> list[DeletedObject]:  # noqa: A002
        """The tombstones under an identifier, at most one of each partition, by partition."""

    def partition(self, id: Guid) -> Partition | None: ...  # noqa: A002

    def partitions(self) -> list[Partition]:
        """All partitions, the enterprise first, then ascending by identifier."""

    def digest(self, id: Guid) -> PartitionDigest | None:  # noqa: A002
        """The digest of a partition's objects, kept with every change; None: no such partition."""

    def count(self, object_type: ObjectType) -> int: ...

    def count_created(self, account: bytes) -> int:
        """The number of objects that count for this SID, see ``put_creator``."""

    def state(self, family: str, key: bytes) -> bytes | None:
        """The value that replication stored under a key, e.g. acknowledgements and replies."""

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        """All keys and values of a family, ascending by key."""

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        """The records after lsn ``after`` that are still to be copied to the journal, by lsn."""


@runtime_checkable
class NumberedOutbox(Protocol):
    """A view that knows the number of the newest record, even if it no longer has it."""

    def last_lsn(self) -> int: ...


class WatchedView(View, Protocol):
    """A view that notes what is read through it."""

    def remember(self, question: Hashable, answer: object, size: int) -> None:
        """Keeps an answer of ``size`` bytes until a commit changes what was read here."""


class Transaction(View, Protocol):
    """A view that can also write. Other views see nothing of it before it commits."""

    @property
    def writes(self) -> int | None:
        """The number of writes so far; None: not counted, so what may fail needs a savepoint."""

    def insert(self, obj: DirectoryObject) -> DirectoryObject | None:
        """Adds an object; no other may have its identifier or name.

        Returns the object if the store has given it another identifier, else None.
        """

    def insert_if_free(self, obj: DirectoryObject) -> bool:
        """Adds an object unless another one has its identifier or name; returns whether it did."""

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        """Replaces ``old``, which is what the store holds now, by ``new``."""

    def delete(self, obj: DirectoryObject) -> None:
        """Removes an object that the store holds."""

    def put_creator(self, object_type: ObjectType, id: Guid, account: bytes) -> None:  # noqa: A002
        """Counts an object for the account that has created it, until it is deleted.

        Without this call it counts for the owner that its descriptor named when it was inserted.
        The object may come later, from the server that decides about it.
        """

    def bury(self, tombstone: DeletedObject) -> None:
        """Adds a tombstone, or replaces the one with the same identifier in its partition."""

    def unbury(self, partition: Guid, id: Guid) -> None:  # noqa: A002
        """Removes a tombstone of a partition, if there is one."""

    def put_partition(self, partition: Partition) -> None:
        """Adds a partition, or replaces the one with the same identifier."""

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        """Removes a partition's state; the caller removes its objects and tombstones."""

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        """Removes the partition's tombstones up to this number and returns how many they were."""

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        """Stores a value under a key, replacing the old one."""

    def drop_state(self, family: str, key: bytes) -> None:
        """Removes a key, if it is there."""

    def append(self, record: JournalRecord) -> int:
        """Adds a record to the outbox and returns its lsn, which is greater than any before."""

    def trim_outbox(self, through: int) -> None:
        """Removes the records up to this lsn: the journal has them. Lsns are never reused."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Rolls back the block's writes if it raises; the transaction itself goes on."""


class Store(Protocol):
    """A store with one writer at a time and any number of readers. Raises ``StorageError``."""

    def read(self) -> AbstractContextManager[View]: ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Commits when the block ends, durably; rolls back when it raises."""

    def check(self) -> list[str]:
        """The defects of the store, in words; an empty list if it is sound."""

    def close(self) -> None: ...


@runtime_checkable
class AskedStore(Protocol):
    """A store behind a network, where each statement costs a way there and back."""

    def ask(self, question: Callable[[View], T]) -> T:
        """The result of a function over a view; it may be called twice, with a view each."""


@runtime_checkable
class AnswerMemory(Protocol):
    """A store that remembers objects and answers to whole questions until a commit changes them."""

    def remembered(self) -> AbstractContextManager[View]:
        """A view of what is in memory, which raises ``StoreUnavailable`` for everything else."""

    def watch(self, view: View, *, stranger: bool = False) -> WatchedView:
        """The same view, with a memory: that of users, or the share that strangers have."""

    def moment(self, view: View | None = None) -> int:
        """The moment that a view shows; without a view, that of the last commit."""

    def recall(
        self, question: Hashable, moment: int | None = None, *, stranger: bool = False
    ) -> Any:
        """The answer of a moment, or as of the last commit; None: it is not known."""
