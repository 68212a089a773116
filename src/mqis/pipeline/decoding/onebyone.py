"""Decodes bodies one by one with ``mqis.wire``: the unusual ones, and for comparison any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from mqis.pipeline import arrays
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

Row = dict[str, Any]
#: The columns of a change that are those of its record.
COPIED = (
    *("server", "lsn", "time", "state", "peer", "message_source", "message_ordinal", "operation"),
)
#: The columns of a record that decoding one by one needs.
NEEDED = (*COPIED, "object_id", "object_type", "kind", "body")
#: A row of a body without a change.
_EMPTY: Row = {"properties": []}


def decode_one_by_one(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The changes in the bodies of a batch that has the columns ``NEEDED``."""
    names = ("kind", "body", "object_id", "object_type")
    records = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    made = [(index, row) for index, record in enumerate(records) for row in _rows(*record)]
    source = pa.array([index for index, _ in made], pa.int64())
    columns = [
        batch.column(field.name).take(source).cast(field.type)
        if field.name in COPIED
        else pa.array([row.get(field.name) for _, row in made], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows(kind: int, body: bytes, object_id: bytes | None, object_type: int) -> list[Row]:
    """The columns of each change of a record; one row with ``error`` if it cannot be decoded."""
    if not body:
        return []
    try:
        if kind != RecordKind.CHANGE:
            return list(_changes_of_message(body))
        reader = Reader(body)
        change = _row(DirectoryChange.decode(reader))
        reader.expect_end("the change")
    except WireError as error:
        return [_EMPTY | {"error": str(error)}]
    if object_id is not None:
        change |= {"object_id": object_id, "object_type": object_type}
    return [change]


def _changes_of_message(body: bytes) -> Iterator[Row]:
    message = decode_message(body)
    if isinstance(message, SyncReply):
        reached = {"reached_seq": arrays.signed(message.to_seq.value)}
        for change in message.changes:
            yield _row(change) | reached
        if not message.changes:
            yield _EMPTY | {"partition": message.partition.raw} | reached
    elif isinstance(message, ChangePropagation):
        yield from map(_row, message.changes)
    elif isinstance(message, ChangeRequest):
        yield _row(message.change)


def _row(change: DirectoryChange) -> Row:
    object_type, object_id = _identity(change)
    return {
        "command": int(change.command),
        "partition": change.partition.raw,
        "seq": arrays.signed(change.seq.value),
        "previous_seq": arrays.signed(change.previous_seq.value),
        "purged_seq": arrays.signed(change.purged_seq.value),
        "object_id": object_id,
        "object_type": object_type,
        "path": None if change.path is None else arrays.text(change.path),
        "properties": [_property(propid, variant) for propid, variant in change.properties],
    }


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


def _property(propid: int, variant: PropVariant) -> Row:
    value = variant.value
    text: str | None = None
    number: int | None = None
    if isinstance(value, int):
        number = arrays.signed(int(value))
    elif isinstance(value, str | Guid):
        text = arrays.text(str(value))
    elif isinstance(value, tuple):
        text = ",".join(arrays.text(str(item)) for item in value)
    return {"propid": propid, "text": text, "number": number, "raw": variant.packed()}
