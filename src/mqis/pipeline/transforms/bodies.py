"""Decodes the bodies of journal records: one row for each change in them.

A query first chooses its records by their headers and then decodes the bodies of those only. Most
bodies are decoded together (``manychanges``), the others one by one with ``mqis.wire``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.pipeline.transforms.manychanges import Bodies
from mqis.pipeline.transforms.manychanges import decode as decode_many
from mqis.pipeline.transforms.manyvalues import columns_of, not_ascii
from mqis.pipeline.transforms.octets import Ints, Octets
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.applying import type_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.layout import OPERATION_AT, SYNC_REPLY_TO_AT
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    ChangeRequest,
    MessageOperation,
    SyncReply,
    decode_message,
)
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader

#: The columns of a record that decoding needs.
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
#: Longer than the fixed parts of a change.
_LEAST = 64
_PROPERTY: pa.StructType = _ARROW.field("properties").type.value_type


def carried(records: DataFrame, *, properties: bool = True) -> DataFrame:
    """The changes in the bodies of records (``schemas.CARRIED``).

    A body that cannot be decoded is a row with ``error``. A sync reply without changes is a row
    without a command, because its ``reached_seq`` counts.
    """
    decode = _decoder(properties)
    return records.select(*NEEDED).mapInArrow(decode, schemas.CARRIED)


def _decoder(properties: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _decoded(batch, properties)

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
    """Columns under construction; ``source`` has the row of the batch that a change comes from."""

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


def _decoded(batch: pa.RecordBatch, properties: bool) -> Iterator[pa.RecordBatch]:
    """Decodes most bodies at once, and the unusual ones one by one."""
    bodies = _bodies(batch)
    found, rest = decode_many(bodies, properties=properties)
    rest |= batch.column("object_id").is_null().to_numpy(zero_copy_only=False) & ~bodies.is_message
    odd = found.row[not_ascii(found, properties=properties)]
    rest[odd] = True
    made = columns_of(found, rest, properties=properties)
    chosen = _headers(batch, made.row)
    made.columns["reached_seq"] = _reached(bodies, made.row)
    about = {name: chosen.column(name) for name in ("object_id", "object_type")}
    arrays = []
    for name in _ARROW.names:
        kind = _ARROW.field(name).type
        if name in _COPIED or name == "operation":
            arrays.append(chosen.column(name).cast(kind))
        elif name in about:  # the record of a change has it in its header, a message does not
            in_message = pa.array(bodies.is_message[made.row])
            arrays.append(pc.if_else(in_message, made.columns[name], about[name]).cast(kind))
        elif name in made.columns:
            arrays.append(made.columns[name].cast(kind))
        else:
            arrays.append(pa.nulls(len(made.row), kind))
    yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
    if rest.any():
        yield _batch(batch.filter(pa.array(rest)), properties)


def _headers(batch: pa.RecordBatch, row: Ints) -> pa.RecordBatch:
    """The record headers of changes, without bodies, as one body may hold thousands of changes."""
    names = [name for name in NEEDED if name not in ("kind", "body")]
    return batch.select(names).take(pa.array(row))


def _reached(bodies: Bodies, row: Ints) -> pa.Array:
    """The sequence number that a sync reply brings its receiver to; null in other messages."""
    at = bodies.start[row]
    is_reply = bodies.is_message[row]
    is_reply &= bodies.octets.data[at + OPERATION_AT] == int(MessageOperation.SYNC_REPLY)
    wide = bodies.octets.numbers(np.where(is_reply, at + SYNC_REPLY_TO_AT, 0), ">u8")
    return pa.array(wide.astype(np.uint64).view(np.int64), mask=~is_reply)


def _bodies(batch: pa.RecordBatch) -> Bodies:
    """The bodies in Arrow's own buffer, without a copy."""
    column = batch.column("body")
    count = len(column)
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + count + 1]
    octets = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    if len(octets) < _LEAST:  # so that reading the fixed parts of a body stays inside
        octets = np.concatenate((octets, np.zeros(_LEAST, np.uint8)))
    start, end = places[:-1].astype(np.int64), places[1:].astype(np.int64)
    end = np.where(column.is_null().to_numpy(zero_copy_only=False), start, end)
    kinds = batch.column("kind").to_numpy(zero_copy_only=False)
    return Bodies(Octets(octets), start, end, kinds == int(RecordKind.MESSAGE))


def _batch(batch: pa.RecordBatch, properties: bool) -> pa.RecordBatch:
    """Decodes the bodies one by one."""
    rows = _Rows()
    names = ("kind", "body", "object_id", "object_type")
    wanted = [batch.column(name).to_pylist() for name in names]
    for index, record in enumerate(zip(*wanted, strict=True)):
        _record(rows, index, record, properties)
    chosen = _headers(batch, np.array(rows.source, np.int64))
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
    """The type and identifier of a change's object; a create has it among its properties (E17)."""
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
    """Escapes lone surrogates, which Windows names may contain and Arrow's texts may not."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
