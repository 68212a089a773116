"""The directory of one server at a moment of its past, rebuilt from its journal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mqis.protocol.directory.export_format import (
    ExportError,
)
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.errors import StorageError
from mqis.protocol.journal.folding import JournalFold, JournalWriter, UnknownPast
from mqis.protocol.journal.numbers import ChangeNumbers
from mqis.protocol.ports import Transaction
from mqis.storage.journal.files import explained, segments, snapshots
from mqis.storage.journal.reader import Segment, records
from mqis.storage.memory import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import Whole

#: Records before a snapshot that are searched for messages whose changes were applied behind it.
_BEFORE = 10_000


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
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise StorageError(
                f"{text!r} is no moment: write a time (2024-03-05T12:00, in UTC if it names no "
                "zone) or the number of a record ('mqis journal tail' shows both)"
            ) from None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return cls(text, time_us=int(aware.timestamp() * 1_000_000))

    def includes(self, entry: Whole) -> bool:
        if self.lsn is not None:
            return entry.lsn <= self.lsn
        return self.time_us is None or entry.record.time_us <= self.time_us


def past_directory(directory: Path, moment: PastMoment) -> tuple[MemoryStore, int]:
    """Returns the directory at that moment, and the number of the last record before it.

    Raises ``UnknownPast`` if the journal does not reach back, or lacks records that are needed.
    """
    me = _writer(directory)
    if me is None and not snapshots(directory):
        raise UnknownPast(f"journal {directory}: there is no segment and no snapshot in it")
    start, snapshot = _start(directory, moment)
    store = MemoryStore()
    with store.write() as tx:
        numbers = ChangeNumbers()
        numbers.begin(())
        if snapshot is not None:
            _load(tx, snapshot, numbers)
        fold = JournalFold(tx, me or JournalWriter(Guid.NULL, ""))
        try:
            last = _fold(directory, moment, start, fold, numbers)
        except UnknownPast as error:
            raise UnknownPast(f"journal {directory}: {error}") from error
    if moment.lsn is not None and last < moment.lsn:
        raise UnknownPast(f"journal {directory}: ends at record {last}; choose an earlier one")
    return store, last


def _writer(directory: Path) -> JournalWriter | None:
    """The server that wrote the journal, by its first header; segments are read one at a time."""
    for path in segments(directory).values():
        header = Segment.load(path).header
        return JournalWriter(header.server_id, header.server)
    return None


def _start(directory: Path, moment: PastMoment) -> tuple[int, Path | None]:
    """The newest snapshot before the moment; record 0 without one if the journal has them all."""
    for lsn, path in reversed(snapshots(directory).items()):
        if _is_before(directory, lsn, moment):
            return lsn, path
    first = next(records(directory), None) if segments(directory) else None
    if first is not None and first.lsn == 1 and moment.includes(first):
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
    return bool(near) and moment.includes(near[0])


def _load(tx: Transaction, path: Path, numbers: ChangeNumbers) -> None:
    with explained(path), path.open("rb") as file:
        try:
            lines = ExportLines(file)
            header = lines.header()
            numbers.begin(header.partitions)
            for obj in lines.objects(header):
                tx.insert(obj)
        except ExportError as error:
            raise UnknownPast(f"{path}: {error}") from error


def _fold(
    directory: Path, moment: PastMoment, start: int, fold: JournalFold, numbers: ChangeNumbers
) -> int:
    last = start
    for entry in _records(directory, max(0, start - _BEFORE)):
        if entry.lsn <= start:
            fold.remember(entry.record)
            continue
        if not moment.includes(entry):
            break
        if entry.lsn != last + 1:
            raise UnknownPast(f"records {last + 1} to {entry.lsn - 1} are missing")
        gap = numbers.add(entry.record)
        if gap is not None:
            raise UnknownPast(f"record {entry.lsn}: {gap}")
        fold.take(entry.record)
        last = entry.lsn
    fold.finish()
    return last


def _records(directory: Path, after: int) -> Iterator[Whole]:
    return records(directory, after) if segments(directory) else iter(())


def _time(entry: Whole) -> str:
    moment = datetime.fromtimestamp(entry.record.time_us / 1_000_000, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
