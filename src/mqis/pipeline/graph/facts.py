"""Rules that have to see everything at once: they run in one task, on a few rows.

A rule in plain Python, such as the verdict about a journal, needs rows of several tables together.
Collecting them would start jobs while tables are only being defined. So queries first reduce each
table to a few rows for each file, server or partition; these rows travel as lines of JSON, each
with its topic, to one task, which calls the rule.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from mqis.pipeline.mapping import mapped_rows

#: Rows by topic.
Facts = defaultdict[str, list[dict[str, Any]]]
#: The columns that are bytes in every topic; Spark writes bytes as base64.
_BYTES = frozenset({"partition", "id", "server_id", "header", "digest", "snapshot_digest"})
Rule = Callable[[Facts], Iterable[dict[str, Any]]]


def facts(**topics: DataFrame) -> DataFrame:
    """The rows of all frames as (topic, row)."""
    whole = {"ignoreNullFields": "false"}
    lines = [
        frame.select(F.lit(topic).alias("topic"), F.to_json(F.struct("*"), whole).alias("row"))
        for topic, frame in topics.items()
    ]
    return reduce(lambda all_, more: all_.unionByName(more), lines)


def _parsed(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text)
    return row | {n: b64decode(row[n]) for n in _BYTES & row.keys() if row[n] is not None}


def judged(known: DataFrame, rule: Rule, schema: StructType) -> DataFrame:
    """The rows that ``rule`` makes of all facts, in one task."""

    def work(rows: Iterator[tuple[Any, ...]]) -> Iterable[dict[str, Any]]:
        found: Facts = defaultdict(list)
        for topic, row in rows:
            found[topic].append(_parsed(row))
        return rule(found)

    return mapped_rows(known.repartition(1), ("topic", "row"), work, schema)
