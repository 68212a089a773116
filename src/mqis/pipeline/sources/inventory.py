"""The segment files of journals, their headers, and those of them that are there twice.

A record is one by its server and number. Copies of a segment are told by their headers and digests,
so that each record is counted once and nothing has to be sorted for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pyspark.sql.datasource import Filter

from mqis.pipeline.sources.files import (
    SourceFile,
    listing_of,
    open_plain,
    part_of,
    source_file,
    unreadable,
)
from mqis.pipeline.sources.filters import column_of, may_pass_between, values_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind, RecordState, SegmentHeader, segment_header
from mqis.wire.journal.index import (
    TAIL_BYTES,
    IndexBlock,
    SegmentIndex,
    index_length,
    kind_bit,
    partition_bit,
    read_index,
)
from mqis.wire.journal.segmentheader import header_length

#: Any name: a segment that somebody renamed is read, and its name is evidence.
PATTERN = "*.mqj"
#: Nearly every header is shorter; the maximum is 64 KiB.
_HEADER_BYTES = 4 << 10
_BLOCK = 1 << 20


def segment_files(options: Mapping[str, str]) -> dict[SourceFile, int]:
    """The files that ``path`` names, and their sizes, without those of ``without`` (JSON)."""
    without = frozenset(json.loads(options.get("without", "[]")))
    found = listing_of(options, "journal segments", PATTERN)
    return {path: size for path, size in found.items() if str(path) not in without}


def open_segment(path: SourceFile) -> tuple[SegmentHeader | None, int, str]:
    """Returns (header, offset of the first record, ""); (None, 0, reason) if it cannot be read."""
    try:
        data = part_of(path, 0, _HEADER_BYTES)
        length = header_length(data)
        if length > _HEADER_BYTES:
            data = part_of(path, 0, length)
        header, start = segment_header(data)
    except OSError as error:
        return None, 0, unreadable(error)
    except WireError as error:
        return None, 0, str(error)
    return header, start, ""


def server_of_segment(path: SourceFile) -> str | None:
    """The name of the server that wrote the segment; None if its header cannot be read."""
    header, _, _ = open_segment(path)
    return None if header is None else header.server


# --- the index ------------------------------------------------------------------------------------


def index_of(path: SourceFile, first: int, size: int) -> SegmentIndex | None:
    """The index of a sealed segment; None if there is none, or if it is damaged.

    It has to begin with the first record: if somebody put another header before the records, the
    index does not help to find them.
    """
    try:
        tail = part_of(path, max(0, size - TAIL_BYTES), size)
        length = index_length(tail)
        if length > len(tail):
            tail = part_of(path, max(0, size - length), size)
        index = read_index(tail, size)
        return index if index.blocks[0].offset == first else None
    except (OSError, WireError):
        return None


def wanted_spans(index: SegmentIndex, filters: Sequence[Filter]) -> list[tuple[int, int]]:
    """The parts of a segment in which records can pass the filters, as long as possible."""
    found: list[tuple[int, int]] = []
    for block, (start, end) in zip(index.blocks, index.spans, strict=True):
        if not all(_may_pass(block, pushed) for pushed in filters):
            continue
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def cuts_of(
    index: SegmentIndex, spans: Iterable[tuple[int, int]], size: int
) -> list[tuple[int, int]]:
    """Divides parts of a segment into shares of ``size`` bytes or a little more, between blocks."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        begin = start
        for block, until in index.spans:
            if start <= block and until <= end and (until - begin >= size or until == end):
                found.append((begin, until))
                begin = until
    return found


def _may_pass(block: IndexBlock, pushed: Filter) -> bool:
    name = column_of(pushed)
    if name == "lsn":
        return may_pass_between(pushed, block.first_lsn, block.last_lsn)
    if name == "time":
        return may_pass_between(pushed, block.earliest_us, block.latest_us)
    values = values_of(pushed)
    if values is None:
        return True
    if name == "partition":
        return any(block.partitions & partition_bit(bytes(value)) for value in values)
    if name in ("kind", "state"):
        present = (key for key in _KINDS if block.kinds & kind_bit(*key))
        return any(key[name == "state"] in values for key in present)
    return True


_KINDS = [(int(kind), int(state)) for kind in RecordKind for state in RecordState]


# --- copies ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file and what its header says; ``first_lsn`` is the number of its first record."""

    path: str
    size: int
    server: str
    server_id: Guid
    number: int
    first_lsn: int
    header: SegmentHeader | None = None
    #: The SHA-256 of the file; None until a task has read it.
    digest: bytes | None = None
    #: The SHA-256 of the snapshot that the segment begins at, if it is there.
    snapshot_digest: bytes | None = None
    #: The file that contains all of this one, which is not read then.
    kept: str | None = None

    @property
    def identity(self) -> tuple[str, bytes, int, int]:
        return self.server, self.server_id.raw, self.number, self.first_lsn

    @property
    def is_misnamed(self) -> bool:
        """True if the file does not have the name that the server gave it."""
        return source_file(self.path).name != f"segment-{self.number:010}.mqj"


def copies_among(segments: Iterable[SegmentFile]) -> Iterator[SegmentFile]:
    """Yields those of some segments that another one contains, with ``kept``, the name of that.

    Files of one length are compared by their digests. Only a shorter one, which may be an older
    copy of a segment that has grown, is compared byte by byte.
    """
    by_identity = sorted(segments, key=lambda s: (s.identity, -s.size, s.is_misnamed, s.path))
    for _, group in groupby(by_identity, key=lambda s: s.identity):
        whole: list[SegmentFile] = []
        for segment in group:
            holder = next((one for one in whole if _contains(one, segment)), None)
            if holder is None:
                whole.append(segment)
            else:
                yield replace(segment, kept=holder.path)


def _contains(longer: SegmentFile, segment: SegmentFile) -> bool:
    """Returns whether ``longer`` begins with all bytes of the segment: the server added more."""
    if longer.size == segment.size:
        return longer.digest == segment.digest
    try:
        with open_plain(longer.path) as first, open_plain(segment.path) as second:
            while block := second.read(_BLOCK):
                if first.read(len(block)) != block:
                    return False
    except OSError:
        return False
    return True
