"""``mqis.journal`` as a stream: records as servers append them.

An offset has, for each segment file, the position up to which its records have been read. It is
always the end of a whole record, so an unfinished write is left for later, and the same offsets
give the same rows whenever they are read again. An offset also has the columns of the stream, so
that a restart that would write other rows into the same table is refused.

``maxBytesPerTrigger`` and ``maxRowsPerTrigger`` limit a batch; rows are counted as records, also if
each of them becomes several changes. With ``Trigger.AvailableNow`` the stream ends where the files
ended when it was started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

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
from mqis.pipeline.sources.files import Share, SourceFile
from mqis.pipeline.sources.filters import wants
from mqis.pipeline.sources.inventory import open_segment, segment_files
from mqis.pipeline.sources.segments import scans
from mqis.wire.errors import MqisError

Offset = dict[str, Any]
#: The key of an offset that has the stream's columns; the others are paths.
_COLUMNS = "columns"
#: A task reads at most about so many bytes.
_SHARE_BYTES = 16 << 20
_NO_LIMIT = 1 << 62


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
        #: The sizes at which a stream with Trigger.AvailableNow ends.
        self._until: dict[str, int] | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {_COLUMNS: self._columns}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._until = {str(path): files.size_of(path) for path in segment_files(self._options)}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        self._check_columns(start)
        reached = dict(start)
        waiting = sorted(self._unread(start), key=lambda f: (f.start - f.end, f.path))
        size, rows = _amounts(limit)
        for number, file in enumerate(waiting):
            left = len(waiting) - number  # a busy server must not keep the others waiting
            if min(size, rows) <= 0:
                break
            length, count = whole_records(file, max(1, size // left), max(1, rows // left))
            reached[file.path] = file.start + length
            size, rows = size - length, rows - count
        return dict(sorted(reached.items()))

    def partitions(self, start: Offset, end: Offset) -> list[Share]:
        self._check_columns(end)
        found: list[Share] = []
        for path, until in sorted(end.items()):
            if path != _COLUMNS:
                found += self._shares(files.source_file(path), start.get(path), until)
        return found

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):
            raise MqisError(
                f"a stream of journals reads shares of segments, not {type(partition).__name__}"
            )
        return self._read(partition)

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

    def _unread(self, start: Offset) -> Iterator[Share]:
        """The parts by which files have grown since ``start``."""
        for path in segment_files(self._options):
            until = files.size_of(path) if self._until is None else self._until.get(str(path), 0)
            if until <= start.get(str(path), 0):
                continue
            header, first, _ = open_segment(path)
            if header is None or not wants(self._filters, "server", header.server):
                continue  # its header is not written yet, or it belongs to another server
            yield Share(str(path), start.get(str(path), first), until)

    def _shares(self, path: SourceFile, start: int | None, until: int) -> list[Share]:
        if start is not None and start >= until:
            return []
        header, first, _ = open_segment(path)
        if header is None or files.size_of(path) < until:
            raise MqisError(
                f"{path}: a batch of the stream has to be read again up to byte {until}, and the "
                "file is gone or shorter; put it back, or use a new checkpoint and a new table"
            )
        begin = first if start is None else start
        if until - begin <= _SHARE_BYTES:
            return [Share(str(path), begin, until)] if begin < until else []
        return _cut(path, begin, until)


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
    length = count = 0
    with files.open_plain(file.path) as opened:
        for found in scans(opened, file.start, file.end, last=True):
            if not len(found):
                break
            ends = found.base - file.start + found.starts + found.headers["length"]
            taken = min(int((ends <= size).sum()), rows - count)
            taken = max(taken, int(count == 0))
            if taken:
                length, count = int(ends[taken - 1]), count + taken
            if taken < len(found):
                break
    return length, count


def _cut(path: SourceFile, begin: int, until: int) -> list[Share]:
    """Shares of a long part of a file, each beginning with a whole record."""
    with files.open_plain(path) as opened:
        blocks = scans(opened, begin, until, last=False)
        inside = [found.base for found in blocks if found.base > begin]
    return [Share(str(path), a, b) for a, b in pairwise([begin, *inside, until])]
