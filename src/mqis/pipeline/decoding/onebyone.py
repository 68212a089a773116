"""Decodes bodies one by one with ``mqis.wire``: the unusual ones, and for comparison any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.applying import type_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, SyncReply, decode_message
from mqis.wire.mqdsrp.propertylist import Listed
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader

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

    def add(self, source: int, listed: Listed, *values: Any) -> None:
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


def decode_one_by_one(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The changes in the bodies of a batch that has the columns ``columns.NEEDED``."""
    rows = _Rows()
    names = ("kind", "body", "object_id", "object_type")
    wanted = [batch.column(name).to_pylist() for name in names]
    properties = "properties" in schema.names
    for index, record in enumerate(zip(*wanted, strict=True)):
        _record(rows, index, record, properties)
    source = pa.array(np.array(rows.source, np.int64))
    arrays = [_column(field, batch, source, rows) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(field: pa.Field, batch: pa.RecordBatch, source: pa.Array, rows: _Rows) -> pa.Array:
    if field.name == "properties":
        made = {
            "propid": rows.propids,
            "text": rows.texts,
            "number": rows.numbers,
            "raw": rows.raws,
        }
        fields = list(field.type.value_type)
        parts = [pa.array(made[part.name], part.type) for part in fields]
        whole = pa.StructArray.from_arrays(parts, fields=fields)
        return pa.ListArray.from_arrays(pa.array(rows.ends, pa.int32()), whole, type=field.type)
    if field.name in rows.columns:
        return pa.array(rows.columns[field.name], field.type)
    return batch.column(field.name).take(source).cast(field.type)


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
