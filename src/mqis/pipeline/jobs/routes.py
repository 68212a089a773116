"""Routes and what-if: the tables ``routes`` and ``what_if``."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.jobs.hygiene import directory
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.routes import RoutingArrays, snapshot_of
from mqis.pipeline.transforms.routes import routes as all_routes
from mqis.pipeline.transforms.routes import what_if as all_failures

#: With more sites, paths are left out: they would be most of the table, and next hops imply them.
_PATHS_UP_TO = 1000


@dataclass(frozen=True, slots=True)
class Routed:
    sites: int
    pairs: int
    unreachable: int


@dataclass(frozen=True, slots=True)
class Failed:
    failures: int
    #: Failures that cut off at least one pair of sites.
    cutting: int


def network(tables: TableDirectory) -> RoutingArrays:
    return RoutingArrays.of(snapshot_of(directory(tables)))


def routes(tables: TableDirectory) -> Routed:
    found = network(tables)
    count = found.graph.count
    made = all_routes(tables.session, found, paths=count <= _PATHS_UP_TO)
    written = tables.write("routes", made)
    counted = written.agg(
        F.count("*").alias("pairs"), F.count_if(F.col("cost").isNull()).alias("cut")
    ).collect()[0]
    return Routed(count, counted["pairs"], counted["cut"])


def what_if(tables: TableDirectory) -> Failed:
    made = all_failures(tables.session, network(tables))
    ranked = made.orderBy(F.desc("cut_off"), F.desc("dearer_by"), "kind", "name").coalesce(1)
    written = tables.write("what_if", ranked)
    return Failed(written.count(), written.filter("cut_off > 0").count())
