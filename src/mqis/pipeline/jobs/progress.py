"""Lag and gaps: the tables ``lag``, ``lag_by_minute``, ``gaps``, ``rounds`` and ``margins``."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms import progress
from mqis.pipeline.trusted import (
    empty,
    journals_of,
    partitions_of,
    records_of,
    servers_with_wrong_clocks,
)


@dataclass(frozen=True, slots=True)
class Progressed:
    ways: int
    gaps: int
    duplicates: int


def lag(tables: TableDirectory) -> Progressed:
    """Writes the tables from ``records``; ``margins`` only if there are ``partitions`` too."""
    session = tables.session
    records = records_of(tables)
    wrong = servers_with_wrong_clocks(tables)
    arrived = progress.arrivals(records, wrong).persist()
    ways = tables.write("lag", progress.lag(arrived).orderBy("origin", "server").coalesce(1))
    tables.write("lag_by_minute", progress.lag_by_minute(arrived).coalesce(1))
    found = progress.gaps(records, journals_of(tables), _starts(tables))
    gaps = tables.write("gaps", found.orderBy("server", "partition", "first_seq").coalesce(1))
    tables.write("rounds", progress.rounds(records).orderBy("server", "peer").coalesce(1))
    if tables.has("partitions"):
        margins = progress.margins(partitions_of(tables), records)
        tables.write("margins", margins.orderBy("authority", "partition", "psc").coalesce(1))
    session.catalog.clearCache()
    kinds = {row["kind"]: row["count"] for row in gaps.groupBy("kind").count().collect()}
    return Progressed(ways.count(), kinds.get("gap", 0), kinds.get("duplicate", 0))


def _starts(tables: TableDirectory) -> DataFrame:
    """The numbers in the oldest snapshot of each server: its journal goes on from there."""
    if not tables.has("snapshot_partitions"):
        return empty(tables.session, "partitions").select("server", "partition", "last_seq")
    taken = tables.read("snapshot_partitions")
    return taken.groupBy("server", "partition").agg(F.min_by("last_seq", "lsn").alias("last_seq"))
