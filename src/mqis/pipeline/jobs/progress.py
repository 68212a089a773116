"""Lag and gaps: the tables ``lag``, ``lag_by_minute``, ``gaps``, ``rounds`` and ``margins``."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.pipeline.jobs.ingest import empty
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms import progress
from mqis.pipeline.transforms.causes import journals
from mqis.pipeline.transforms.settling import settled


@dataclass(frozen=True, slots=True)
class Progressed:
    ways: int
    gaps: int
    duplicates: int


def lag(tables: TableDirectory) -> Progressed:
    """Writes the tables from ``records``; ``margins`` only if there are ``partitions`` too."""
    session = tables.session
    records = tables.read("records")
    errors = tables.read("errors") if tables.has("errors") else empty(session, "errors")
    arrived = progress.arrivals(records).persist()
    ways = tables.write("lag", progress.lag(arrived).orderBy("origin", "server").coalesce(1))
    tables.write("lag_by_minute", progress.lag_by_minute(arrived).coalesce(1))
    found = progress.gaps(records, settled(journals(records, errors)))
    gaps = tables.write("gaps", found.orderBy("server", "partition", "first_seq").coalesce(1))
    tables.write("rounds", progress.rounds(records).orderBy("server", "peer").coalesce(1))
    if tables.has("partitions"):
        margins = progress.margins(tables.read("partitions"), records)
        tables.write("margins", margins.orderBy("authority", "partition", "psc").coalesce(1))
    session.catalog.clearCache()
    kinds = {row["kind"]: row["count"] for row in gaps.groupBy("kind").count().collect()}
    return Progressed(ways.count(), kinds.get("gap", 0), kinds.get("duplicate", 0))
