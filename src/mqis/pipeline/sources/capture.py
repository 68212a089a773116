"""``mqis.capture``: the messages in capture files (pcap, pcapng).

    spark.read.format("mqis.capture").load("captures")

Options: ``path`` (files or directories, with commas), ``protocol`` and ``address`` (one or several,
with commas; networks as 10.0.0.0/8), ``since`` and ``until`` (ISO times), ``share_bytes``. A row is
a message, or where ``error`` is not null, something that cannot be read: a file, a packet, a part
of a stream, a message.

A big file is divided between tasks by conversation: every task reads the headers of all packets,
and reassembles and decodes only its own streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.mapping import settle
from mqis.pipeline.sources import files
from mqis.pipeline.sources.files import SourceFile
from mqis.protocol.capture.decoder import CaptureDecoder, CaptureFilter, parse_network
from mqis.protocol.capture.row import DecodedRow, file_error
from mqis.texts import microseconds, parse_moment
from mqis.wire.errors import MqisError
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import Buffer

PATTERNS = ("*.pcap", "*.pcapng", "*.cap")
SHARE_BYTES = 32 << 20
#: Limits the tasks of one file, because each of them reads all headers.
_MAX_SHARES = 64


@dataclass(frozen=True, slots=True)
class CaptureShare(InputPartition):
    """The conversations of a file that one task decodes: share ``number`` of ``shares``."""

    path: str
    number: int
    shares: int


class CaptureSource(files.CheckedSource):
    """The data source ``mqis.capture``; ``session.open_session`` registers it."""

    OPTIONS = ("protocol", "address", "since", "until")

    @classmethod
    def name(cls) -> str:
        return "mqis.capture"

    def schema(self) -> StructType:
        return schemas.CAPTURE

    def reader(self, schema: StructType) -> CaptureReader:
        files.check_names(schema.fieldNames(), self.schema().fieldNames(), "mqis.capture")
        return CaptureReader(schema, self.given)


def capture_files(options: Mapping[str, str]) -> list[SourceFile]:
    """The files that ``path`` names; of a directory, all files named like a capture."""
    return sorted(files.paths_in(options, "captures", *PATTERNS), key=str)


class CaptureReader(DataSourceReader):
    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = options
        try:
            self._choice = option_choice(options)
            self._networks = [parse_network(text) for text in _listed(options, "address")]
        except ValueError as error:
            raise MqisError(f"an option of mqis.capture is wrong: {error}") from None

    def partitions(self) -> list[CaptureShare]:
        size = files.size_given(self._options, "share_bytes", SHARE_BYTES)
        found: list[CaptureShare] = []
        for path in capture_files(self._options):
            shares = min(_MAX_SHARES, max(1, -(-files.size_of(path) // size)))
            found += [CaptureShare(str(path), number, shares) for number in range(shares)]
        return found

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, CaptureShare):
            return
        settle()
        arrow = arrays.schema_of(self._schema)
        found = filter(self._choice.wants, self._rows(partition, detail="detail" in arrow.names))
        columns = {name: _COLUMNS[name] for name in arrow.names if name != "file"}
        rows = ({name: make(row) for name, make in columns.items()} for row in found)
        yield from arrays.batches((row | {"file": partition.path} for row in rows), arrow)

    def _rows(self, share: CaptureShare, *, detail: bool) -> Iterator[DecodedRow]:
        decoder = CaptureDecoder(
            share=(share.number, share.shares), networks=self._networks, detail=detail
        )
        try:
            place = files.source_file(share.path)
            with files.local_copy(place) as file:
                if not files.size_of(place):  # an empty file cannot be mapped
                    yield from _decoded(decoder, b"")
                    return
                with (
                    mmap(file.fileno(), 0, access=ACCESS_READ) as octets,
                    memoryview(octets) as view,
                ):
                    yield from _decoded(decoder, view)
        except OSError as error:
            if share.number == 0:  # one error row for all shares of a file
                yield file_error(0, files.unreadable(error))


def _decoded(decoder: CaptureDecoder, data: Buffer) -> Iterator[DecodedRow]:
    for each in walk_capture(data):
        decoder.receive(each)
        yield from decoder.take()
    decoder.finish()
    yield from decoder.take()


# --- options --------------------------------------------------------------------------------------


def option_choice(options: Mapping[str, str]) -> CaptureFilter:
    return CaptureFilter(
        frozenset(_listed(options, "protocol")),
        _time_ns(options.get("since")),
        _time_ns(options.get("until")),
    )


def _listed(options: Mapping[str, str], name: str) -> list[str]:
    return [text.strip() for text in options.get(name, "").split(",") if text.strip()]


def _time_ns(text: str | None) -> int | None:
    if text is None:
        return None
    return microseconds(parse_moment(text)) * 1000


# --- rows to Arrow --------------------------------------------------------------------------------

_COLUMNS: dict[str, Callable[[DecodedRow], object]] = {
    "time": lambda row: None if row.time_ns is None else row.time_ns // 1000,
    "frame": lambda row: row.frame or None,
    "source": lambda row: row.source or None,
    "source_port": lambda row: row.source_port if row.source else None,
    "destination": lambda row: row.destination or None,
    "destination_port": lambda row: row.destination_port if row.destination else None,
    "to_server": lambda row: row.to_server if row.source else None,
    "transport": lambda row: row.transport or None,
    "carrier": lambda row: row.carrier or None,
    "protocol": lambda row: row.protocol or None,
    "stream": lambda row: row.stream or None,
    "summary": lambda row: arrays.text(row.summary),
    "detail": lambda row: row.detail or None,
    "partition": lambda row: None if row.partition is None else row.partition.raw,
    "seq": lambda row: None if row.seq is None else arrays.signed(row.seq),
    "queue_manager": lambda row: None if row.queue_manager is None else row.queue_manager.raw,
    "machines": lambda row: list(map(arrays.text, row.machines)),
    "error": lambda row: None if row.error is None else arrays.text(row.error),
    "offset": attrgetter("offset"),
    "kind": attrgetter("kind"),
    "call_id": attrgetter("call_id"),
    "length": attrgetter("length"),
}
