"""``mqis.journal`` as a stream: records as servers append them.

An offset has, for each segment file, the position up to which its records have been read. It is
always the end of a whole record, so an unfinished write is left for later, and the same offsets
give the same rows whenever they are read again. The driver reads little to find it: a segment that
another one follows is whole, so its end is in the listing; an index tells where blocks begin; and
in the last segment of a journal, it follows the lengths of the new records and sums up only the
last of them, whose write may not be finished. Executors check all. Segments that an earlier batch
has read to their end, and that another one follows, are only a range of numbers for each directory,
so an offset grows with the journals and not with their segments. It also has the columns of the
stream, so that a restart that would write other rows into the same table is refused.

``maxBytesPerTrigger`` and ``maxRowsPerTrigger`` limit a batch; rows are counted as records, also if
each of them becomes several changes. With ``Trigger.AvailableNow`` the stream ends where the files
ended when it was started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import Any, BinaryIO
from zlib import crc32

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, Filter
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import Share, Shares, SourceFile, TaskSize
from mqis.pipeline.sources.filters import column_of, wants
from mqis.pipeline.sources.inventory import cuts_of, index_of, open_segment, segment_files
from mqis.pipeline.sources.segments import scans
from mqis.places import RemoteAddress
from mqis.wire.errors import MqisError
from mqis.wire.journal.index import TAIL_BYTES, SegmentIndex, looks_like_index
from mqis.wire.journal.layout import COVERED_AT, HEADER_SIZE, MAX_RECORD, length_and_crc

Offset = dict[str, Any]
#: The keys of an offset that have the stream's columns, and for each directory the first and last
#: numbers of the segments that are read to their end; the others are paths.
_COLUMNS, _READ = "columns", "read"
_NO_PATHS = (_COLUMNS, _READ)
#: A task reads at most about so many bytes.
_SHARE_BYTES = 16 << 20
_NO_LIMIT = 1 << 62
#: The names that servers give; only they tell which segment follows another.
_SEGMENT = re.compile(r"segment-([0-9]{10})\.mqj")


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader of a stream of journals; ``read`` reads a share."""

    def __init__(
        self,
        schema: StructType,
        options: Mapping[str, str],
        filters: list[Filter],
        read: Callable[[Share], Iterator[pa.RecordBatch]],
    ) -> None:
        self._schema = schema
        self._options = dict(options) | {"allow_empty": "true"}
        self._filters = filters
        self._read = read
        self._limit = limit_of(options)
        self._size = TaskSize.of(options)
        self._closed: frozenset[str] = frozenset()
        self._sizes: dict[str, int] = {}
        #: Segments that have no more records, though the stream has not come to their end.
        self._finished: set[str] = set()
        #: The sizes at which a stream with Trigger.AvailableNow ends.
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {_COLUMNS: self._columns}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        found = segment_files(self._options)
        self._until = {str(path): size for path, size in found.items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        self._check_columns(start)
        reached = dict(start)
        waiting = sorted(self._unread(start), key=lambda f: (f.start - f.end, f.path))
        size, rows = _amounts(limit)
        for number, file in enumerate(waiting):
            left = len(waiting) - number  # a busy server must not keep the others waiting
            if min(size, rows) <= 0:
                break
            if size == rows == _NO_LIMIT and file.path in self._closed:
                reached[file.path] = file.end
                continue
            length, count = whole_records(file, max(1, size // left), max(1, rows // left))
            if length:
                reached[file.path] = file.start + length
            elif file.path in self._closed:  # what is left is its index
                self._finished.add(file.path)
            size, rows = size - length, rows - count
        if reached == start:
            return start
        return dict(sorted(self._shortened(reached, start).items()))

    def partitions(self, start: Offset, end: Offset) -> list[Shares]:
        self._check_columns(end)
        found: list[Share] = []
        for path, until in sorted(end.items()):
            if path not in _NO_PATHS:
                found += self._shares(files.source_file(path), start.get(path, 0), until)
        return self._size.packed(found)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Shares):
            raise MqisError(
                f"a stream of journals reads shares of segments, not {type(partition).__name__}"
            )
        return chain.from_iterable(map(self._read, partition.shares))

    def commit(self, end: Offset) -> None:
        """Does nothing: the reader keeps no state that could be discarded."""

    # --- helpers ----------------------------------------------------------------------------------

    @property
    def _columns(self) -> str:
        return f"{self._options.get('rows', 'records')}: {self._schema.simpleString()}"

    def _check_columns(self, offset: Offset) -> None:
        before = offset.get(_COLUMNS, self._columns)
        if before != self._columns:
            raise MqisError(
                f"the stream of this checkpoint was started with {before}, and is now asked for "
                f"{self._columns}; give the same columns, or a new checkpoint and a new table"
            )

    def _shortened(self, reached: Offset, start: Offset) -> Offset:
        """The offset with ranges in the place of segments that earlier batches have read."""
        ranges = {place: [*spans] for place, spans in start.get(_READ, {}).items()}
        short = dict(reached)
        for path in start.keys() & reached.keys() - {*_NO_PATHS}:
            is_read = start[path] == self._sizes.get(path) or path in self._finished
            if path in self._closed and is_read and start[path] == reached[path]:
                place, number = _place_of(files.source_file(path))
                ranges[place] = with_number(ranges.get(place, []), number)
                del short[path]
        return short | {_READ: ranges} if ranges else short

    def _unread(self, start: Offset) -> Iterator[Share]:
        """The parts by which files have grown since ``start``."""
        found = segment_files(self._options)
        self._closed = followed(found)
        self._sizes = {str(path): size for path, size in found.items()}
        for path, size in found.items():
            if _is_in(start.get(_READ, {}), path):
                continue
            until = size if self._until is None else self._until.get(str(path), 0)
            if until > start.get(str(path), 0) and self._is_wanted(path):
                yield Share(str(path), start.get(str(path), 0), until)

    def _is_wanted(self, path: SourceFile) -> bool:
        """False for a file of another server, and for one whose header is not written yet."""
        if not any(column_of(pushed) == "server" for pushed in self._filters):
            return True
        header, _, _ = open_segment(path)
        return header is not None and wants(self._filters, "server", header.server)

    def _shares(self, path: SourceFile, start: int, until: int) -> list[Share]:
        if start >= until:
            return []
        size = files.size_of(path)
        if size < until:
            raise MqisError(
                f"{path}: a batch of the stream has to be read again up to byte {until}, and the "
                "file is gone or shorter; put it back, or use a new checkpoint and a new table"
            )
        first = open_segment(path)[1] if until - start > _SHARE_BYTES else 0
        index = index_of(path, first, size) if first else None
        if index is None:
            return [Share(str(path), start, until)]
        cuts = cuts_of(index, index.spans, _SHARE_BYTES)
        inside = [(max(a, start), min(b, until)) for a, b in cuts if a < until and b > start]
        if start == 0:  # its task tells of a damaged header
            inside[0] = 0, inside[0][1]
        return [Share(str(path), *cut) for cut in inside]


def followed(found: Iterable[SourceFile]) -> frozenset[str]:
    """The segments that another one of their directory follows: nothing is added to them."""
    last: dict[str, SourceFile] = {}
    closed: set[str] = set()
    for path in sorted(filter(_is_numbered, found), key=lambda path: path.name):
        place = str(path.parent)
        if place in last:
            closed.add(str(last[place]))
        last[place] = path
    return frozenset(closed)


def _is_numbered(path: SourceFile) -> bool:
    return _SEGMENT.fullmatch(path.name) is not None


def _place_of(path: SourceFile) -> tuple[str, int]:
    """The directory of a segment that has the name which its server gave it, and its number."""
    match = _SEGMENT.fullmatch(path.name)
    assert match is not None
    return str(path.parent), int(match[1])


def _is_in(ranges: Mapping[str, Iterable[Sequence[int]]], path: SourceFile) -> bool:
    if not (ranges and _is_numbered(path)):
        return False
    place, number = _place_of(path)
    return any(first <= number <= last for first, last in ranges.get(place, ()))


def with_number(ranges: Iterable[Sequence[int]], number: int) -> list[list[int]]:
    """Adds a number to ranges; those that meet become one."""
    found: list[list[int]] = []
    for first, last in sorted([*map(list, ranges), [number, number]]):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return found


def limit_of(options: Mapping[str, str]) -> ReadLimit:
    """The limit of a batch that the options give."""
    given = {name.lower(): value for name, value in options.items()}
    limits: list[ReadLimit] = []
    for name, kind in (("maxBytesPerTrigger", ReadMaxBytes), ("maxRowsPerTrigger", ReadMaxRows)):
        if name.lower() in given:
            limits.append(kind(_positive(name, given[name.lower()])))
    if len(limits) > 1:
        raise MqisError("mqis.journal takes maxBytesPerTrigger or maxRowsPerTrigger, not both")
    return limits[0] if limits else ReadAllAvailable()


def _positive(name: str, value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise MqisError(f"the option {name} of mqis.journal is a positive number, not {value!r}")
    return int(value)


def _amounts(limit: ReadLimit) -> tuple[int, int]:
    """The bytes and the records that a batch may have."""
    if isinstance(limit, ReadMaxBytes):
        return limit.max_bytes, _NO_LIMIT
    if isinstance(limit, ReadMaxRows):
        return _NO_LIMIT, limit.max_rows
    return _NO_LIMIT, _NO_LIMIT


def whole_records(file: Share, size: int, rows: int) -> tuple[int, int]:
    """The length and number of whole records that a batch takes from a file.

    It takes at least one record if there is one, so that a small limit does not stop the stream.
    """
    path = files.source_file(file.path)
    header, first, _ = open_segment(path)
    if header is None:
        return 0, 0  # it is being created, or damaged: then it is told when another one follows
    begin = max(file.start, first)
    index = index_of(path, first, file.end) if file.end - begin > TAIL_BYTES else None
    at, count = (begin, 0) if index is None else _whole_blocks(index, begin, size, rows)
    if count and isinstance(path, RemoteAddress):
        return at - file.start, count
    with files.open_plain(path) as opened:
        ends = _ends(opened, at, file.end)
        taken = list(islice(takewhile(lambda end: end - begin <= size, ends), rows - count))
        if not (taken or count):
            taken = list(islice(_ends(opened, at, file.end), 1))
    if not taken:
        return (at - file.start, count) if count else (0, 0)
    return taken[-1] - file.start, count + len(taken)


def _whole_blocks(index: SegmentIndex, begin: int, size: int, rows: int) -> tuple[int, int]:
    """The end and the number of records of the blocks that a batch takes as they are."""
    at, count = begin, 0
    for block, (start, end) in zip(index.blocks, index.spans, strict=True):
        if start == at and end - begin <= size and count + block.records <= rows:
            at, count = end, count + block.records
    return at, count


def _ends(file: BinaryIO, start: int, end: int) -> Iterator[int]:
    """The offsets at which records end, by their lengths; where a length is wrong, by a scan.

    The last record counts only if its checksum is right: its write may not be finished.
    """
    at = start
    following = _following(file, at, end)
    while following is not None:
        behind = following
        following = _following(file, behind, end)
        if following is None and not _is_whole(file, at, behind):
            break
        yield behind
        at = behind
    yield from _scanned_ends(file, at, end)


def _following(file: BinaryIO, at: int, end: int) -> int | None:
    """The end of the record at an offset, by its length; None if there is no record."""
    file.seek(at)
    head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return None
    length = length_and_crc(head, 0)[0]
    possible = HEADER_SIZE <= length <= min(MAX_RECORD, end - at)
    return at + length if possible and not looks_like_index(head) else None


def _is_whole(file: BinaryIO, start: int, end: int) -> bool:
    file.seek(start)
    data = file.read(end - start)
    return len(data) == end - start and crc32(data[COVERED_AT:]) == length_and_crc(data, 0)[1]


def _scanned_ends(file: BinaryIO, start: int, end: int) -> Iterator[int]:
    """The ends of whole records behind damage, or none."""
    for found in scans(file, start, end, last=True):
        ends = found.base + found.starts + found.headers["length"]
        yield from ends.tolist()
