"""The extents of journals: which records their files hold, and which are missing between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mqis.pipeline.evidence.findings import EvidenceFinding, EvidenceKind
from mqis.pipeline.sources.files import parent_of
from mqis.pipeline.sources.inventory import RepeatedSegment, SegmentFile
from mqis.protocol.journal.numbers import SKIPPED

#: A journal's name and the identifier of the server that wrote it.
JournalKey = tuple[str, bytes]


@dataclass(slots=True)
class Extent:
    """The records that were read from one file, or from all files of a journal."""

    first: int
    last: int
    records: int
    began_us: int
    ended_us: int

    def add(self, other: Extent) -> None:
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.records += other.records
        self.began_us = min(self.began_us, other.began_us)
        self.ended_us = max(self.ended_us, other.ended_us)


@dataclass(slots=True)
class JournalInventory:
    """One journal: its segments, the extent of each file, and what is missing or was changed."""

    server: str
    server_id: bytes
    segments: list[SegmentFile] = field(default_factory=list)
    files: dict[str, Extent] = field(default_factory=dict)
    is_damaged: bool = False
    missing: list[EvidenceFinding] = field(default_factory=list)
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
        found = list(self.files.values())
        if not found:
            return None
        total = Extent(found[0].first, found[0].last, 0, found[0].began_us, found[0].ended_us)
        for extent in found:
            total.add(extent)
        return total

    @property
    def is_complete(self) -> bool:
        """True if every record from the first to the end is there, and nothing was changed."""
        whole = self.whole
        if whole is None or self.is_damaged or self.missing:
            return False
        return whole.first == 1 and whole.records == whole.last

    @property
    def lacks_records(self) -> bool:
        """True if records are damaged, missing or there twice: changes may be missing with them."""
        kinds = EvidenceKind.MISSING_RECORDS, EvidenceKind.CONFLICTING_RECORDS
        return self.is_damaged or any(finding.kind in kinds for finding in self.missing)

    @property
    def thinned(self) -> list[str]:
        """The files in which numbers are missing between records."""
        return [f for f, e in self.files.items() if e.records < e.last - e.first + 1]


def inventories(
    segments: Iterable[SegmentFile], files: Mapping[str, Extent], damaged: Collection[str]
) -> dict[JournalKey, JournalInventory]:
    """The journals by name and identifier; ``damaged`` are the files with unreadable records."""
    ordered = sorted(segments, key=lambda s: (s.server, s.server_id.raw, s.first_lsn, s.path))
    found: dict[JournalKey, JournalInventory] = {}
    for key, group in groupby(ordered, key=lambda s: (s.server, s.server_id.raw)):
        listed = list(group)
        held = {s.path: files[s.path] for s in listed if s.path in files}
        is_damaged = any(s.path in damaged for s in listed)
        found[key] = JournalInventory(*key, listed, held, is_damaged)
    return found


def missing_between(
    journal: JournalInventory, damaged: Collection[str], snapshot_lsns: Sequence[int]
) -> Iterator[EvidenceFinding]:
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


def missing_records(server: str, first: int, last: int, file: str) -> EvidenceFinding:
    count = last - first + 1
    return EvidenceFinding(
        EvidenceKind.MISSING_RECORDS,
        server,
        f"{count:,} records are missing: {first:,} to {last:,}",
        file,
        None,
        first,
        last,
    )


def missing_end(server: str, partition: str, reached: int, exported: int) -> EvidenceFinding:
    return EvidenceFinding(
        EvidenceKind.MISSING_END,
        server,
        f"the journal ends at change {reached:,} of the partition, but the server's export has "
        f"change {exported:,}",
        None,
        partition,
        reached + 1,
        exported,
    )


def missing_changes(server: str, partition: str, first: int, last: int) -> EvidenceFinding:
    return EvidenceFinding(
        EvidenceKind.MISSING_CHANGES,
        server,
        f"changes {first:,} to {last:,} of the partition are in no record, and no record is "
        "missing: the directory was changed without its journal",
        None,
        partition,
        first,
        last,
    )


def is_missing_end(reached: int | None, exported: int) -> bool:
    """Returns whether changes are missing between a journal's last number and the export's."""
    return reached is not None and 0 < exported - reached < SKIPPED


def repeated(copy: RepeatedSegment) -> EvidenceFinding:
    return EvidenceFinding(
        EvidenceKind.DUPLICATE_SEGMENT,
        copy.segment.server,
        f"{copy.kept} has the same records; the copy is not read",
        copy.segment.path,
        None,
        copy.segment.first_lsn,
    )


def conflicting(server: str, first: int, last: int, count: int) -> EvidenceFinding:
    return EvidenceFinding(
        EvidenceKind.CONFLICTING_RECORDS,
        server,
        f"{count:,} records between {first:,} and {last:,} are there twice with different content",
        None,
        None,
        first,
        last,
    )
