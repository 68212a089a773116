"""History and progress of replication: changes, versions, lag, gaps, synchronisations, margins."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.graph.registry import table, view
from mqis.pipeline.transforms import history, progress
from mqis.pipeline.transforms.rebuild import local_changes


@table(schemas.CHANGES, requires="records")
def changes(used_records: DataFrame) -> DataFrame:
    return history.changes(local_changes(used_records), used_records)


@table(schemas.VERSIONS, requires="records")
def versions(changes: DataFrame) -> DataFrame:
    return history.versions(changes)


@view
def arrivals(used_records: DataFrame, wrong_clocks: DataFrame) -> DataFrame:
    return progress.arrivals(used_records.join(F.broadcast(wrong_clocks), "server", "left_anti"))


@table(schemas.LAG, requires="records")
def lag(arrivals: DataFrame) -> DataFrame:
    return progress.lag(arrivals).orderBy("origin", "server").coalesce(1)


@table(schemas.LAG_BY_MINUTE, requires="records")
def lag_by_minute(arrivals: DataFrame) -> DataFrame:
    return progress.lag_by_minute(arrivals).coalesce(1)


@table(schemas.GAPS, requires="records")
def gaps(used_records: DataFrame, journals: DataFrame, snapshot_partitions: DataFrame) -> DataFrame:
    # A journal goes on from the numbers in its oldest snapshot.
    starts = snapshot_partitions.groupBy("server", "partition").agg(
        F.min_by("last_seq", "lsn").alias("last_seq")
    )
    found = progress.gaps(used_records, journals.select("server", "complete"), starts)
    return found.orderBy("server", "partition", "first_seq").coalesce(1)


@table(schemas.ROUNDS, requires="records")
def rounds(used_records: DataFrame) -> DataFrame:
    return progress.rounds(used_records).orderBy("server", "peer").coalesce(1)


@table(schemas.MARGINS, requires="partitions")
def margins(used_partitions: DataFrame, used_records: DataFrame) -> DataFrame:
    found = progress.margins(used_partitions, used_records)
    return found.orderBy("authority", "partition", "psc").coalesce(1)
