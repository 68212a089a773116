"""``mqis.segments``: one row for each segment file, with its header, SHA-256 and damaged places.

Digest and damage come from one reading of each file. A digest covers a whole file, so a task reads
whole files and not shares of them; small files share a task. With ``rows=digests`` a row has the
SHA-256 of a file, whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import SourceFile
from mqis.pipeline.sources.inventory import open_segment, segment_files
from mqis.pipeline.sources.records import SegmentFault
from mqis.pipeline.sources.segments import scans
from mqis.texts import joined
from mqis.wire.errors import MqisError
from mqis.wire.journal import SegmentHeader

#: The bytes and files that a task reads at most, if it reads more than one file.
_TASK_BYTES, _TASK_FILES = 64 << 20, 64
_READ_BYTES = 1 << 20
_MAX_NUMBER = (1 << 63) - 1

Row = dict[str, object]

#: The values of the option ``rows`` and the columns that each has.
DIGESTS = "digests"
ROWS = {"segments": schemas.CHECKED_SEGMENTS, DIGESTS: schemas.DIGESTS}


class SegmentSource(files.CheckedSource):
    """The data source ``mqis.segments``; ``session.open_session`` registers it."""

    OPTIONS = ("without", "rows")

    @classmethod
    def name(cls) -> str:
        return "mqis.segments"

    def schema(self) -> StructType:
        rows = self.given.get("rows", "segments")
        if rows not in ROWS:
            raise MqisError(f"mqis.segments has no rows {rows!r}; it has {joined([*ROWS])}")
        return ROWS[rows]

    def reader(self, schema: StructType) -> SegmentReader:
        files.check_names(schema.fieldNames(), self.schema().fieldNames(), self.name())
        return SegmentReader(schema, self.given)


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
        paths = map(files.source_file, partition.paths)
        arrow = arrays.schema_of(self._schema)
        if self._options.get("rows") == DIGESTS:
            rows: Iterable[Row] = ({"file": str(p), "digest": _digest(p)} for p in paths)
        else:
            of_snapshot = "snapshot_digest" in arrow.names
            rows = (checked_segment(path, of_snapshot=of_snapshot) for path in paths)
        yield from arrays.batches(rows, arrow)


def _tasks(found: Mapping[SourceFile, int]) -> Iterator[WholeFiles]:
    waiting: list[str] = []
    total = 0
    for path, size in found.items():
        if waiting and (total + size > _TASK_BYTES or len(waiting) == _TASK_FILES):
            yield WholeFiles(tuple(waiting))
            waiting, total = [], 0
        waiting.append(str(path))
        total += size
    if waiting:
        yield WholeFiles(tuple(waiting))


def checked_segment(path: SourceFile, *, of_snapshot: bool = True) -> Row:
    """Reads a file; if its header cannot be read, the row has a damaged place and no header.

    A file is read once and in blocks, so it may have any length. With ``of_snapshot`` the snapshot
    that it begins at is read, too.
    """
    header, start, reason = open_segment(path)
    if header is not None:
        snapshot = _snapshot_of(path.parent, header)
        digest = _digest(snapshot) if of_snapshot and snapshot is not None else None
        told = {"file": str(path), "snapshot_digest": digest}
        told["snapshot"] = None if snapshot is None else str(snapshot)
        try:
            return header_row(header) | told | _checked(path, start)
        except OSError as error:
            reason = files.unreadable(error)
    size = files.size_of(path)
    return {"file": str(path), "size": size, "damage": [SegmentFault(0, size, reason)._asdict()]}


def _checked(path: SourceFile, start: int) -> Row:
    """The columns that come from the bytes of a segment."""
    size = files.size_of(path)
    lowest, highest, damage = [], [], []
    with files.open_plain(path) as file:
        summed = _Summed(file)
        for found in scans(summed, start, size, last=True):  # type: ignore[arg-type]
            numbers = found.headers["lsn"].astype(np.int64)
            lowest += [int(numbers.min())] if len(numbers) else []
            highest += [int(numbers.max())] if len(numbers) else []
            damage += [SegmentFault.of(entry, found.base)._asdict() for entry in found.damage]
        summed.read_until(size)
    return {
        "size": summed.size,
        "lowest_lsn": min(lowest, default=None),
        "highest_lsn": max(highest, default=None),
        "digest": summed.digest.digest(),
        "damage": damage,
    }


class _Summed:
    """A file that is read from its beginning on; computes the digest of what was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = sha256()
        self.size = 0

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        self.size += len(data)
        return data

    def seek(self, offset: int) -> None:
        """Reads up to an offset, because the digest is that of all bytes."""
        self.read_until(offset)

    def read_until(self, offset: int) -> None:
        while self.size < offset and self.read(min(_READ_BYTES, offset - self.size)):
            pass


def _snapshot_of(directory: SourceFile, header: SegmentHeader) -> SourceFile | None:
    """The snapshot that the segment begins at, whether it is there or not."""
    name = header.snapshot
    if not name or header.snapshot_lsn != header.first_lsn - 1:
        return None
    if Path(name).name != name:  # a header must not make us read other directories
        return None
    return directory / name


def _digest(path: SourceFile) -> bytes | None:
    """The SHA-256 of a file; None if it is not there."""
    try:
        with files.open_plain(path) as file:
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
