"""The deleted objects of a server's journal, with their content just before the deletion.

Two passes over the files: the first finds deletions by the headers of records. The second begins
at the newest snapshot before the first of them, and folds only the objects that they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mqis.protocol.errors import DirectoryError
from mqis.protocol.journal.folding import NOBODY, JournalFold
from mqis.protocol.ports import Store
from mqis.protocol.undeletion.lost import LostObject, LostObjects
from mqis.storage.journal.journal_files import snapshots
from mqis.storage.journal.journal_reader import load_behind
from mqis.storage.journal.past import Numbered, fold_journal
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole
from mqis.wire.journal.headers import deletions
from mqis.wire.journal.segment import offsets, walk
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command

#: Records that wait in the store for the journal: more of them than this are not searched.
_MOST_WAITING = 100_000
#: The most deletions whose objects are rebuilt; each takes some kilobytes of memory.
MOST_SEARCHED = 100_000


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
        found = list(islice(filter(wanted, self._deletions(waiting)), MOST_SEARCHED + 1))
        if len(found) > MOST_SEARCHED:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"the journal has more than {MOST_SEARCHED} deletions that match; choose fewer "
                "with --at or --deleted-by",
            )
        if not found:
            return []
        lost = LostObjects(found, self.own_site)
        taken = snapshots(self.directory)
        start = max((lsn for lsn in taken if lsn < min(one.lsn for one in found)), default=0)
        with MemoryStore().write() as tx:
            fold = JournalFold(tx, NOBODY, lost)
            fold_journal(fold, self.directory, start, taken.get(start), waiting=waiting)
        with self.store.read() as view:
            return [one for one in lost.found() if view.get(one.type, one.id) is None]

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
