"""Folds the records of one server's journal into the directory that the server held.

The server's own changes are in its records whole. A change of another authority that it applied is
in the message that brought it, which is an earlier record. It may have waited for its turn between
the two, so it is found by its number and not by the message.

Two consequences of changes have no records of their own, and are drawn here as the server draws
them: a deleted site takes its partition along (``topology``), and a full synchronisation removes
what the authority no longer has (``sync0``).
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import authority
from mqis.protocol.directory.partitions import mark, objects_of, remove
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.journal.received import ReceivedChanges
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.applying import apply
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.body import decode_body
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


class JournalFold:
    """The directory of server ``me`` in ``tx``, record after record."""

    def __init__(self, tx: Transaction, me: JournalWriter) -> None:
        self._tx = tx
        self._me = me
        self._received = ReceivedChanges()
        #: The message that completes a full synchronisation, until its changes have been applied.
        self._completing: tuple[MessageIdentifier | None, Guid] | None = None

    def take(self, record: JournalRecord) -> None:
        """Applies one record; raises ``UnknownPast`` if an earlier one is missing."""
        if record.kind is RecordKind.CHANGE:
            self._change(record)
        elif record.state is RecordState.RECEIVED:
            self.finish()
            message = self.remember(record)
            if isinstance(message, SyncReply):
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
        self._received.arrive(record, () if found is None else found.changes)
        return found

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
            self._local(record)
        elif record.state is RecordState.APPLIED:
            self._applied(record)
        elif record.state is RecordState.REFUSED:
            self.remember(record)

    def _local(self, record: JournalRecord) -> None:
        change = _decoded(record)
        if not isinstance(change, DirectoryChange):
            raise UnknownPast("a change of this server has no content")
        if change.command is Command.DELETE:
            self._deleted(self._tx.get(_type(record), record.object_id))
        else:
            put_own(self._tx, record, change)

    def _applied(self, record: JournalRecord) -> None:
        change = self._received.applied(record)
        if change is None:
            if record.operation == Command.DELETE and record.object_type:
                self._deleted(self._tx.get(_type(record), record.object_id))
                return
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
        if done.after is None and done.before is not None:
            self._forget_site(done.before)

    def _deleted(self, obj: DirectoryObject | None) -> None:
        if obj is not None:
            self._tx.delete(obj)
            self._forget_site(obj)

    def _forget_site(self, obj: DirectoryObject) -> None:
        """Every server forgets the partition of a deleted site, but for the site's own (E35)."""
        if obj.type is not ObjectType.SITE:
            return
        machine = self._tx.get(ObjectType.MACHINE, self._me.id)
        if machine is None or machine.partition != obj.id:
            remove(self._tx, obj.id)


def put_own(tx: Transaction, record: JournalRecord, change: DirectoryChange) -> DirectoryObject:
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
