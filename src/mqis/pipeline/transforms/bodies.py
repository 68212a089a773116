"""Decodes the bodies of journal records: one row for each change in them.

A query first chooses its records by their headers and then decodes the bodies of those only. Where
all changes of a journal are needed, ``sources.changes`` decodes them inside the source, which is
faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.decoding.changes import Bodies
from mqis.pipeline.decoding.columns import decoded
from mqis.pipeline.decoding.octets import Ints, Mask, Octets
from mqis.pipeline.decoding.onebyone import NEEDED
from mqis.pipeline.mapping import mapped
from mqis.wire.journal import RecordKind

__all__ = ["NEEDED", "carried"]


def carried(records: DataFrame, *, properties: bool = True) -> DataFrame:
    """The changes in the bodies of records (``schemas.CARRIED``).

    A body that cannot be decoded is a row with ``error``. A sync reply without changes is a row
    without a command, because its ``reached_seq`` counts.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_of(properties)
        for batch in batches:
            yield from decoded_batch(batch, schema)

    return mapped(records, NEEDED, decode, _schema_of(properties))


def arrow_of(properties: bool) -> pa.Schema:
    """The columns of changes, with or without their properties."""
    return arrays.schema_of(_schema_of(properties))


def _schema_of(properties: bool) -> StructType:
    wanted = [f for f in schemas.CARRIED.fields if properties or f.name != "properties"]
    return StructType(wanted)


def decoded_batch(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The changes in the bodies of a batch of records."""
    bodies = _bodies(batch)
    unnamed = batch.column("object_id").is_null().to_numpy(zero_copy_only=False)

    def header(field: pa.Field, row: Ints) -> pa.Array:
        return batch.column(field.name).take(pa.array(row)).cast(field.type)

    def chosen(mask: Mask) -> pa.RecordBatch:
        return batch.filter(pa.array(mask))

    yield from decoded(bodies, unnamed & ~bodies.is_message, header, chosen, schema)


def _bodies(batch: pa.RecordBatch) -> Bodies:
    """The bodies in Arrow's own buffer."""
    column = batch.column("body")
    count = len(column)
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + count + 1]
    octets = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    start, end = places[:-1].astype(np.int64), places[1:].astype(np.int64)
    end = np.where(column.is_null().to_numpy(zero_copy_only=False), start, end)
    kinds = batch.column("kind").to_numpy(zero_copy_only=False)
    return Bodies(Octets(octets), start, end, kinds == int(RecordKind.MESSAGE))
