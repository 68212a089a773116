"""Rules that have to see everything at once: they run in one task, on a few rows.

A rule in plain Python, such as the verdict about a journal, needs rows of several tables together.
Collecting them would start jobs while tables are only being defined. So queries first reduce each
table to a few rows for each file, server or partition; these rows travel as lines of JSON, each
with its topic, to one task, which calls the rule.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqis.pipeline.mapping import mapped

#: Rows by topic.
Facts = defaultdict[str, list[dict[str, Any]]]
Rule = Callable[[Facts], Iterable[dict[str, Any]]]
_ROWS = 10_000


def facts(**topics: DataFrame) -> DataFrame:
    """The rows of all frames as (topic, row). Give binary columns as hexadecimal digits."""
    whole = {"ignoreNullFields": "false"}
    lines = [
        frame.select(F.lit(topic).alias("topic"), F.to_json(F.struct("*"), whole).alias("row"))
        for topic, frame in topics.items()
    ]
    return reduce(lambda all_, more: all_.unionByName(more), lines)


def judged(known: DataFrame, rule: Rule, schema: StructType) -> DataFrame:
    """The rows that ``rule`` makes of all facts, in one task."""
    arrow = to_arrow_schema(schema, timezone="UTC")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Facts = defaultdict(list)
        for batch in batches:
            for topic, row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                found[topic].append(json.loads(row))
        rows = list(rule(found))
        for begin in range(0, len(rows), _ROWS):
            yield pa.RecordBatch.from_pylist(rows[begin : begin + _ROWS], schema=arrow)

    return mapped(known.repartition(1), ("topic", "row"), work, schema)
