"""``mqis.journal``: the segment files of any number of servers.

    spark.read.format("mqis.journal").load("run/psc1/journal")

Options: ``path`` (files or directories, with commas), ``server`` and ``partition`` (one or several,
with commas), ``since`` and ``until`` (ISO times), ``share_bytes`` (how much a task reads),
``without`` (a JSON list of files that are not read), ``columns`` (with commas; no others are worked
out), ``rows``. A row is a record, with its body as bytes, or, if ``error`` is not null, a damaged
place. With ``rows=changes`` a row is a change that a body has, decoded here, where the bytes are;
``columns`` then also takes ``properties.number`` and its kin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, Filter
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.decoding.changes import Bodies
from mqis.pipeline.decoding.columns import decoded
from mqis.pipeline.decoding.octets import Ints, Mask, Octets
from mqis.pipeline.decoding.onebyone import NEEDED
from mqis.pipeline.mapping import settle
from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import CheckedSource, Share, Shares, SourceFile, TaskSize
from mqis.pipeline.sources.filters import check_columns, column_of, columns_of, mask, split, wants
from mqis.pipeline.sources.inventory import (
    cuts_of,
    index_of,
    open_segment,
    segment_files,
    wanted_spans,
)
from mqis.pipeline.sources.records import FIELDS, SegmentFault, SegmentRows
from mqis.pipeline.sources.segments import NO_GUID, Scan, scans
from mqis.pipeline.sources.stream import JournalStreamReader
from mqis.texts import joined, parse_moment
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind

#: The indexes of so many segments are read at once.
_OPENED_AT_ONCE = 16
_UNORDERED = ("partition", "server")
#: The values of the option ``rows`` and the columns that each has.
CHANGES = "changes"
ROWS = {"records": schemas.JOURNAL, CHANGES: schemas.CARRIED}
#: The columns of a change that filters can be pushed down to: they are those of its record.
_OF_RECORD = ("lsn", "time", "state", "operation", "server")


class JournalSource(CheckedSource):
    """The data source ``mqis.journal``; ``session.open_session`` registers it."""

    OPTIONS = (
        *("server", "partition", "since", "until", "rows", "columns", "without"),
        *("maxRowsPerTrigger", "maxBytesPerTrigger"),
    )

    @classmethod
    def name(cls) -> str:
        return "mqis.journal"

    def schema(self) -> StructType:
        options = self.given
        names = [name.strip() for name in options.get("columns", "").split(",") if name.strip()]
        return columns_of(ROWS[kind_of_rows(options)], names, self.name())

    def reader(self, schema: StructType) -> JournalReader:
        options = self.given
        if options.get("pushdown") == "true":
            return PushingJournalReader(schema, options)
        return JournalReader(schema, options)

    def streamReader(self, schema: StructType) -> JournalStreamReader:  # noqa: N802 - Spark's name
        options = self.given
        rows, filters = kind_of_rows(options), option_filters(options)
        check_columns(schema, ROWS[rows], self.name())
        read = partial(read_share, schema=schema, filters=filters, rows=rows)
        return JournalStreamReader(schema, options, filters, read)


class JournalReader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = options
        self._filters = option_filters(options)
        self._rows = kind_of_rows(options)
        self._size = TaskSize.of(options)
        check_columns(schema, ROWS[self._rows], JournalSource.name())

    def partitions(self) -> list[Shares]:
        """Plans by the listing and, for long segments, by their indexes; opens no others."""
        found = segment_files(self._options)
        # A store of objects takes longer to answer than to send the end of a segment.
        with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
            shares = pool.map(self._shares, found.keys(), found.values())
            return self._size.packed(chain.from_iterable(shares))

    def _shares(self, path: SourceFile, size: int) -> list[Share]:
        first = open_segment(path)[1] if size > self._size.share_bytes else 0
        index = index_of(path, first, size) if first else None
        if index is None:  # an executor reads its header, and finds its records
            return [Share(str(path), 0, size)]
        spans = wanted_spans(index, self._filters)
        cuts = cuts_of(index, spans, self._size.share_bytes)
        # The first share begins with the file, so that its task tells of a damaged header.
        return [Share(str(path), 0 if a == index.blocks[0].offset else a, b) for a, b in cuts]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Shares):  # Spark's placeholder if there are no partitions
            return
        for share in partition.shares:
            yield from read_share(share, self._schema, self._filters, self._rows)


class PushingJournalReader(JournalReader):
    """A reader that takes the filters of a query; only ``sources.journal`` may ask for it.

    Spark 4.3 keeps the pushed filters with the loaded frame and applies them to the next query of
    that frame too, even if that one has none. So a frame that takes filters must be used only once.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        if self._rows == CHANGES:
            taken, left = split(filters, _OF_RECORD, _UNORDERED)
            self._filters = [*self._filters, *taken]
            return left
        taken, left = split(filters, [*FIELDS, "server"], _UNORDERED)
        of_nulls = (datasource.IsNull, datasource.IsNotNull)
        errors = [f for f in left if column_of(f) == "error" and isinstance(f, of_nulls)]
        self._filters = [*self._filters, *taken, *errors]
        return [f for f in left if f not in errors]


def kind_of_rows(options: Mapping[str, str]) -> str:
    """The option ``rows``: ``records`` or ``changes``."""
    rows = options.get("rows", "records")
    if rows not in ROWS:
        raise MqisError(f"mqis.journal has no rows {rows!r}; it has {joined([*ROWS])}")
    if rows == CHANGES and "partition" in options:
        raise MqisError(
            "mqis.journal takes the option 'partition' for records only, because a message has "
            "changes of several; filter the column 'partition' of the changes instead"
        )
    return rows


def option_filters(options: Mapping[str, str]) -> list[Filter]:
    """The options that choose rows, as filters: ``server``, ``partition``, ``since``, ``until``."""
    found: list[Filter] = []
    try:
        if "server" in options:
            found.append(datasource.In(("server",), tuple(options["server"].split(","))))
        if "partition" in options:
            listed = (Guid.parse(text).raw for text in options["partition"].split(","))
            found.append(datasource.In(("partition",), tuple(listed)))
        if "since" in options:
            since = parse_moment(options["since"])
            found.append(datasource.GreaterThanOrEqual(("time",), since))
        if "until" in options:
            found.append(datasource.LessThan(("time",), parse_moment(options["until"])))
    except ValueError as error:
        raise MqisError(f"an option of mqis.journal is wrong: {error}") from None
    return found


def read_share(
    share: Share, schema: StructType, filters: list[Filter], rows: str = "records"
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a share of a segment; of a whole segment, what its index says is wanted."""
    settle()
    arrow = arrays.schema_of(schema)
    path = files.source_file(share.path)
    header, first, reason = open_segment(path)
    if header is not None:
        if not wants(filters, "server", header.server):
            return
        try:
            segment = SegmentRows(share.path, header)
            for found in _scans(path, first, share, filters):
                yield from _rows(found, segment, arrow, filters, rows)
        except OSError as error:
            header, reason = None, files.unreadable(error)
    if header is None and share.start == 0 and _wants_errors(filters):
        fault = SegmentFault(0, files.size_of(path), reason)
        yield SegmentRows(share.path, None).errors([fault], arrow)


def _scans(path: SourceFile, first: int, share: Share, filters: list[Filter]) -> Iterator[Scan]:
    """What is wanted of a share, behind the header of its segment."""
    size, start, end = files.size_of(path), max(share.start, first), share.end
    of_records = any(column_of(pushed) in FIELDS for pushed in filters)
    index = index_of(path, first, size) if of_records else None
    with files.open_plain(path) as file:
        if index is None:
            yield from scans(file, start, end, last=end >= size)
            return
        for begin, until in wanted_spans(index, filters):
            if max(begin, start) < min(until, end):
                yield from scans(file, max(begin, start), min(until, end), last=False)


def _rows(
    found: Scan, segment: SegmentRows, arrow: pa.Schema, filters: list[Filter], rows: str
) -> Iterator[pa.RecordBatch]:
    asked = [f for f in filters if column_of(f) in FIELDS]
    passing = found
    if asked:
        passing = found.only(mask(asked, lambda name: found.headers[FIELDS[name]], len(found)))
    if rows == CHANGES:
        yield from changes_in(segment, passing, arrow)
    elif wants(filters, "error", None):
        yield from segment.records(passing, arrow)
    if found.damage and _wants_errors(filters):
        faults = [SegmentFault.of(entry, found.base) for entry in found.damage]
        yield segment.errors(faults, arrow)


def _wants_errors(filters: list[Filter]) -> bool:
    """Returns whether error rows can pass; their columns of records have no value."""
    return wants(filters, "error", "damage") and not any(column_of(f) in FIELDS for f in filters)


#: The columns that the unusual records are decoded from.
_NEEDED = arrays.schema_of(StructType([schemas.JOURNAL[name] for name in NEEDED]))


def changes_in(segment: SegmentRows, found: Scan, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Decodes the changes of records; a body that cannot be decoded is a row with ``error``."""
    filled = found.only(found.body_length > 0)
    if not len(filled):
        return
    octets = Octets(np.frombuffer(filled.data, np.uint8))
    is_message = filled.headers["kind"] == int(RecordKind.MESSAGE)
    start = filled.body_at
    bodies = Bodies(octets, start, start + filled.body_length, is_message)
    unnamed = ~is_message & (filled.headers["object_id"] == NO_GUID)

    def header(field: pa.Field, row: Ints) -> pa.Array:
        return segment.column(field, filled).take(pa.array(row))

    def chosen(mask: Mask) -> pa.RecordBatch:
        return segment.record_batch(filled.only(mask), _NEEDED)

    yield from decoded(bodies, unnamed, header, chosen, arrow)
