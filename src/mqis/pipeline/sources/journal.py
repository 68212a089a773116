"""``mqis.journal``: the segment files of any number of servers.

    spark.read.format("mqis.journal").load("run/psc1/journal")

Options: ``path`` (files or directories, with commas), ``server`` and ``partition`` (one or several,
with commas), ``since`` and ``until`` (ISO times), ``share_bytes`` (how much a task reads),
``without`` (a JSON list of files that are not read). A row is a record or, if ``error`` is not
null, a damaged place. Bodies are bytes here; ``transforms.bodies`` decodes those that a query
needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from mmap import ACCESS_READ, mmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    Filter,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources import arrays
from mqis.pipeline.sources.files import (
    Share,
    SourceError,
    SourceFile,
    chosen,
    local_copy,
    open_plain,
    paths_in,
    size_of,
    source_file,
    unreadable,
)
from mqis.pipeline.sources.filters import column_of, mask, split, wants
from mqis.pipeline.sources.segments import Damage, Scan, joined, scan, shares
from mqis.pipeline.sources.stream import JournalStreamReader
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader, Torn, segment_header
from mqis.wire.journal.layout import HAS_MESSAGE

PATTERN = "segment-*.mqj"
SHARE_BYTES = 16 << 20
#: The maximum length of a header: its length field has 16 bits.
_HEADER_BYTES = 1 << 16
#: A limit, because a task reads a damaged segment as a whole. Servers begin a new one at 64 MiB.
MAX_SEGMENT = 1 << 30

#: Columns that are fields of the record's header, which filters can be pushed down to.
_FIELDS = {
    "lsn": "lsn",
    "time": "time_us",
    "kind": "kind",
    "state": "state",
    "operation": "operation",
    "object_type": "object_type",
    "session": "session",
    "partition": "partition",
    "seq": "seq",
    "previous_seq": "previous_seq",
}
_UNORDERED = ("partition", "server")
_FILE_COLUMNS = ("server", "server_id", "file")


class JournalSource(DataSource):
    """The data source ``mqis.journal``; ``session.open_session`` registers it."""

    @classmethod
    def name(cls) -> str:
        return "mqis.journal"

    def schema(self) -> StructType:
        return schemas.JOURNAL

    def reader(self, schema: StructType) -> JournalReader:
        options = dict(self.options)
        if options.get("pushdown") == "true":
            return PushingJournalReader(schema, options)
        return JournalReader(schema, options)

    def streamReader(self, schema: StructType) -> JournalStreamReader:  # noqa: N802 - Spark's name
        options = dict(self.options)
        chosen(schema.fieldNames(), schemas.JOURNAL.fieldNames(), "mqis.journal")
        filters = option_filters(options)
        return JournalStreamReader(schema, options, filters, _server_and_start, read_share)


class JournalReader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = options
        self._filters = option_filters(options)
        chosen(schema.fieldNames(), schemas.JOURNAL.fieldNames(), "mqis.journal")

    def partitions(self) -> list[Share]:
        size = int(self._options.get("share_bytes", SHARE_BYTES))
        without = frozenset(json.loads(self._options.get("without", "[]")))
        found: list[Share] = []
        for path in paths_in(self._options, PATTERN, "journal segments"):
            if str(path) not in without:
                found += self._shares(path, size)
        return found

    def _shares(self, path: SourceFile, size: int) -> list[Share]:
        header, start, _ = open_segment(path)
        if header is None:
            return [Share(str(path), 0, 0)]
        if not wants(self._filters, "server", header.server):
            return []
        length = size_of(path)
        if length - start <= size:
            return [Share(str(path), start, length)]
        with local_copy(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return [Share(str(path), *cut) for cut in shares(data, start, size)]  # type: ignore[arg-type]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):  # Spark's placeholder if there are no partitions
            return iter(())
        return read_share(partition, self._schema, self._filters)


class PushingJournalReader(JournalReader):
    """A reader that takes the filters of a query; only ``sources.journal`` may ask for it.

    Spark 4.3 keeps the pushed filters with the loaded frame and applies them to the next query of
    that frame too, even if that one has none. So a frame that takes filters must be used only once.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        taken, left = split(filters, [*_FIELDS, "server"], _UNORDERED)
        errors = [f for f in left if column_of(f) == "error" and isinstance(f, (IsNull, IsNotNull))]
        self._filters = [*self._filters, *taken, *errors]
        return [f for f in left if f not in errors]


def option_filters(options: Mapping[str, str]) -> list[Filter]:
    """The options that choose rows, as filters: ``server``, ``partition``, ``since``, ``until``."""
    found: list[Filter] = []
    try:
        if "server" in options:
            found.append(In(("server",), tuple(options["server"].split(","))))
        if "partition" in options:
            listed = (Guid.parse(text).raw for text in options["partition"].split(","))
            found.append(In(("partition",), tuple(listed)))
        if "since" in options:
            found.append(GreaterThanOrEqual(("time",), datetime.fromisoformat(options["since"])))
        if "until" in options:
            found.append(LessThan(("time",), datetime.fromisoformat(options["until"])))
    except ValueError as error:
        raise SourceError(f"an option of mqis.journal is wrong: {error}") from None
    return found


def open_segment(path: SourceFile) -> tuple[SegmentHeader | None, int, str]:
    """Returns (header, offset of the first record, ""); (None, 0, reason) if it cannot be read."""
    try:
        with open_plain(path) as file:
            header, start = segment_header(file.read(_HEADER_BYTES))
        if size_of(path) > MAX_SEGMENT:
            return None, 0, f"the file is too large: a segment has at most {MAX_SEGMENT:,} bytes"
    except OSError as error:
        return None, 0, unreadable(error)
    except WireError as error:
        return None, 0, str(error)
    return header, start, ""


def _server_and_start(path: SourceFile) -> tuple[str, int] | None:
    header, start, _ = open_segment(path)
    return None if header is None else (header.server, start)


def server_of_segment(path: SourceFile) -> str | None:
    """The name of the server that wrote the segment; None if its header cannot be read."""
    header, _, _ = open_segment(path)
    return None if header is None else header.server


def read_share(share: Share, schema: StructType, filters: list[Filter]) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a share of a segment."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    path = source_file(share.path)
    header, _, reason = open_segment(path)
    if header is not None:
        try:
            with open_plain(path) as file:
                file.seek(share.start)
                data = file.read(share.end - share.start)
                last = share.end >= size_of(path)
        except OSError as error:
            header, reason = None, unreadable(error)
    if header is None:
        if _wants_errors(filters):
            fault = SegmentFault(0, size_of(path), reason)
            yield _error_rows(arrow, None, share.path, [fault])
        return
    found = scan(data, share.start, last=last)
    if _wants_records(filters):
        yield from _record_rows(found, header, share.path, arrow, filters)
    if found.damage and _wants_errors(filters):
        faults = [SegmentFault.of(entry, share.start) for entry in found.damage]
        yield _error_rows(arrow, header, share.path, faults)


def _wants_errors(filters: list[Filter]) -> bool:
    """Returns whether error rows can pass; their columns of records have no value."""
    return wants(filters, "error", "damage") and not any(column_of(f) in _FIELDS for f in filters)


def _wants_records(filters: list[Filter]) -> bool:
    return wants(filters, "error", None)


# --- rows -----------------------------------------------------------------------------------------


class SegmentFault(NamedTuple):
    """A damaged place of a segment file."""

    offset: int
    length: int
    reason: str

    @classmethod
    def of(cls, entry: Damage, base: int) -> SegmentFault:
        kind = "torn" if isinstance(entry, Torn) else "corrupt"
        return cls(base + entry.offset, entry.length, f"{kind}: {entry.reason}")


def _error_rows(
    arrow: pa.Schema, header: SegmentHeader | None, file: str, faults: list[SegmentFault]
) -> pa.RecordBatch:
    count = len(faults)
    return arrays.rows(
        {
            "server": [None if header is None else arrow_text(header.server)] * count,
            "server_id": [None if header is None else header.server_id.raw] * count,
            "file": [file] * count,
            "offset": [fault.offset for fault in faults],
            "length": [fault.length for fault in faults],
            "error": [fault.reason for fault in faults],
        },
        arrow,
        count,
    )


def _record_rows(
    found: Scan, header: SegmentHeader, file: str, arrow: pa.Schema, filters: list[Filter]
) -> Iterator[pa.RecordBatch]:
    asked = [f for f in filters if column_of(f) in _FIELDS]
    if asked:
        found = found.only(mask(asked, lambda name: found.headers[_FIELDS[name]], len(found)))
    for batch in found.batches():
        if len(batch):
            made = [_column(field, batch, header, file) for field in arrow]
            yield pa.RecordBatch.from_arrays(made, schema=arrow)


def _column(field: pa.Field, found: Scan, header: SegmentHeader, file: str) -> pa.Array:
    name = field.name
    if name in _MADE:
        return _MADE[name](found, field.type)
    if name in _FILE_COLUMNS:
        whole: dict[str, object] = {
            "server": arrow_text(header.server),
            "server_id": header.server_id.raw,
            "file": file,
        }
        return arrays.constant(whole[name], field.type, len(found))
    if name == "error":
        return pa.nulls(len(found), field.type)
    return arrays.numbers(found.headers[_FIELDS[name]], field.type)


def arrow_text(name: str) -> str:
    """Escapes lone surrogates, which Windows names may contain and Arrow's texts may not."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(data: bytes, starts: Any, lengths: Any, kind: pa.DataType) -> pa.Array:
    octets = joined(data, starts, lengths)
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError:
        cuts = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        return pa.array(
            [arrow_text(data[a:b].decode("utf-8", "surrogatepass")) for a, b in cuts], kind
        )
    return arrays.pieces(octets, lengths, kind)


def _unnamed(found: Scan) -> npt.NDArray[np.bool_]:
    unnamed: npt.NDArray[np.bool_] = (found.headers["flags"] & HAS_MESSAGE) == 0
    return unnamed


_NO_GUID = np.zeros(1, "V16")[0]

#: Columns that take more than a copy of a header field.
_MADE: dict[str, Callable[[Scan, pa.DataType], pa.Array]] = {
    "partition": lambda found, kind: arrays.guids(found.headers["partition"]),
    "object_id": lambda found, kind: arrays.guids(
        found.headers["object_id"], found.headers["object_id"] == _NO_GUID
    ),
    "message_source": lambda found, kind: arrays.guids(
        found.headers["message_source"], _unnamed(found)
    ),
    "message_ordinal": lambda found, kind: arrays.numbers(
        found.headers["message_ordinal"], kind, _unnamed(found)
    ),
    "peer": lambda found, kind: _texts(found.data, found.peer_at, found.peer_length, kind),
    "reason": lambda found, kind: _texts(found.data, found.reason_at, found.reason_length, kind),
    "body": lambda found, kind: arrays.pieces(
        joined(found.data, found.body_at, found.body_length), found.body_length, kind
    ),
    "offset": lambda found, kind: arrays.numbers(found.starts + found.base, kind),
    "length": lambda found, kind: arrays.numbers(found.headers["length"], kind),
}
