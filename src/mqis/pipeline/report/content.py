"""The content of the report, read from the tables; everything after this needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.building import TableBuilder
from mqis.pipeline.readable import in_order, site_names, used_input
from mqis.pipeline.report.wording import CLOCKS, TABLES
from mqis.pipeline.tables import TableStore
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, object_from
from mqis.pipeline.transforms.words import in_words
from mqis.protocol.directory.objects import DirectoryObject

Rows = Sequence[Mapping[str, Any]]
#: Draws the map of sites, links and machines as SVG; the rows are those of the table ``traffic``.
DrawMap = Callable[[Iterable[DirectoryObject], Rows], str]

#: At most this many rows of a table are read.
MOST_ROWS = 100_000
#: Points of a line over the whole period.
_POINTS = 200
#: A point stands at the start of its step, which may lie before the period.
_LONGEST_STEP_S = 86_400


@dataclass(frozen=True, slots=True)
class ReportContent:
    written: datetime
    enterprise: str = ""
    #: The first and the last record of the journals, by servers whose clocks are right.
    began: datetime | None = None
    ended: datetime | None = None
    servers: int = 0
    #: All changes; None if the history was not computed.
    changes: int | None = None
    #: (partition, type, count): the objects of each site.
    inventory: Rows = ()
    #: The map of sites and links as SVG; empty if there is none.
    sitemap: str = ""
    #: (moment, origin, changes) and (moment, server, p95_ms), over the period.
    activity: Rows = ()
    lag_over_time: Rows = ()
    #: Pairs of sites without a route, and all pairs; None if no routes were computed.
    cut_pairs: int | None = None
    pairs: int = 0
    #: The rows of the tables in words; a table that was not written is not there.
    tables: Mapping[str, Rows] = field(default_factory=dict)
    #: The rows of tables that have more than were read.
    totals: Mapping[str, int] = field(default_factory=dict)

    def count(self, table: str) -> int:
        return self.totals.get(table, len(self.tables.get(table, ())))


def read_content(
    tables: TableStore, written: datetime | None = None, draw: DrawMap | None = None
) -> ReportContent:
    """Reads everything that the report shows; ``draw`` makes the picture of the map."""
    sites = site_names(tables)
    rows = {name: _rows(frame) for name, frame in _frames(tables, sites).items()}
    totals = {name: tables.read(name).count() for name in rows if len(rows[name]) == MOST_ROWS}
    began, ended = _period(tables, rows.get("evidence", ()))
    step = _step(began, ended)
    cut, pairs = _pairs(tables)
    return ReportContent(
        written or datetime.now(UTC),
        _enterprise(tables),
        began,
        ended,
        _servers(tables),
        tables.read("changes").count() if tables.has("changes") else None,
        inventory(tables, sites),
        "" if draw is None else _sitemap(tables, draw, rows.get("traffic", ())),
        _within(began, ended, _over_time(tables, "changes", changes_over_time, step)),
        _within(began, ended, _over_time(tables, "lag_by_minute", lag_over_time, step)),
        cut,
        pairs,
        rows,
        totals,
    )


def _frames(tables: TableStore, sites: DataFrame | None) -> dict[str, DataFrame]:
    there = [name for name in TABLES if tables.has(name)]
    return {name: in_order(name, in_words(tables.read(name), sites)) for name in there}


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.limit(MOST_ROWS).collect()]


# --- single facts ---------------------------------------------------------------------------------


def _enterprise(tables: TableStore) -> str:
    if not tables.has("partitions"):
        return ""
    named = used_input(tables, "partitions").filter("enterprise is not null")
    common = named.groupBy("enterprise").count().orderBy(F.desc("count"), "enterprise").limit(1)
    return "".join(row["enterprise"] for row in common.collect())


def _period(tables: TableStore, evidence: Rows) -> tuple[datetime | None, datetime | None]:
    if not tables.has("journals"):
        return None, None
    wrong = sorted({row["server"] for row in evidence if row["kind"] in CLOCKS})
    told = tables.read("journals").filter(~F.col("server").isin(wrong))
    # As numbers: Python would take Spark's times for those of this computer's zone.
    ends = told.agg(
        F.unix_micros(F.min("began")).alias("began"), F.unix_micros(F.max("ended")).alias("ended")
    ).collect()[0]
    return _moment(ends["began"]), _moment(ends["ended"])


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC)


def _servers(tables: TableStore) -> int:
    known = [tables.read(n).select("server") for n in ("journals", "partitions") if tables.has(n)]
    if not known:
        return 0
    both = known[0].unionByName(known[-1])
    return both.distinct().count()


def inventory(tables: TableStore, sites: DataFrame | None = None) -> Rows:
    """The number of objects of each partition and type, each object counted once."""
    if not _is_exported(tables):
        return ()
    held = TableBuilder(tables).frame("held_objects").groupBy("partition", "type").count()
    return _rows(in_words(held, sites))


def _sitemap(tables: TableStore, draw: DrawMap, traffic: Rows) -> str:
    if not _is_exported(tables):
        return ""
    rows = TableBuilder(tables).frame("routing_objects").select(*OBJECT_COLUMNS).collect()
    return draw((object_from(*row) for row in rows), traffic)


def _is_exported(tables: TableStore) -> bool:
    return tables.has("objects") and tables.has("partitions")


def _pairs(tables: TableStore) -> tuple[int | None, int]:
    if not tables.has("routes"):
        return None, 0
    pairs = tables.read("routes")
    return pairs.filter("cost is null").count(), pairs.count()


# --- over time ------------------------------------------------------------------------------------


def _step(began: datetime | None, ended: datetime | None) -> int:
    """Seconds between two points of a line."""
    if began is None or ended is None:
        return 3600
    return max(60, 60 * ceil((ended - began).total_seconds() / _POINTS / 60))


def _over_time(
    tables: TableStore, name: str, reduce: Callable[[DataFrame, int], DataFrame], step_s: int
) -> Rows:
    return _rows(reduce(tables.read(name), step_s)) if tables.has(name) else ()


def _within(began: datetime | None, ended: datetime | None, points: Rows) -> Rows:
    """The points of the period; a wrong clock would put some of them elsewhere."""
    if began is None or ended is None:
        return points
    first, last = began.timestamp() - _LONGEST_STEP_S, ended.timestamp()
    return [point for point in points if first <= point["moment"] <= last]


def changes_over_time(changes: DataFrame, step_s: int) -> DataFrame:
    """The number of changes of each authority: (moment in seconds, origin, changes)."""
    made = changes.groupBy(_bucket("time", step_s), "origin").agg(F.count("*").alias("changes"))
    return made.select("moment", "origin", "changes").orderBy("origin", "moment")


def lag_over_time(by_minute: DataFrame, step_s: int) -> DataFrame:
    """The longest 95th percentile of each replica: (moment in seconds, server, p95_ms)."""
    longest = by_minute.groupBy(_bucket("minute", step_s), "server").agg(
        F.max("p95_ms").alias("p95_ms")
    )
    return longest.select("moment", "server", "p95_ms").orderBy("server", "moment")


def _bucket(column: str, step_s: int) -> Column:
    return (F.floor(F.unix_seconds(column) / step_s) * step_s).alias("moment")
