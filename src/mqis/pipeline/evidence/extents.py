"""The extents of journals: which records their files hold, and which are missing between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mqis.findings import Finding
from mqis.pipeline.evidence.findings import EvidenceKind, evidence
from mqis.pipeline.sources.files import parent_of
from mqis.pipeline.sources.inventory import SegmentFile
from mqis.protocol.journal.numbers import SKIPPED
from mqis.texts import agreeing, counted
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class Extent:
    """The records that were read from one file, or from all files of a journal."""

    first: int
    last: int
    records: int
    began_us: int
    ended_us: int


@dataclass(slots=True)
class JournalInventory:
    """One journal: its segments, the extent of each file, and what is missing or was changed."""

    server: str
    server_id: bytes
    segments: list[SegmentFile] = field(default_factory=list)
    files: dict[str, Extent] = field(default_factory=dict)
    is_damaged: bool = False
    missing: list[Finding] = field(default_factory=list)
    #: The state of its newest signature.
    signature: str = "unsigned"

    @property
    def place(self) -> str:
        """The directory of its first segment."""
        return parent_of(self.segments[0].path)

    @property
    def places(self) -> set[str]:
        """The directories of its segments."""
        return {parent_of(segment.path) for segment in self.segments}

    @property
    def whole(self) -> Extent | None:
        found = self.files.values()
        if not found:
            return None
        return Extent(
            min(extent.first for extent in found),
            max(extent.last for extent in found),
            sum(extent.records for extent in found),
            min(extent.began_us for extent in found),
            max(extent.ended_us for extent in found),
        )

    @property
    def is_complete(self) -> bool:
        """True if every record from the first to the end is there, and nothing was changed."""
        whole = self.whole
        if whole is None or self.is_damaged or self.missing:
            return False
        return whole.first == 1 and whole.records == whole.last

    @property
    def thinned(self) -> list[str]:
        """The files in which numbers are missing between records."""
        return [f for f, e in self.files.items() if e.records < e.last - e.first + 1]


def inventories(
    segments: Iterable[SegmentFile], files: Mapping[str, Extent], damaged: Collection[str]
) -> Iterator[JournalInventory]:
    """The journals by name and identifier; ``damaged`` are the files with unreadable records."""
    ordered = sorted(segments, key=lambda s: (s.server, s.server_id.raw, s.first_lsn, s.path))
    for key, group in groupby(ordered, key=lambda s: (s.server, s.server_id.raw)):
        listed = list(group)
        held = {s.path: files[s.path] for s in listed if s.path in files}
        is_damaged = any(s.path in damaged for s in listed)
        yield JournalInventory(*key, listed, held, is_damaged)


def missing_between(
    journal: JournalInventory, damaged: Collection[str], snapshot_lsns: Sequence[int]
) -> Iterator[Finding]:
    """The records that no file holds, although no damage explains it.

    Retention may have removed the beginning; then a snapshot takes its place.
    """
    before: SegmentFile | None = None
    last = 0
    for segment in journal.segments:
        extent = journal.files.get(segment.path)
        begin = segment.first_lsn
        if extent is not None and segment.path not in damaged:
            begin = max(begin, extent.first)
        is_retained = before is None and any(lsn >= begin - 1 for lsn in snapshot_lsns)
        follows = before is not None and segment.number == before.number + 1
        explained = is_retained or (follows and before is not None and before.path in damaged)
        if begin > last + 1 and not explained:
            yield missing_records(journal.server, last + 1, begin - 1, segment.path)
        last = max(last, extent.last if extent is not None else segment.first_lsn - 1)
        before = segment


def missing_records(server: str, first: int, last: int, file: str) -> Finding:
    count = last - first + 1
    are = agreeing(count, "is", "are")
    text = f"{counted(count, 'record')} {are} missing: {first:,} to {last:,}"
    return evidence(EvidenceKind.MISSING_RECORDS, server, text, file, first=first, last=last)


def missing_end(server: str, partition: Guid, reached: int, exported: int) -> Finding:
    text = (
        f"the journal ends at change {reached:,} of the partition, but the server's export has "
        f"change {exported:,}"
    )
    kind, name = EvidenceKind.MISSING_END, str(partition)
    return evidence(kind, server, text, partition=name, first=reached + 1, last=exported)


def missing_changes(server: str, partition: Guid, first: int, last: int) -> Finding:
    text = (
        f"changes {first:,} to {last:,} of the partition are in no record, and no record is "
        "missing: the directory was changed without its journal"
    )
    kind, name = EvidenceKind.MISSING_CHANGES, str(partition)
    return evidence(kind, server, text, partition=name, first=first, last=last)


def is_missing_end(reached: int | None, exported: int) -> bool:
    """Returns whether changes are missing between a journal's last number and the export's."""
    return reached is not None and 0 < exported - reached < SKIPPED


def repeated(copy: SegmentFile) -> Finding:
    text = f"{copy.kept} has the same records; the copy is not read"
    kind = EvidenceKind.DUPLICATE_SEGMENT
    return evidence(kind, copy.server, text, copy.path, first=copy.first_lsn)


def renamed(segment: SegmentFile) -> Finding:
    text = f"it is segment {segment.number}: the file was renamed, or copied under this name"
    kind = EvidenceKind.MISNAMED_SEGMENT
    return evidence(kind, segment.server, text, segment.path, first=segment.first_lsn)


def changed(server: str, number: int, file: str) -> Finding:
    text = (
        f"segment {number} was sealed and had other content when an earlier run read it: it was "
        "changed, or the journal was restored"
    )
    return evidence(EvidenceKind.CHANGED_SEGMENT, server, text, file, first=number, last=number)


def vanished(server: str, numbers: Collection[int]) -> Finding:
    first, last, count = min(numbers), max(numbers), len(numbers)
    text = (
        f"{counted(count, 'segment')} between {first} and {last} that an earlier run read "
        f"{agreeing(count, 'is', 'are')} not there"
    )
    return evidence(EvidenceKind.VANISHED_SEGMENTS, server, text, first=first, last=last)


def conflicting(server: str, first: int, last: int, count: int) -> Finding:
    text = (
        f"{counted(count, 'record')} between {first:,} and {last:,} "
        f"{agreeing(count, 'is', 'are')} there twice with different content"
    )
    return evidence(EvidenceKind.CONFLICTING_RECORDS, server, text, first=first, last=last)
