"""The rules of ``protocol.hygiene`` on a cluster.

Each task turns its objects into claims. Claims of one key then meet in one task, which judges them.
Nothing of a rule is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.pipeline.mapping import mapped
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, object_from
from mqis.protocol.hygiene.checks import HygieneFinding
from mqis.protocol.hygiene.claims import Claim, claims_of
from mqis.protocol.hygiene.judging import judge_sorted

Batches = Iterator[pa.RecordBatch]

#: Rows of one batch.
_BATCH = 10_000
_CLAIMS: pa.Schema = to_arrow_schema(schemas.CLAIMS, timezone="UTC")
_FOUND: pa.Schema = to_arrow_schema(schemas.HYGIENE, timezone="UTC")


def judged(directory: DataFrame) -> DataFrame:
    """The findings of all rules about objects and their references (``schemas.HYGIENE``)."""
    claims = mapped(directory, OBJECT_COLUMNS, _claims, schemas.CLAIMS)
    together = claims.repartition("key").sortWithinPartitions("key")
    return mapped(together, schemas.CLAIMS.fieldNames(), _judge, schemas.HYGIENE)


def _claims(batches: Batches) -> Batches:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in OBJECT_COLUMNS]
        objects = (object_from(*row) for row in zip(*columns, strict=True))
        yield from _batches((claim for obj in objects for claim in claims_of(obj)), _CLAIMS)


def _judge(batches: Batches) -> Batches:
    rows = (
        Claim(*row)
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    return _batches(map(finding_row, judge_sorted(rows)), _FOUND)


def finding_row(found: HygieneFinding) -> tuple[str | None, ...]:
    return found.check, found.explanation, found.type, found.id, found.path, found.detail


def _batches(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> Batches:
    left = iter(rows)
    while some := list(islice(left, _BATCH)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
