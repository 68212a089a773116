"""The directory of one server at a moment of its past, rebuilt from its journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mqis.protocol.directory.export_format import ExportError, parse_entry
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.objects import DirectoryObject, Partition
from mqis.protocol.errors import StorageError
from mqis.protocol.journal.folding import (
    NOBODY,
    FoldPolicy,
    JournalFold,
    JournalWriter,
    UnknownPast,
)
from mqis.protocol.journal.numbers import ChangeNumbers
from mqis.storage.journal.journal_files import explained, segments, snapshots
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.memory_store import MemoryStore
from mqis.texts import iso_moment, microseconds, parse_moment
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, Whole

#: Records before a snapshot that are searched for messages whose changes were applied behind it.
_BEFORE = 10_000
_IDS = re.compile(rb'"(id|partition)":"([0-9a-f-]{36})"')

Numbered = tuple[int, JournalRecord]


@dataclass(frozen=True, slots=True)
class PastMoment:
    """A time, or the number of a record; neither is the journal's end."""

    text: str = ""
    time_us: int | None = None
    lsn: int | None = None

    @classmethod
    def parse(cls, text: str) -> PastMoment:
        """Parses ``2024-03-05T12:00`` (UTC if no zone is given) or the number of a record."""
        if re.fullmatch(r"\d{1,19}", text):
            return cls(text, lsn=int(text))
        try:
            moment = parse_moment(text)
        except ValueError:
            raise StorageError(
                f"{text!r} is no moment: write a time (2024-03-05T12:00, in UTC if it names no "
                "zone) or the number of a record ('mqis journal tail' shows both)"
            ) from None
        return cls(text, time_us=microseconds(moment))

    def includes(self, lsn: int, record: JournalRecord) -> bool:
        if self.lsn is not None:
            return lsn <= self.lsn
        return self.time_us is None or record.time_us <= self.time_us


#: The journal's end.
END = PastMoment()


def past_directory(directory: Path, moment: PastMoment) -> tuple[MemoryStore, int]:
    """Returns the directory at that moment, and the number of the last record before it.

    Raises ``UnknownPast`` if the journal does not reach back, or lacks records that are needed.
    """
    if not segments(directory) and not snapshots(directory):
        raise UnknownPast(f"journal {directory}: there is no segment and no snapshot in it")
    start, snapshot = _start(directory, moment)
    store = MemoryStore()
    with store.write() as tx:
        try:
            fold = JournalFold(tx, _writer(directory), FoldPolicy())
            last = fold_journal(fold, directory, start, snapshot, moment=moment)
        except UnknownPast as error:
            raise UnknownPast(f"journal {directory}: {error}") from error
    if moment.lsn is not None and last < moment.lsn:
        raise UnknownPast(f"journal {directory}: ends at record {last}; choose an earlier one")
    return store, last


def fold_journal(
    fold: JournalFold,
    directory: Path,
    start: int,
    snapshot: Path | None,
    *,
    moment: PastMoment = END,
    waiting: Sequence[Numbered] = (),
) -> int:
    """Folds a snapshot and the records behind ``start``; returns the last record's number.

    ``waiting``: records that are not in the files yet.
    """
    numbers = ChangeNumbers()
    numbers.begin(() if snapshot is None else _load(fold, snapshot))
    last = start
    for lsn, record in _numbered(directory, max(0, start - _BEFORE), waiting):
        if lsn <= start:
            fold.remember(record)
            continue
        if not moment.includes(lsn, record):
            break
        if lsn != last + 1:
            fold.skip(f"records {last + 1} to {lsn - 1} are missing")
        gap = numbers.add(record)
        if gap is not None and fold.policy.whole:
            fold.skip(f"record {lsn}: {gap}")
        fold.policy.begin(lsn)
        fold.take(record)
        last = lsn
    fold.finish()
    return last


def _writer(directory: Path) -> JournalWriter:
    """The server that wrote the journal, by its first header; segments are read one at a time."""
    for path in segments(directory).values():
        header = Segment.load(path).header
        return JournalWriter(header.server_id, header.server)
    return NOBODY


def _start(directory: Path, moment: PastMoment) -> tuple[int, Path | None]:
    """The newest snapshot before the moment; record 0 without one if the journal has them all."""
    for lsn, path in reversed(snapshots(directory).items()):
        if _is_before(directory, lsn, moment):
            return lsn, path
    first = next(records(directory), None) if segments(directory) else None
    if first is not None and first.lsn == 1 and moment.includes(first.lsn, first.record):
        return 0, None
    begins = "" if first is None else f" at {_time(first)} with record {first.lsn}"
    raise UnknownPast(f"journal {directory}: begins later{begins}; choose a later moment")


def _is_before(directory: Path, lsn: int, moment: PastMoment) -> bool:
    """Returns whether a snapshot was taken before the moment, by the records around it."""
    if moment.lsn is not None:
        return lsn <= moment.lsn
    if moment.time_us is None:
        return True
    around = records(directory, max(0, lsn - 1))
    near = [entry for entry, _ in zip(around, range(2), strict=False) if entry.lsn <= lsn + 1]
    return bool(near) and moment.includes(near[0].lsn, near[0].record)


def _load(fold: JournalFold, path: Path) -> Sequence[Partition]:
    """Takes the objects of a snapshot; returns its partitions."""
    with explained(path), path.open("rb") as file:
        if not fold.policy.whole:
            for obj in _some_objects(file, fold.policy):
                fold.insert(obj)
            return ()
        lines = ExportLines(file)
        try:
            header = lines.header()
            for obj in lines.objects(header):
                fold.insert(obj)
        except ExportError as error:
            raise UnknownPast(f"{path}: {error}") from error
    return header.partitions


def _some_objects(file: BinaryIO, policy: FoldPolicy) -> Iterator[DirectoryObject]:
    """The objects that a policy wants; damaged lines are skipped, as records may have the object.

    Only the lines of these objects are parsed, which makes it ten times as fast.
    """
    for number, line in enumerate(file, start=1):
        named = {key: Guid.parse(text.decode()) for key, text in _IDS.findall(line[:200])}
        if not policy.concerns(named.get(b"id", Guid.NULL), named.get(b"partition", Guid.NULL)):
            continue
        try:
            entry = parse_entry(line.decode("utf-8", "replace"), number)
        except ExportError:
            continue
        if isinstance(entry, DirectoryObject):
            yield entry


def _numbered(directory: Path, after: int, waiting: Sequence[Numbered]) -> Iterator[Numbered]:
    """The records of the files, then those that wait in the store."""
    if segments(directory):
        for entry in records(directory, after):
            after = entry.lsn
            yield entry.lsn, entry.record
    for lsn, record in waiting:
        if lsn > after:
            yield lsn, record


def _time(entry: Whole) -> str:
    return iso_moment(entry.record.time_us, 0)
