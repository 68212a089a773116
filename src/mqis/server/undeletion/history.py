"""The deleted objects of a server's journal, with their content just before the deletion.

Two passes over the files: the first finds deletions by the headers of records. The second begins
at the newest snapshot before the first of them, and rebuilds only the objects that they are about.
Changes are applied by the function that applied them when they came.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqis.protocol.directory.export_format import ExportError, parse_entry
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject
from mqis.protocol.directory.partitions import objects_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Store, Transaction
from mqis.protocol.replication.applying import apply, type_of
from mqis.protocol.undeletion.lost import LostObject
from mqis.storage.journal.files import explained, snapshots
from mqis.storage.journal.reader import load_behind
from mqis.storage.memory import MemoryStore
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole
from mqis.wire.journal.headers import deletions
from mqis.wire.journal.segment import offsets, walk
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, SyncReply, decode_message
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber

#: Records that wait in the store for the journal: more of them than this are not searched.
_MOST_WAITING = 100_000
#: Changes that arrived ahead of their turn, or were refused.
_MOST_PENDING = 100_000
_ID = re.compile(r'"(?:id|partition)":"([0-9a-f-]{36})"')

Numbered = tuple[int, JournalRecord]


@dataclass(frozen=True, slots=True)
class JournalHistory:
    """The journal of one server: its files, and the records that still wait in its store."""

    directory: Path
    store: Store
    #: The site of this server, whose partition it keeps when the site is deleted.
    own_site: Guid | None = None

    def lost(self, wanted: Callable[[LostObject], bool]) -> list[LostObject]:
        """Returns the deleted objects of which ``wanted`` accepts the deletion.

        Objects that a deleted site took along are judged by the site's deletion.
        """
        with self.store.read() as view:
            waiting = view.outbox(0, _MOST_WAITING)
        found = [lost for lost in self._deletions(waiting) if wanted(lost)]
        if not found:
            return []
        rebuilding = _Rebuilding(found, self.own_site)
        rebuilding.run(self.directory, waiting)
        with self.store.read() as view:
            return [one for one in rebuilding.lost() if view.get(one.type, one.id) is None]

    def _deletions(self, waiting: Sequence[Numbered]) -> Iterator[LostObject]:
        last = 0
        for segment in load_behind(self.directory, 0):
            starts = offsets(segment.data, segment.records_at)
            for at in deletions(segment.data, starts):
                entry = next(walk(segment.data, at))
                if isinstance(entry, Whole):
                    last = entry.lsn
                    yield from _deletion(entry.lsn, entry.record)
        for lsn, record in waiting:
            if lsn > last and _is_deletion(record):
                yield from _deletion(lsn, record)


def _is_deletion(record: JournalRecord) -> bool:
    done = record.state in (RecordState.LOCAL, RecordState.APPLIED)
    return done and record.kind is RecordKind.CHANGE and record.operation == Command.DELETE


def _deletion(lsn: int, record: JournalRecord) -> Iterator[LostObject]:
    try:
        kind = ObjectType(record.object_type)
    except ValueError:
        return  # it deleted an object that this server did not have
    if kind is not ObjectType.DELETEDOBJECT and record.object_type:
        by = record.peer
        yield LostObject(kind, record.object_id, record.partition, lsn, record.time_us, by)


# --- the second pass ------------------------------------------------------------------------------


class _Rebuilding:
    """Rebuilds the wanted objects from a snapshot on."""

    def __init__(self, wanted: Sequence[LostObject], own_site: Guid | None) -> None:
        self._wanted = {one.lsn: one for one in wanted}
        self._ids = {one.id for one in wanted}
        sites = {one.id for one in wanted if one.type is ObjectType.SITE}
        self._sites = sites - {own_site}
        self._pending: OrderedDict[tuple[Guid, SequenceNumber], DirectoryChange] = OrderedDict()
        self._lost: dict[Guid, LostObject] = {}

    def lost(self) -> list[LostObject]:
        return list(self._lost.values())

    def run(self, directory: Path, waiting: Sequence[Numbered]) -> None:
        first = min(self._wanted)
        taken = {lsn: path for lsn, path in snapshots(directory).items() if lsn < first}
        base = max(taken, default=0)  # a journal begins with a snapshot of number 0
        with MemoryStore().write() as tx:
            if base in taken:
                self._load(tx, taken[base])
            for lsn, record in _numbered(directory, base, waiting):
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
        if record.kind is RecordKind.MESSAGE:
            if record.state is RecordState.RECEIVED:
                self._remember(record)
            return
        if record.state is RecordState.LOCAL:
            change = _local_change(record)
        elif record.state is RecordState.APPLIED:
            change = self._pending.pop((record.partition, record.seq), None)
        else:
            return
        if lsn in self._wanted:
            self._bury(tx, self._wanted[lsn])
        elif change is not None and self._concerns(record.object_id, record.partition):
            self._apply(tx, change)

    def _concerns(self, id_: Guid, partition: Guid) -> bool:
        return id_ in self._ids or partition in self._sites

    def _remember(self, record: JournalRecord) -> None:
        try:
            message = decode_message(record.body)
        except WireError:
            return
        if isinstance(message, (ChangePropagation, SyncReply)):
            for change in message.changes:
                id_ = _id_of(change)
                if id_ is not None and self._concerns(id_, change.partition):
                    self._pending[change.partition, change.seq] = change
            while len(self._pending) > _MOST_PENDING:
                self._pending.popitem(last=False)

    def _apply(self, tx: Transaction, change: DirectoryChange) -> None:
        try:
            applied = apply(tx, change, keep_tombstones=False)
        except DirectoryError:
            return  # an update of an object that no snapshot has
        if applied.after is not None:
            self._lost.pop(applied.after.id, None)  # it was created again

    def _bury(self, tx: Transaction, deletion: LostObject) -> None:
        obj = tx.get(deletion.type, deletion.id)
        self._lost[deletion.id] = replace(deletion, obj=obj)
        if obj is not None:
            tx.delete(obj)
        if deletion.type is ObjectType.SITE and deletion.id in self._sites:
            for one in list(objects_of(tx, deletion.id)):
                self._lost[one.id] = _taken_along(one, deletion)
                tx.delete(one)


def _taken_along(obj: DirectoryObject, site: LostObject) -> LostObject:
    return LostObject(
        obj.type, obj.id, obj.partition, site.lsn, site.time_us, site.by, site.id, obj
    )


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


def _local_change(record: JournalRecord) -> DirectoryChange | None:
    """The change of a record; its body names a new object by path alone."""
    try:
        change = DirectoryChange.decode(Reader(record.body))
    except WireError:
        return None
    return replace(change, guid=record.object_id, path=None) if _is_path(change) else change


def _is_path(change: DirectoryChange) -> bool:
    return change.command is Command.CREATE and change.guid is None


def _id_of(change: DirectoryChange) -> Guid | None:
    if change.guid is not None:
        return change.guid
    try:
        wanted = IDENTIFIER_PROPERTY.get(type_of(change))
    except DirectoryError:
        return None
    found = None if wanted is None else dict(change.properties).get(wanted)
    return found.value if found is not None and isinstance(found.value, Guid) else None
