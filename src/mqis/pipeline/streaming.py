"""Stream: lag and divergence of replicas, while their journals grow.

The tables are ``live``, ``live_lag`` and ``live_divergence``. Each batch writes the relevant
columns of its records to a directory named after the batch's number, so a batch that is repeated
after a crash replaces itself. The tables are computed from all batches. The function that runs for
each batch closes over nothing but a path: Spark Connect sends it to the server and runs it there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.failures import raised_as
from mqis.pipeline.tables import TableDirectory, TableStore
from mqis.pipeline.transforms import live
from mqis.pipeline.transforms.expressions import gathered
from mqis.pipeline.transforms.progress import arrived, lag
from mqis.wire.errors import MqisError

_POLL_S = 1
#: Called after each batch with the batch's number and the current table ``live``.
OnBatch = Callable[[int, DataFrame], None]


def stream(
    tables: TableDirectory, journals: str, *, every_s: float = 2.0, once: bool = False
) -> StreamingQuery:
    """Starts the stream where an earlier one ended.

    ``once``: reads the records that exist now, then ends.
    """
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
        tables = TableDirectory(frame.sparkSession, directory)
        batches = Path(directory) / "stream" / "batches"
        frame.write.mode("overwrite").parquet(str(batches / f"batch={number}"))
        compute(tables, batches)

    return keep


def compute(tables: TableDirectory, batches: Path) -> None:
    """Writes the tables from all batches."""
    read = tables.session.read.parquet(str(batches)).drop("batch")
    seen = live.without_strangers(read).persist()
    try:
        tables.write("live", gathered(live.standing(seen)))
        tables.write("live_lag", lag(arrived(seen)))
        tables.write("live_divergence", gathered(live.divergence(seen)))
    finally:
        seen.unpersist()


def follow(query: StreamingQuery, tables: TableStore, on_batch: OnBatch) -> None:
    """Calls ``on_batch`` after every batch until the query ends.

    Raises ``MqisError`` if the query fails.
    """
    last, ended = -1, False
    while not ended:
        with raised_as(MqisError, "the stream ended: "):
            ended = bool(query.awaitTermination(_POLL_S))
        progress = query.lastProgress
        number = -1 if progress is None else progress.batchId
        # The attribute, not the key: with Spark Connect, the key "numInputRows" is missing.
        done = number > last and progress is not None and progress.numInputRows > 0
        if done and tables.has("live"):
            last = number
            on_batch(number, tables.read("live"))
