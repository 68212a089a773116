"""Rebuilds deleted objects as they were just before, from a snapshot and the records behind it.

Changes are applied as they were when they came: those of other servers as a replica does, those of
this server with the values that it stored. An object of which a change is
missing has no content here: permissions that the change took away would come back with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mqis.protocol.directory.export_format import ExportError, parse_entry
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject
from mqis.protocol.directory.partitions import objects_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.journal.folding import UnknownPast, put_own
from mqis.protocol.journal.received import ReceivedChanges
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.applying import apply, type_of
from mqis.protocol.undeletion.lost import LostObject
from mqis.storage.journal.files import explained, snapshots
from mqis.storage.journal.reader import load_behind
from mqis.storage.memory import MemoryStore
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, SyncReply, decode_message
from mqis.wire.reader import Reader

#: Records before a snapshot that are searched for messages whose changes were applied behind it.
_BEFORE = 10_000
_ID = re.compile(r'"(?:id|partition)":"([0-9a-f-]{36})"')

Numbered = tuple[int, JournalRecord]


class ObjectRebuilding:
    """Rebuilds the wanted objects from a snapshot on."""

    def __init__(self, wanted: Sequence[LostObject], own_site: Guid | None) -> None:
        self._wanted = {one.lsn: one for one in wanted}
        self._ids = {one.id for one in wanted}
        sites = {one.id for one in wanted if one.type is ObjectType.SITE}
        self._sites = sites - {own_site}
        self._received = ReceivedChanges()
        #: Objects of which a change is missing, so that nobody knows what they were.
        self._unknown: dict[Guid, tuple[ObjectType, Guid]] = {}
        self._lost: dict[Guid, LostObject] = {}

    def lost(self) -> list[LostObject]:
        return list(self._lost.values())

    def run(self, directory: Path, waiting: Sequence[Numbered]) -> None:
        first = min(self._wanted)
        taken = {lsn: path for lsn, path in snapshots(directory).items() if lsn < first}
        base = max(taken, default=0)  # a journal begins with a snapshot of number 0
        last = base
        with MemoryStore().write() as tx:
            if base in taken:
                self._load(tx, taken[base])
            for lsn, record in _numbered(directory, max(0, base - _BEFORE), waiting):
                if lsn <= base:
                    self._hear(record)
                    continue
                if lsn != last + 1:
                    self._forget_all(tx)
                last = lsn
                self._take(tx, lsn, record)

    def _load(self, tx: Transaction, path: Path) -> None:
        names = {str(id_) for id_ in (*self._ids, *self._sites)}
        with explained(path), path.open(encoding="ascii") as lines:
            next(lines, None)
            for number, line in enumerate(lines, start=2):
                if names.isdisjoint(_ID.findall(line[:200])):
                    continue
                try:
                    entry = parse_entry(line, number)
                except ExportError:
                    continue  # damaged: later records may have the object
                if isinstance(entry, DirectoryObject):
                    tx.insert(entry)

    def _take(self, tx: Transaction, lsn: int, record: JournalRecord) -> None:
        self._hear(record)
        if record.kind is not RecordKind.CHANGE:
            return
        if record.state is RecordState.LOCAL:
            change = _own_change(record)
        elif record.state is RecordState.APPLIED:
            change = self._received.applied(record)
        else:
            return
        if lsn in self._wanted:
            self._bury(tx, self._wanted[lsn])
        elif self._concerns(record.object_id, record.partition):
            self._apply(tx, record, change)

    def _concerns(self, id_: Guid, partition: Guid) -> bool:
        return id_ in self._ids or partition in self._sites

    def _hear(self, record: JournalRecord) -> None:
        """Remembers the changes in a message until they are applied or refused."""
        if record.state is RecordState.REFUSED:
            self._received.refuse(record)
        if record.kind is RecordKind.MESSAGE and record.state is RecordState.RECEIVED:
            self._received.arrive(record, self._changes(record))

    def _changes(self, record: JournalRecord) -> Iterator[DirectoryChange]:
        try:
            message = decode_message(record.body)
        except WireError:
            return
        if isinstance(message, (ChangePropagation, SyncReply)):
            for change in message.changes:
                id_ = _id_of(change)
                if id_ is not None and self._concerns(id_, change.partition):
                    yield change

    def _apply(
        self, tx: Transaction, record: JournalRecord, change: DirectoryChange | None
    ) -> None:
        try:
            if change is None:
                raise UnknownPast("the change is in no record")
            after = _applied(tx, record, change)
        except (DirectoryError, UnknownPast):  # such as an update of an object that no snapshot has
            self._forget(tx, record)
            return
        self._unknown.pop(record.object_id, None)
        if after is not None:
            self._lost.pop(after.id, None)  # it was created again

    def _forget(self, tx: Transaction, record: JournalRecord) -> None:
        """Forgets an object, because one of its changes is missing."""
        try:
            kind = ObjectType(record.object_type)
        except ValueError:
            return
        self._lose(tx, kind, record.object_id, record.partition)

    def _forget_all(self, tx: Transaction) -> None:
        """Forgets all objects, because records are missing."""
        for kind in ObjectType:
            for obj in list(tx.objects(kind)):
                self._lose(tx, kind, obj.id, obj.partition)

    def _lose(self, tx: Transaction, kind: ObjectType, id_: Guid, partition: Guid) -> None:
        obj = tx.get(kind, id_)
        if obj is not None:
            tx.delete(obj)
        self._unknown[id_] = kind, partition

    def _bury(self, tx: Transaction, deletion: LostObject) -> None:
        obj = tx.get(deletion.type, deletion.id)
        self._unknown.pop(deletion.id, None)
        self._lost[deletion.id] = replace(deletion, obj=obj)
        if obj is not None:
            tx.delete(obj)
        if deletion.type is ObjectType.SITE and deletion.id in self._sites:
            self._bury_partition(tx, deletion)

    def _bury_partition(self, tx: Transaction, site: LostObject) -> None:
        for one in list(objects_of(tx, site.id)):
            self._lost[one.id] = _taken_along(one.type, one.id, one, site)
            tx.delete(one)
        for id_, (kind, partition) in list(self._unknown.items()):
            if partition == site.id:
                del self._unknown[id_]
                self._lost[id_] = _taken_along(kind, id_, None, site)


def _taken_along(
    kind: ObjectType, id_: Guid, obj: DirectoryObject | None, site: LostObject
) -> LostObject:
    return LostObject(kind, id_, site.id, site.lsn, site.time_us, site.by, site.id, obj)


def _numbered(directory: Path, after: int, waiting: Sequence[Numbered]) -> Iterator[Numbered]:
    """The records of the files, then those that wait in the store."""
    for segment in load_behind(directory, after):
        for entry in segment.entries():
            if isinstance(entry, Whole) and entry.lsn > after:
                after = entry.lsn
                yield entry.lsn, entry.record
    for lsn, record in waiting:
        if lsn > after:
            yield lsn, record


def _own_change(record: JournalRecord) -> DirectoryChange | None:
    try:
        return DirectoryChange.decode(Reader(record.body))
    except WireError:
        return None


def _applied(
    tx: Transaction, record: JournalRecord, change: DirectoryChange
) -> DirectoryObject | None:
    """Applies a change as the server did; returns the object, None if it was deleted."""
    if record.state is RecordState.LOCAL and change.command is not Command.DELETE:
        return put_own(tx, record, change)
    return apply(tx, change, keep_tombstones=False).after


def _id_of(change: DirectoryChange) -> Guid | None:
    if change.guid is not None:
        return change.guid
    try:
        wanted = IDENTIFIER_PROPERTY.get(type_of(change))
    except DirectoryError:
        return None
    found = None if wanted is None else dict(change.properties).get(wanted)
    return found.value if found is not None and isinstance(found.value, Guid) else None
