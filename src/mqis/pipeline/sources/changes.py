"""The rows of a segment file with ``rows=changes``: a row for each change in the bodies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from mqis.pipeline import arrays, schemas
from mqis.pipeline.decoding.changes import Bodies
from mqis.pipeline.decoding.columns import decoded
from mqis.pipeline.decoding.octets import Ints, Mask, Octets
from mqis.pipeline.decoding.onebyone import NEEDED
from mqis.pipeline.sources.records import SegmentRows
from mqis.pipeline.sources.segments import NO_GUID, Scan
from mqis.wire.journal import RecordKind

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
