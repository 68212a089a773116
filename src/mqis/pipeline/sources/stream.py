"""``mqis.journal`` as a stream: records as servers append them.

An offset is a number for each segment file: up to where its records have been read. It only ever
stands behind a whole record, so an unfinished write waits, and the same offsets give the same rows
however often they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, Filter
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from mqis.pipeline.sources.files import Share, SourceError, open_plain, paths_in
from mqis.pipeline.sources.filters import wants
from mqis.pipeline.sources.segments import scan

Offset = dict[str, int]
#: What a batch takes of one file at most, unless there is nothing else to wait for.
_AT_ONCE = 64 << 20


class JournalStreamReader(DataSourceStreamReader):
    """``read`` is how a share is read, ``header`` tells the server and where records begin."""

    def __init__(
        self,
        schema: StructType,
        options: Mapping[str, str],
        filters: list[Filter],
        header: Callable[[Path], tuple[str, int] | None],
        read: Callable[[Share, StructType, list[Filter]], Iterator[pa.RecordBatch]],
    ) -> None:
        self._schema = schema
        self._options = dict(options) | {"allow_empty": "true"}
        self._filters = filters
        self._header = header
        self._read = read

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        reached = dict(start)
        for path in paths_in(self._options, "segment-*.mqj", "journal segments"):
            known = self._header(path)
            if known is None or not wants(self._filters, "server", known[0]):
                continue  # its header is not there yet, or it is another server's
            begin = start.get(str(path), known[1])
            reached[str(path)] = begin + whole_bytes(path, begin)
        return dict(sorted(reached.items()))

    def partitions(self, start: Offset, end: Offset) -> list[Share]:
        found = []
        for path, until in sorted(end.items()):
            known = self._header(Path(path))
            begin = start.get(path, 0 if known is None else known[1])
            if known is not None and begin < until:
                found.append(Share(path, begin, until))
        return found

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):
            raise SourceError("a stream of journals reads shares of segments")
        return self._read(partition, self._schema, self._filters)

    def commit(self, end: Offset) -> None:
        """Nothing is kept that could be forgotten now."""


def whole_bytes(path: Path, begin: int) -> int:
    """How many bytes behind ``begin`` end with a whole record."""
    with open_plain(path) as file:
        file.seek(begin)
        found = scan(file.read(_AT_ONCE), begin)
    if not len(found):
        return 0
    return int(found.starts[-1] + found.headers["length"][-1])
