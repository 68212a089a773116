"""Folds the records of one server's journal into the directory that the server held.

The server's own changes are in its records whole. A change of another authority that it applied is
in the message that brought it, which is an earlier record. It may have waited for its turn between
the two, so it is found by its number and not by the message.

Two consequences of changes have no records of their own, and are drawn here as the server draws
them: a deleted site takes its partition along (``topology``), and a full synchronisation removes
what the authority no longer has (``sync0``).

This is the one fold: ``storage.journal.past`` rebuilds a whole directory with it, and undelete some
objects of one. A ``FoldPolicy`` says which objects, and what follows where records are missing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject, name_key
from mqis.protocol.directory.ownership import authority, mark, objects_of, remove
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.applying import apply, type_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Message, MessageOperation, Sync0, SyncReply
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

_CARRIERS = (MessageOperation.CHANGE_PROPAGATION, MessageOperation.SYNC_REPLY)


class UnknownPast(StorageError):
    """The journal does not tell the directory at that moment."""


@dataclass(frozen=True, slots=True)
class JournalWriter:
    """The server that wrote a journal, as the headers of its segments name it."""

    id: Guid
    name: str


#: The writer of a journal that does not name it.
NOBODY = JournalWriter(Guid.NULL, "")


class FoldPolicy:
    """The objects of a fold, and what follows where the journal does not tell them.

    This one is for a whole directory, which is known exactly or not at all.
    """

    #: True if the fold has the whole directory, which full synchronisations are about.
    whole = True

    def concerns(self, _id: Guid, _partition: Guid) -> bool:
        return True

    def keeps(self, tx: Transaction, me: JournalWriter, site: Guid) -> bool:
        """Returns whether the server keeps the partition of a deleted site: its own (E35)."""
        machine = tx.get(ObjectType.MACHINE, me.id)
        return machine is not None and machine.partition == site

    def begin(self, lsn: int) -> None:
        """Notes the number of the record that is taken next."""

    def stored(self, obj: DirectoryObject) -> None:
        """Notes that a change created or updated an object."""

    def deleted(self, id_: Guid, obj: DirectoryObject | None) -> None:
        """Notes that an object was deleted, or taken along by its site; with what it was."""

    def unknown(self, _tx: Transaction, _record: JournalRecord, error: UnknownPast) -> None:
        """Called for a record that cannot be applied, because another one is missing."""
        raise error

    def unrecorded(self, _tx: Transaction, reason: str) -> None:
        """Called where records are missing."""
        raise UnknownPast(reason)


class JournalFold:
    """The directory of server ``me`` in ``tx``, record after record."""

    def __init__(self, tx: Transaction, me: JournalWriter, policy: FoldPolicy) -> None:
        self._tx = tx
        self._me = me
        self.policy = policy
        self._received = ReceivedChanges()
        #: The message that completes a full synchronisation, until its changes have been applied.
        self._completing: tuple[MessageIdentifier | None, Guid] | None = None

    def insert(self, obj: DirectoryObject) -> None:
        """Takes an object of a snapshot, before any record."""
        self._tx.insert(obj)

    def skip(self, reason: str) -> None:
        """Notes that records are missing here."""
        self.policy.unrecorded(self._tx, reason)

    def take(self, record: JournalRecord) -> None:
        """Applies one record; the policy decides what follows if an earlier one is missing."""
        try:
            self._take(record)
        except UnknownPast as error:
            self.policy.unknown(self._tx, record, error)

    def _take(self, record: JournalRecord) -> None:
        if record.kind is RecordKind.CHANGE:
            self._change(record)
        elif record.state is RecordState.RECEIVED:
            self.finish()
            message = self.remember(record)
            if isinstance(message, SyncReply) and self.policy.whole:
                self._synchronize(record, message)
        elif record.state is RecordState.REFUSED:
            self.remember(record)
            if self._is_completed_by(record.message):
                self._completing = None

    def _is_completed_by(self, message: MessageIdentifier | None) -> bool:
        return self._completing is not None and self._completing[0] == message

    def remember(self, record: JournalRecord) -> Message | None:
        """Remembers the changes in a message, which are applied later; returns the message."""
        if record.state is RecordState.REFUSED:
            self._received.refuse(record)
        if record.kind is not RecordKind.MESSAGE or record.state is not RecordState.RECEIVED:
            return None
        message = _decoded(record) if record.operation in _CARRIERS else None
        found = message if isinstance(message, SyncReply | ChangePropagation) else None
        self._received.arrive(record, () if found is None else self._concerned(found.changes))
        return found

    def _concerned(self, changes: Iterable[DirectoryChange]) -> Iterator[DirectoryChange]:
        for change in changes:
            id_ = _id_of(change)
            if id_ is None or self.policy.concerns(id_, change.partition):
                yield change

    def _synchronize(self, record: JournalRecord, reply: SyncReply) -> None:
        """Marks what the server holds when all of it begins to come again, as the server does."""
        if self._decides(reply.partition):
            return
        if reply.from_seq == SequenceNumber.MIN:
            mark(self._tx, reply.partition)
        if reply.complete_sync0 is Sync0.COMPLETE:
            self._completing = record.message, reply.partition

    def finish(self) -> None:
        """Ends a full synchronisation: what still bears the mark is not at the authority."""
        if self._completing is None:
            return
        partition = self._completing[1]
        self._completing = None
        for obj in list(objects_of(self._tx, partition)):
            if obj.seq == SequenceNumber.MIN:
                self._tx.delete(obj)

    def _decides(self, partition: Guid) -> bool:
        """Returns whether this server is the authority, which takes copies when it is restored."""
        owner = authority(partition, self._tx)
        return owner is not None and name_key(owner) == name_key(self._me.name)

    # --- changes ----------------------------------------------------------------------------------

    def _change(self, record: JournalRecord) -> None:
        if record.state is RecordState.LOCAL:
            self.finish()
            if self._concerns(record):
                self._local(record)
        elif record.state is RecordState.APPLIED:
            change = self._received.applied(record)
            if self._concerns(record):
                self._applied(record, change)
        elif record.state is RecordState.REFUSED:
            self.remember(record)

    def _concerns(self, record: JournalRecord) -> bool:
        return self.policy.concerns(record.object_id, record.partition)

    def _local(self, record: JournalRecord) -> None:
        change = _decoded(record)
        if not isinstance(change, DirectoryChange):
            raise UnknownPast("a change of this server has no content")
        if change.command is Command.DELETE:
            self._deleted(record)
        else:
            self.policy.stored(_put_own(self._tx, record, change))

    def _applied(self, record: JournalRecord, change: DirectoryChange | None) -> None:
        if record.operation == Command.DELETE and record.object_type:
            self._deleted(record)  # the record names the object, which is enough
            return
        if change is None:
            raise UnknownPast(
                f"the message with change {record.seq} of partition {record.partition} is not in "
                "the journal"
            )
        try:
            done = apply(self._tx, change, keep_tombstones=False)
        except DirectoryError as error:
            raise UnknownPast(
                f"change {record.seq} of partition {record.partition} does not fit: {error.detail}"
            ) from error
        if done.after is not None:
            self.policy.stored(done.after)

    def _deleted(self, record: JournalRecord) -> None:
        """Deletes an object; every server forgets the partition of a deleted site."""
        kind, id_ = _type(record), record.object_id
        obj = self._tx.get(kind, id_)
        if obj is not None:
            self._tx.delete(obj)
        self.policy.deleted(id_, obj)
        if kind is ObjectType.SITE and not self.policy.keeps(self._tx, self._me, id_):
            for one in remove(self._tx, id_):
                self.policy.deleted(one.id, one)


def _put_own(tx: Transaction, record: JournalRecord, change: DirectoryChange) -> DirectoryObject:
    """Creates or updates an object as a change of the journal's own server did; returns it.

    Such a record has the values that the server stored. They are not those that a replica keeps: a
    replica drops empty ones.
    """
    kind = _type(record)
    old = tx.get(kind, record.object_id)
    properties = dict(change.properties)
    if change.command is Command.UPDATE:
        if old is None:
            raise UnknownPast(f"the {kind.label} {record.object_id} is changed before it is")
        properties = {**old.properties, **properties}
    new = DirectoryObject(kind, record.object_id, record.partition, record.seq, properties)
    if old is not None:
        tx.update(old, new)
        return new
    holder = None if new.path is None else tx.find(new.type, new.path)
    if holder is not None:
        tx.delete(holder)
    tx.insert(new)
    return new


def _id_of(change: DirectoryChange) -> Guid | None:
    """The object that a change is about, as far as the change tells it."""
    if change.guid is not None:
        return change.guid
    try:
        wanted = IDENTIFIER_PROPERTY.get(type_of(change))
    except DirectoryError:
        return None
    found = None if wanted is None else dict(change.properties).get(wanted)
    return found.value if found is not None and isinstance(found.value, Guid) else None


def _decoded(record: JournalRecord) -> object:
    try:
        return decode_body(record)
    except WireError as error:
        raise UnknownPast(f"a body cannot be decoded: {error}") from error


def _type(record: JournalRecord) -> ObjectType:
    try:
        return ObjectType(record.object_type)
    except ValueError:
        raise UnknownPast(f"{record.object_type} is no type of objects") from None


#: Received changes that are remembered until they are applied; most of them are at once.
MAX_WAITING = 200_000

_MessageKey = tuple[MessageIdentifier | None, int]
_Number = tuple[Guid, SequenceNumber, int]
_Place = tuple[Guid, Guid]


class ReceivedChanges:
    """Finds the change that a record says was applied."""

    def __init__(self) -> None:
        #: The message that arrived last, and its changes that were not applied so far.
        self._message: _MessageKey | None = None
        self._refused = False
        self._fresh: dict[_Number, DirectoryChange] = {}
        self._fresh_copies: dict[_Place, DirectoryChange] = {}
        #: Changes that wait for their turn.
        self._waiting: OrderedDict[_Number, DirectoryChange] = OrderedDict()
        #: Whole objects: a restored authority takes copies of others, under other numbers.
        self._copies: OrderedDict[_Place, DirectoryChange] = OrderedDict()

    def arrive(self, record: JournalRecord, changes: Iterable[DirectoryChange]) -> None:
        """Takes the changes of a message that was received."""
        self._settle()
        self._message, self._refused = _message_of(record), False
        for change in changes:
            self._fresh[change.partition, change.seq, int(change.command)] = change
            if change.guid is not None and change.command is Command.CREATE:
                self._fresh_copies[change.partition, change.guid] = change

    def refuse(self, record: JournalRecord) -> None:
        """Notes that a message, or a change of it, was refused."""
        if _message_of(record) == self._message:
            self._refused = True

    def applied(self, record: JournalRecord) -> DirectoryChange | None:
        """Returns the change that a record says was applied; None if no message had it."""
        if _message_of(record) != self._message:
            self._settle()
        key = record.partition, record.seq, int(record.operation)
        waiting = self._waiting.pop(key, None)
        return self._fresh.pop(key, None) or waiting or self._copy(record)

    def _copy(self, record: JournalRecord) -> DirectoryChange | None:
        if record.operation != Command.CREATE:
            return None
        place = record.partition, record.object_id
        fresh = None if self._refused else self._fresh_copies.get(place)
        return fresh or self._copies.get(place)

    def _settle(self) -> None:
        """Keeps what the last message leaves for later, which is nothing if it was refused."""
        if not self._refused:
            self._waiting.update(self._fresh)
            self._copies.update(self._fresh_copies)
            for kept in (self._waiting, self._copies):
                while len(kept) > MAX_WAITING:
                    kept.popitem(last=False)
        self._message, self._fresh, self._fresh_copies = None, {}, {}


def _message_of(record: JournalRecord) -> _MessageKey:
    return record.message, record.session
