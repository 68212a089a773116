"""``mqis.segments``: one row for each segment file, with its header, SHA-256 and damaged places.

Digest and damage come from one reading of each file. A digest covers a whole file, so a task reads
whole files and not shares of them; small files share a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import SourceFile
from mqis.pipeline.sources.inventory import open_segment, segment_files
from mqis.pipeline.sources.records import SegmentFault
from mqis.pipeline.sources.segments import scan
from mqis.wire.journal import SegmentHeader

#: The bytes and files that a task reads at most, if it reads more than one file.
_TASK_BYTES, _TASK_FILES = 64 << 20, 64
_MAX_NUMBER = (1 << 63) - 1

Row = dict[str, object]


class SegmentSource(DataSource):
    """The data source ``mqis.segments``; ``session.open_session`` registers it."""

    @classmethod
    def name(cls) -> str:
        return "mqis.segments"

    def schema(self) -> StructType:
        return schemas.CHECKED_SEGMENTS

    def reader(self, schema: StructType) -> SegmentReader:
        files.check_names(schema.fieldNames(), schemas.CHECKED_SEGMENTS.fieldNames(), self.name())
        return SegmentReader(schema, dict(self.options))


@dataclass(frozen=True, slots=True)
class WholeFiles(InputPartition):
    """The files that one task reads."""

    paths: tuple[str, ...]


class SegmentReader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = options

    def partitions(self) -> list[WholeFiles]:
        return list(_tasks(segment_files(self._options)))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, WholeFiles):  # Spark's placeholder if there are no partitions
            return
        rows = (checked_segment(files.source_file(path)) for path in partition.paths)
        yield from arrays.batches(rows, arrays.schema_of(self._schema))


def _tasks(paths: Iterable[SourceFile]) -> Iterator[WholeFiles]:
    waiting: list[str] = []
    total = 0
    for path in paths:
        size = files.size_of(path)
        if waiting and (total + size > _TASK_BYTES or len(waiting) == _TASK_FILES):
            yield WholeFiles(tuple(waiting))
            waiting, total = [], 0
        waiting.append(str(path))
        total += size
    if waiting:
        yield WholeFiles(tuple(waiting))


def checked_segment(path: SourceFile) -> Row:
    """Reads a file; if its header cannot be read, the row has a damaged place and no header."""
    header, start, reason = open_segment(path)
    if header is not None:
        try:
            with files.open_plain(path) as file:
                data = file.read()
        except OSError as error:
            header, reason = None, files.unreadable(error)
    if header is None:
        size = files.size_of(path)
        return {
            "file": str(path),
            "size": size,
            "damage": [SegmentFault(0, size, reason)._asdict()],
        }
    found = scan(data[start:], start)
    numbers = found.headers["lsn"].astype(np.int64).tolist()
    return header_row(header) | {
        "file": str(path),
        "size": len(data),
        "lowest_lsn": min(numbers, default=None),
        "highest_lsn": max(numbers, default=None),
        "digest": sha256(data).digest(),
        "snapshot_digest": _snapshot_digest(path.parent, header),
        "damage": [SegmentFault.of(entry, start)._asdict() for entry in found.damage],
    }


def _snapshot_digest(directory: SourceFile, header: SegmentHeader) -> bytes | None:
    """The SHA-256 of the snapshot that the segment begins at; None if it is not there."""
    name = header.snapshot
    if not name or header.snapshot_lsn != header.first_lsn - 1:
        return None
    if Path(name).name != name:  # a header must not make us read other directories
        return None
    try:
        with files.open_plain(directory / name) as file:
            return file_digest(file, "sha256").digest()  # type: ignore[arg-type]
    except OSError:
        return None


def header_row(header: SegmentHeader) -> Row:
    """The columns that come from a header; a number that Spark cannot hold is cut to its limit."""
    return {
        "server": arrays.text(header.server),
        "server_id": header.server_id.raw,
        "number": min(header.number, _MAX_NUMBER),
        "first_lsn": min(header.first_lsn, _MAX_NUMBER),
        "header": header.to_bytes(),
    }
