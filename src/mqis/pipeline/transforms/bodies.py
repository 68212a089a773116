"""What the bodies of journal records say: one row for each change that they carry.

Bodies are decoded with ``mqis.wire``, a batch at a time; so a query first chooses its records by
their headers and then asks for the bodies of those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.applying import type_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, SyncReply, decode_message
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader

#: What has to be known of a record; ``file`` and the like are not.
NEEDED = (
    "server",
    "lsn",
    "time",
    "state",
    "peer",
    "message_source",
    "message_ordinal",
    "operation",
    "object_id",
    "object_type",
    "kind",
    "body",
)
_COPIED = ("server", "lsn", "time", "state", "peer", "message_source", "message_ordinal")
_ARROW: pa.Schema = to_arrow_schema(schemas.CARRIED, timezone="UTC")
_PROPERTY: pa.StructType = _ARROW.field("properties").type.value_type


def carried(records: DataFrame, *, properties: bool = True) -> DataFrame:
    """The changes in the bodies of records (``schemas.CARRIED``).

    A body that cannot be decoded is a row with ``error``; a sync reply without changes is a row
    without a command, for the number that it reaches.
    """
    decode = _decoder(properties)
    return records.select(*NEEDED).mapInArrow(decode, schemas.CARRIED)


def _decoder(properties: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch(batch, properties)

    return decode


_DECODED = (
    "command",
    "partition",
    "seq",
    "previous_seq",
    "purged_seq",
    "object_id",
    "object_type",
    "path",
    "properties",
    "reached_seq",
    "error",
)


@dataclass(slots=True)
class _Rows:
    """Columns that grow; ``source`` is the row of the batch that a change comes from."""

    source: list[int] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in _DECODED if name != "properties"}
    )
    ends: list[int] = field(default_factory=lambda: [0])
    propids: list[int] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)

    def add(self, source: int, listed: tuple[tuple[int, PropVariant], ...], *values: Any) -> None:
        self.source.append(source)
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)
        for propid, variant in listed:
            text, number = _typed(variant)
            self.propids.append(propid)
            self.texts.append(text)
            self.numbers.append(number)
            self.raws.append(variant.packed())
        self.ends.append(len(self.propids))


def _batch(batch: pa.RecordBatch, properties: bool) -> pa.RecordBatch:
    rows = _Rows()
    names = ("kind", "body", "object_id", "object_type")
    wanted = [batch.column(name).to_pylist() for name in names]
    for index, record in enumerate(zip(*wanted, strict=True)):
        _record(rows, index, record, properties)
    chosen = batch.take(pa.array(rows.source, pa.int64()))
    arrays = [_column(name, chosen, rows) for name in _ARROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _column(name: str, chosen: pa.RecordBatch, rows: _Rows) -> pa.Array:
    kind = _ARROW.field(name).type
    if name in _COPIED or name == "operation":
        return chosen.column(name).cast(kind)
    if name == "properties":
        parts = [
            pa.array(values, _PROPERTY.field(index).type)
            for index, values in enumerate((rows.propids, rows.texts, rows.numbers, rows.raws))
        ]
        whole = pa.StructArray.from_arrays(parts, fields=list(_PROPERTY))
        return pa.ListArray.from_arrays(pa.array(rows.ends, pa.int32()), whole, type=kind)
    return pa.array(rows.columns[name], kind)


def _record(rows: _Rows, index: int, record: tuple[Any, ...], properties: bool) -> None:
    kind, body, object_id, object_type = record
    if not body:
        return
    try:
        if kind == RecordKind.CHANGE:
            reader = Reader(body)
            change = DirectoryChange.decode(reader)
            reader.expect_end("the change")
            _add(rows, index, change, properties, object_id=object_id, object_type=object_type)
            return
        _message(rows, index, body, properties)
    except WireError as error:
        rows.add(index, (), *([None] * 9), str(error))


def _message(rows: _Rows, index: int, body: bytes, properties: bool) -> None:
    message = decode_message(body)
    if isinstance(message, SyncReply):
        reached = _signed(message.to_seq.value)
        for change in message.changes:
            _add(rows, index, change, properties, reached=reached)
        if not message.changes:
            partition = message.partition.raw
            rows.add(index, (), None, partition, *([None] * 6), reached, None)
    elif isinstance(message, ChangePropagation):
        for change in message.changes:
            _add(rows, index, change, properties)
    elif isinstance(message, ChangeRequest):
        _add(rows, index, message.change, properties)


def _add(
    rows: _Rows,
    index: int,
    change: DirectoryChange,
    properties: bool,
    *,
    object_id: bytes | None = None,
    object_type: int | None = None,
    reached: int | None = None,
) -> None:
    if object_id is None:
        object_type, object_id = _identity(change)
    rows.add(
        index,
        change.properties if properties else (),
        int(change.command),
        change.partition.raw,
        _signed(change.seq.value),
        _signed(change.previous_seq.value),
        _signed(change.purged_seq.value),
        object_id,
        object_type,
        None if change.path is None else _plain(change.path),
        reached,
        None,
    )


def _identity(change: DirectoryChange) -> tuple[int | None, bytes | None]:
    """What a change is about; a create has the identifier among its properties (E17)."""
    try:
        kind = type_of(change)
    except DirectoryError:
        return None, None if change.guid is None else change.guid.raw
    if change.guid is not None:
        return int(kind), change.guid.raw
    found = dict(change.properties).get(IDENTIFIER_PROPERTY[kind])
    named = None if found is None else found.value
    return int(kind), named.raw if isinstance(named, Guid) else None


def _typed(variant: PropVariant) -> tuple[str | None, int | None]:
    value = variant.value
    if isinstance(value, int):
        return None, _signed(int(value))
    if isinstance(value, str):
        return _plain(value), None
    if isinstance(value, Guid):
        return str(value), None
    if isinstance(value, tuple):
        return ",".join(_plain(str(item)) for item in value), None
    return None, None


def _plain(text: str) -> str:
    """Arrow's texts hold no lone surrogates, which Windows names may."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
