"""Puts decoded changes together: columns of their records, columns of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqis.pipeline.decoding.changes import Bodies
from mqis.pipeline.decoding.locating import locate
from mqis.pipeline.decoding.octets import Ints, Mask
from mqis.pipeline.decoding.onebyone import COPIED, decode_one_by_one
from mqis.pipeline.decoding.values import ValueColumns
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.messages import MessageOperation

#: The header of a record of a change names the object; in messages the body does.
_NAMED_BY_HEADER = ("object_id", "object_type")
_ROWS_OF_BATCH = 20_000

#: Returns a column of the records with these indexes, as the given type.
Header = Callable[[pa.Field, Ints], pa.Array]
#: Returns the columns ``NEEDED`` of the records in a mask.
Chosen = Callable[[Mask], pa.RecordBatch]


def decoded(
    bodies: Bodies, unnamed: Mask, header: Header, chosen: Chosen, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Decodes most bodies at once, and the unusual ones one by one.

    ``unnamed`` are the records of changes whose headers do not name the object.
    """
    rest = unnamed.copy()
    found = locate(bodies, rest)
    values = ValueColumns(found)
    odd = values.with_surrogates(paths="path" in schema.names, texts=_has_texts(schema))
    if len(odd):
        rest[found.changes.row[odd]] = True
        found = found.without(rest)
        values = ValueColumns(found)
    row = found.changes.row
    columns = [_column(field, bodies, row, header, values) for field in schema]
    whole = pa.RecordBatch.from_arrays(columns, schema=schema)
    for start in range(0, len(row), _ROWS_OF_BATCH):
        yield whole.slice(start, _ROWS_OF_BATCH)
    if rest.any():
        yield decode_one_by_one(chosen(rest), schema)


def _has_texts(schema: pa.Schema) -> bool:
    if "properties" not in schema.names:
        return False
    parts: pa.StructType = schema.field("properties").type.value_type
    return "text" in [part.name for part in parts]


def _column(
    field: pa.Field, bodies: Bodies, row: Ints, header: Header, values: ValueColumns
) -> pa.Array:
    if field.name in COPIED:
        return header(field, row)
    if field.name == "error":
        return pa.nulls(len(row), field.type)
    if field.name == "reached_seq":
        return _reached(bodies, row)
    if field.name not in _NAMED_BY_HEADER:
        return values.column(field)
    in_message = bodies.is_message[row]
    if not in_message.any():
        return header(field, row)
    both = values.column(field), header(field, row)
    return pc.if_else(pa.array(in_message), *both)


def _reached(bodies: Bodies, row: Ints) -> pa.Array:
    """The sequence number that a sync reply brings its receiver to; null in other messages."""
    at = bodies.start[row]
    is_reply = bodies.is_message[row]
    is_reply &= bodies.octets.data[at + layout.OPERATION_AT] == int(MessageOperation.SYNC_REPLY)
    wide = bodies.octets.numbers(np.where(is_reply, at + layout.SYNC_REPLY_TO_AT, 0), ">u8")
    return pa.array(wide.astype(np.uint64).view(np.int64), mask=~is_reply)
