"""Stream: how far replicas are and who holds something else, while it happens.

The tables ``live``, ``live_lag`` and ``live_divergence``. Each batch keeps what matters of its
records in a directory of its own, by the batch's number, so a batch that is done again after a
crash replaces itself; the tables are worked out from all of them. What runs for each batch holds
nothing but a path: through Spark Connect it is sent to the server and runs there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.session import PipelineError
from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms import live
from mqis.pipeline.transforms.progress import arrivals, lag

_POLL_S = 1
#: Called with the number of each batch that is done, and the current table ``live``.
Told = Callable[[int, DataFrame], None]


def stream(
    tables: Tables, journals: str, *, every_s: float = 2.0, once: bool = False
) -> StreamingQuery:
    """Start it; it goes on from where an earlier one ended. ``once``: what is there, then end."""
    schema = StructType([schemas.JOURNAL[name] for name in live.READ])
    reader = tables.session.readStream.format("mqis.journal").schema(schema)
    place = tables.directory / "stream"
    writer = (
        live.kept(reader.load(journals))
        .writeStream.foreachBatch(_keeper(str(tables.directory)))
        .option("checkpointLocation", str(place / "checkpoint"))
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s} seconds").start()


def _keeper(directory: str) -> Callable[[DataFrame, int], None]:
    def keep(frame: DataFrame, number: int) -> None:
        tables = Tables(frame.sparkSession, directory)
        batches = Path(directory) / "stream" / "batches"
        frame.write.mode("overwrite").parquet(str(batches / f"batch={number}"))
        compute(tables, batches)

    return keep


def compute(tables: Tables, batches: Path) -> None:
    """The tables from all batches that there are."""
    seen = tables.session.read.parquet(str(batches)).drop("batch").persist()
    try:
        tables.write("live", live.standing(seen).coalesce(1))
        tables.write("live_lag", lag(arrivals(seen)).coalesce(1))
        found = live.divergence(seen).orderBy("server", "partition", "id")
        tables.write("live_divergence", found.coalesce(1))
    finally:
        seen.unpersist()


def follow(query: StreamingQuery, tables: Tables, told: Told) -> None:
    """Tell of every batch until the query ends; ``PipelineError`` where it fails."""
    last, over = -1, False
    while not over:
        try:
            over = bool(query.awaitTermination(_POLL_S))
        except SPARK_ERRORS as error:
            raise PipelineError(f"the stream ended: {explained(error)}") from error
        progress = query.lastProgress
        number = -1 if progress is None else progress.batchId
        # By name: through Connect, the number under that key is missing.
        done = number > last and progress is not None and progress.numInputRows > 0
        if done and tables.has("live"):
            last = number
            told(number, tables.read("live"))
