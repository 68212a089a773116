"""Rules in plain Python over rows of several tables: each task has all rows of some keys.

A rule, such as the verdict about a journal, needs rows of several tables together. Collecting them
would start jobs while tables are only being defined. So queries first reduce each table to a few
rows for each file, server or partition; these rows travel as lines of JSON, each with its topic.
Rows of one key (a server) meet in one task, which calls the rule for each of its keys: a task holds
the rows of one key at a time. A rule about everybody at once, such as the one about clocks, has no
key and one task; give it a few rows for each server, never some for each file or pair of tables.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from mqis.pipeline.mapping import mapped_rows

#: Rows by topic.
Facts = defaultdict[str, list[dict[str, Any]]]
#: The columns that are bytes in every topic; Spark writes bytes as base64.
_BYTES = frozenset({"partition", "id", "server_id", "header", "digest", "snapshot_digest"})
_COLUMNS = ("key", "topic", "row")
Rule = Callable[[Facts], Iterable[dict[str, Any]]]


def facts(**topics: DataFrame) -> DataFrame:
    """The rows of all frames, for a rule that sees everything at once: (key, topic, row)."""
    return _united(topics, F.lit(""))


def facts_by(column: str, **topics: DataFrame) -> DataFrame:
    """The rows of all frames, for a rule that is called for each value of a column."""
    return _united(topics, F.to_json(F.struct(column)))


def _united(topics: dict[str, DataFrame], key: Column) -> DataFrame:
    whole = {"ignoreNullFields": "false"}
    lines = [
        frame.select(
            key.alias("key"),
            F.lit(topic).alias("topic"),
            F.to_json(F.struct("*"), whole).alias("row"),
        )
        for topic, frame in topics.items()
    ]
    return reduce(lambda all_, more: all_.unionByName(more), lines)


def _parsed(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text)
    return row | {n: b64decode(row[n]) for n in _BYTES & row.keys() if row[n] is not None}


def judged(known: DataFrame, rule: Rule, schema: StructType) -> DataFrame:
    """The rows that ``rule`` makes of all ``facts``, in one task."""

    def work(rows: Iterator[tuple[Any, ...]]) -> Iterable[dict[str, Any]]:
        return rule(_gathered(rows))

    return mapped_rows(known.repartition(1), _COLUMNS, work, schema)


def judged_by_key(known: DataFrame, rule: Rule, schema: StructType) -> DataFrame:
    """The rows that ``rule`` makes of the rows of each key of ``facts_by``."""

    def work(rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        for _, of_key in groupby(rows, key=itemgetter(0)):
            yield from rule(_gathered(of_key))

    together = known.repartition("key").sortWithinPartitions("key")
    return mapped_rows(together, _COLUMNS, work, schema)


def _gathered(rows: Iterable[tuple[Any, ...]]) -> Facts:
    found: Facts = defaultdict(list)
    for _, topic, row in rows:
        found[topic].append(_parsed(row))
    return found
