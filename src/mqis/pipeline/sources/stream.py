"""``mqis.journal`` as a stream: records as servers append them.

An offset has, for each segment file, the position up to which its records have been read. It is
always the end of a whole record, so an unfinished write is left for later, and the same offsets
give the same rows whenever they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, Filter
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from mqis.pipeline.sources.files import (
    Share,
    SourceError,
    SourceFile,
    open_plain,
    paths_in,
    source_file,
)
from mqis.pipeline.sources.filters import wants
from mqis.pipeline.sources.segments import scan

Offset = dict[str, int]
#: A batch reads at most so many bytes of one file.
_AT_ONCE = 64 << 20


class JournalStreamReader(DataSourceStreamReader):
    """Spark's reader of a stream of journals.

    ``header`` returns a segment's server and the offset of its first record, None if its header is
    not complete; ``read`` reads a share.
    """

    def __init__(
        self,
        schema: StructType,
        options: Mapping[str, str],
        filters: list[Filter],
        header: Callable[[SourceFile], tuple[str, int] | None],
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
                continue  # its header is not written yet, or it belongs to another server
            begin = start.get(str(path), known[1])
            reached[str(path)] = begin + whole_bytes(path, begin)
        return dict(sorted(reached.items()))

    def partitions(self, start: Offset, end: Offset) -> list[Share]:
        found = []
        for path, until in sorted(end.items()):
            known = self._header(source_file(path))
            begin = start.get(path, 0 if known is None else known[1])
            if known is not None and begin < until:
                found.append(Share(path, begin, until))
        return found

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):
            raise SourceError(
                f"a stream of journals reads shares of segments, not {type(partition).__name__}"
            )
        return self._read(partition, self._schema, self._filters)

    def commit(self, end: Offset) -> None:
        """Does nothing: the reader keeps no state that could be discarded."""


def whole_bytes(path: SourceFile, begin: int) -> int:
    """The number of bytes after ``begin`` up to the end of the last whole record."""
    with open_plain(path) as file:
        file.seek(begin)
        found = scan(file.read(_AT_ONCE), begin)
    if not len(found):
        return 0
    return int(found.starts[-1] + found.headers["length"][-1])
