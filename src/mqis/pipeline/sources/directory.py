"""``mqis.directory``: exports, one file a server, named after it (``mqis export psc1.jsonl``).

    spark.read.format("mqis.directory").load("exports")
    spark.read.format("mqis.directory").option("rows", "partitions").load("exports")

A row is an object or a tombstone; with ``rows=partitions`` a partition from the first line of an
export, with ``rows=lines`` an unchanged line. A line that cannot be read, or a file that was cut
off or edited, is a row whose ``error`` is not null. Snapshots of journals are exports too, but of
the past; they are read only if their file names are given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from json import dumps, loads
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, In
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.content import digests
from mqis.pipeline.mapping import settle
from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import Share, Shares, SourceFile, TaskSize
from mqis.pipeline.sources.filters import wants
from mqis.protocol.directory.export_format import (
    BYTE_ORDER_MARK,
    MAX_LINE,
    TOO_LONG,
    ExportError,
    ExportHeader,
    is_end,
    parse_end,
    parse_entry,
    parse_header,
)
from mqis.protocol.directory.export_reading import EDITED as EDITED_REASON
from mqis.protocol.directory.export_reading import NO_DIGEST
from mqis.protocol.directory.objects import DeletedObject
from mqis.protocol.replication.replicated import is_own
from mqis.wire.errors import MqisError

PATTERN = "*.jsonl"
#: The first words of the reasons for an export that was cut off or edited, and for a line that is
#: no text.
CUT, EDITED, NOT_UTF8 = "cut", "edited", "not UTF-8"
#: By the option ``rows``: the schema.
ROWS = {
    "objects": schemas.DIRECTORY,
    "partitions": schemas.PARTITIONS,
    "lines": schemas.EXPORT_LINES,
}
_SNAPSHOT = "snapshot-"
_BLOCK = 1 << 20
#: More bytes than the line of a digest has.
_LAST_LINE = 1 << 10
_DIGESTS = frozenset({"digest", "digests", "site_only"})

Row = dict[str, object]


class DirectorySource(files.CheckedSource):
    """The data source ``mqis.directory``; ``session.open_session`` registers it."""

    OPTIONS = ("server", "rows")

    @classmethod
    def name(cls) -> str:
        return "mqis.directory"

    def schema(self) -> StructType:
        return ROWS[self._kind]

    def reader(self, schema: StructType) -> DirectoryReader:
        files.check_names(schema.fieldNames(), self.schema().fieldNames(), "mqis.directory")
        return DirectoryReader(schema, self.given, self._kind)

    @property
    def _kind(self) -> str:
        kind: str = self.given.get("rows", "objects")
        if kind not in ROWS:
            raise MqisError(
                f"the option rows of mqis.directory is {kind!r}, but has to be one of "
                f"{', '.join(ROWS)}"
            )
        return kind


def export_files(options: dict[str, str]) -> dict[SourceFile, int]:
    """The exports and their sizes; a snapshot is one only if it is named itself."""
    found = files.listing_of(options, "exports", PATTERN)
    named = " ".join(files.paths_given(options))
    return {
        path: size
        for path, size in found.items()
        if path.name in named or not path.name.startswith(_SNAPSHOT)
    }


def server_of(path: str | SourceFile) -> str:
    """The name of the export's server: that of the file, without the ending."""
    name = files.source_file(str(path)).name
    return name.rpartition(".")[0] or name


class DirectoryReader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str], kind: str) -> None:
        self._schema = schema
        self._options = options
        self._kind = kind
        self._size = TaskSize.of(options)
        self._filters: list[Filter] = []
        if "server" in options:
            self._filters = [In(("server",), tuple(options["server"].split(",")))]

    def partitions(self) -> list[Shares]:
        return self._size.packed(self._shares())

    def _shares(self) -> Iterator[Share]:
        size = self._size.share_bytes
        for path, length in export_files(self._options).items():
            if not wants(self._filters, "server", server_of(path)):
                continue
            if self._kind == "partitions":
                yield Share(str(path), 0, 0)
                continue
            for at in range(0, max(length, 1), size):
                yield Share(str(path), at, min(at + size, length))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Shares):  # Spark's placeholder if there are no partitions
            return
        settle()
        arrow = arrays.schema_of(self._schema)
        for share in partition.shares:
            if self._kind == "partitions":
                rows = _partition_rows(share.path)
            else:
                rows = _object_rows(share, frozenset(arrow.names))
            yield from arrays.batches(rows, arrow)


# --- the first line -------------------------------------------------------------------------------


def _partition_rows(path: str) -> Iterator[Row]:
    place: Row = {"server": server_of(path), "file": path}
    try:
        header = _header(path)
    except (OSError, ExportError) as error:
        yield place | {"error": _reason(error)}
        return
    server = header.server
    for state in header.partitions:
        yield place | {
            "exporter": None if server is None else arrays.text(server.name),
            "exporter_id": None if server is None else server.id.raw,
            "enterprise": header.enterprise,
            "partition": state.id.raw,
            "owner": state.owner,
            "last_seq": arrays.signed(state.last_seq.value),
            "purged_seq": arrays.signed(state.purged_seq.value),
            "allowed_purge_seq": arrays.signed(state.allowed_purge_seq.value),
            "purge_state": state.purge_state.name.lower(),
        }


def _header(path: str) -> ExportHeader:
    with files.open_plain(path) as file:
        line = file.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE:
        raise ExportError(TOO_LONG, 1)
    return parse_header(_text(line.removeprefix(BYTE_ORDER_MARK), 1))


def _text(line: bytes, number: int) -> str:
    """Decodes a line as ``mqis import`` does; raises ``ExportError`` if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"{NOT_UTF8}: byte {line[error.start]:#04x} at {error.start} of the line"
        raise ExportError(reason, number) from None


def _reason(error: Exception) -> str:
    return files.unreadable(error) if isinstance(error, OSError) else str(error)


# --- the others -----------------------------------------------------------------------------------


def _object_rows(share: Share, columns: frozenset[str]) -> Iterator[Row]:
    place: Row = {"server": server_of(share.path), "file": share.path}
    try:
        header = _header(share.path)
        if share.start == 0 and (reason := _fault(share.path, header)):
            size = files.size_of(files.source_file(share.path))
            yield place | {"offset": size, "error": reason}
        for offset, line in _lines(share):
            if is_end(line):
                continue
            yield place | {"offset": offset} | _entry(line, columns)
    except (OSError, ExportError) as error:
        if share.start == 0:  # one error row for all shares of a file
            yield place | {"offset": 0, "error": _reason(error)}


def _fault(path: str, header: ExportHeader) -> str:
    """The reason why the file is not as mqis wrote it; "": it is, as far as it tells."""
    held, digest, claimed = _read_through(path)
    if header.lines not in (None, held):
        return f"{CUT}: the file was cut off, it has {held} of {header.lines} lines"
    if claimed is None:
        return f"{EDITED}: it was {NO_DIGEST}" if header.has_digest else ""
    return f"{EDITED}: it was {EDITED_REASON}" if claimed != digest else ""


def _read_through(path: str) -> tuple[int, bytes, bytes | None]:
    """The number of lines after the first, the digest of all but the last, and the one in that.

    The bytes are those that ``export_reading`` computes the digest of, in blocks instead of lines.
    """
    with files.open_plain(path) as file:
        end, claimed = _told_digest(file)
        file.seek(0)
        digest, count, last, left = sha256(), 0, b"\n", end
        block = file.read(min(_BLOCK, left)).removeprefix(BYTE_ORDER_MARK)
        while block:
            left = end - file.tell()
            if block.endswith(b"\r") and left:  # a line feed may follow
                block += file.read(1)
                left -= 1
            count, last = count + block.count(b"\n"), block[-1:]
            digest.update(block.replace(b"\r\n", b"\n"))
            block = file.read(min(_BLOCK, left))
    lines = count if last == b"\n" else count + 1
    return lines - 1 if claimed is None else lines, digest.digest(), claimed


def _told_digest(file: BinaryIO) -> tuple[int, bytes | None]:
    """The offset of the last line, and the digest in it; the file's size and None without one."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _LAST_LINE)
    file.seek(start)
    tail = file.read(size - start)
    line = tail.rstrip(b"\r\n").rpartition(b"\n")[2]
    if not is_end(line):
        return size, None
    return start + tail.rindex(line), parse_end(_text(line, 0), 0)


def _lines(share: Share) -> Iterator[tuple[int, bytes]]:
    """The lines that begin within the share, except the first line of the file.

    A line that is too long is cut at a length that still shows it is; its end is not looked for
    beyond the share.
    """
    with files.open_plain(share.path) as file:
        offset = max(0, share.start - 1)
        file.seek(offset)
        offset += _line(file, share.end - offset)[1]
        while offset < share.end:
            line, length = _line(file, share.end - offset)
            if not length:
                return
            yield offset, line
            offset += length


def _line(file: BinaryIO, within: int) -> tuple[bytes, int]:
    """Returns the next line, or the beginning of one that is too long, and its length."""
    line = more = file.readline(MAX_LINE + 1)
    length = len(line)
    while length < within and len(more) > MAX_LINE and not more.endswith(b"\n"):
        more = file.readline(MAX_LINE + 1)
        length += len(more)
    return line, length


def _entry(raw: bytes, columns: frozenset[str]) -> Row:
    if len(raw) > MAX_LINE:
        return {"error": TOO_LONG}
    try:
        line = _text(raw, 0).rstrip("\r\n")
        entry = parse_entry(line, 0)
    except ExportError as error:
        where = f"{error.key}: " if error.key else ""
        return {"error": f"{where}{error.reason}"}
    row: Row = {
        "partition": entry.partition.raw,
        "id": entry.id.raw,
        "seq": arrays.signed(entry.seq.value),
    }
    if "line" in columns:
        row["line"] = line
    if isinstance(entry, DeletedObject):
        return row | {"type": int(entry.object_type), "deleted": True}
    row |= {"type": int(entry.type), "deleted": False, "own": is_own(entry)}
    row["path"] = None if entry.path is None else arrays.text(entry.path)
    if columns & _DIGESTS:
        try:
            row["digest"], row["digests"], row["site_only"] = digests(entry)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return {"error": f"the value of a property has the wrong type: {error}"}
    if "props" in columns:
        row["props"] = _props(line)
    return row


def _props(line: str) -> str:
    """The JSON text of the properties; exports have them last in a line."""
    at = line.find(',"props":{')
    if at > 0 and line.endswith("}}"):
        return line[at + len(',"props":') : -1]
    return dumps(loads(line)["props"], separators=(",", ":"))
