"""Stream: how far replicas are, while it happens; the tables ``live`` and ``live_lag``.

Each batch keeps the headers of its changes in a directory of its own, by the batch's number, so a
batch that is done again after a crash replaces itself; the tables are worked out from all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms.expressions import guid_text
from mqis.pipeline.transforms.progress import arrivals, lag
from mqis.wire.journal import RecordKind, RecordState

_KEPT = ("server", "time", "kind", "state", "partition", "seq")
#: Called with the number of each batch that is done, and the current table ``live``.
Told = Callable[[int, DataFrame], None]


def stream(
    tables: Tables,
    journals: str,
    *,
    every_s: float = 2.0,
    once: bool = False,
    told: Told | None = None,
) -> StreamingQuery:
    """Start it; it goes on from where an earlier one ended. ``once``: what is there, then end."""
    schema = StructType([schemas.JOURNAL[name] for name in (*_KEPT, "error")])
    records = (
        tables.session.readStream.format("mqis.journal")
        .schema(schema)
        .load(journals)
        .filter(
            F.col("error").isNull()
            & (F.col("kind") == int(RecordKind.CHANGE))
            & F.col("state").isin(int(RecordState.LOCAL), int(RecordState.APPLIED))
        )
        .select(*_KEPT)
    )
    place = tables.directory / "stream"

    def batch(frame: DataFrame, number: int) -> None:
        frame.write.mode("overwrite").parquet(str(place / "batches" / f"batch={number}"))
        seen = tables.session.read.parquet(str(place / "batches"))
        live = tables.write("live", standing(seen).coalesce(1))
        tables.write("live_lag", lag(arrivals(seen)).coalesce(1))
        if told is not None:
            told(number, live)

    writer = records.writeStream.foreachBatch(batch).option(
        "checkpointLocation", str(place / "checkpoint")
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s} seconds").start()


def standing(records: DataFrame) -> DataFrame:
    """Of each replica the last number, and how many changes of the authority it lacks."""
    local = F.col("state") == int(RecordState.LOCAL)
    made = (
        records.filter(local)
        .groupBy("partition")
        .agg(F.max_by("server", "seq").alias("authority"), F.max("seq").alias("made_seq"))
    )
    had = (
        records.filter(~local)
        .groupBy("server", "partition")
        .agg(
            F.max("seq").alias("had_seq"),
            F.count_distinct("seq").alias("changes"),
            F.max("time").alias("last"),
        )
    )
    return had.join(F.broadcast(made), "partition", "left").select(
        "server",
        guid_text(F.col("partition")).alias("partition"),
        "authority",
        "made_seq",
        "had_seq",
        F.greatest(F.col("made_seq") - F.col("had_seq"), F.lit(0)).alias("behind"),
        "changes",
        "last",
    )
