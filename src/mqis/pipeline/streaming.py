"""Stream: lag and divergence of replicas, while their journals grow.

The tables are ``live``, ``live_lag`` and ``live_divergence``. Each batch adds the relevant columns
of its records to the table ``stream/rows`` as an input file that is named after the batch's number
(``mqis.pipeline.layers``): so a batch that is repeated after a crash replaces itself, and the rows
of many batches become few files. The tables are computed from these rows. The function that runs
for each batch closes over nothing but a path: Spark Connect sends it to the server and runs it
there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.failures import raised_as
from mqis.pipeline.layers import InputFile, LayerPlan, MadeOf
from mqis.pipeline.tables import TableDirectory, TableStore
from mqis.pipeline.transforms import live
from mqis.pipeline.transforms.expressions import gathered
from mqis.pipeline.transforms.progress import arrived, lag
from mqis.wire.errors import MqisError

_POLL_S = 1
#: The table of what is kept of records, and the directory in which earlier versions kept that.
_ROWS, _EARLIER = "rows", "batches"
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
        compute(tables, added(tables, frame, number))

    return keep


def added(tables: TableDirectory, frame: DataFrame, number: int) -> DataFrame:
    """Adds the rows of a batch to those of all others, and returns all of them."""
    kept = TableDirectory(tables.session, tables.directory / "stream")
    made = kept.made_of(_ROWS)
    stamps = {name: stamp for files in made.layers.values() for name, stamp in files.items()}
    rows = frame.withColumn("file", F.lit(str(number)))
    new = {str(number)}
    earlier = kept.directory / _EARLIER
    if earlier.is_dir() and _EARLIER not in stamps:
        before = tables.session.read.parquet(str(earlier)).filter(F.col("batch") < number)
        rows = rows.unionByName(before.drop("batch").withColumn("file", F.lit(_EARLIER)))
        new.add(_EARLIER)
    # Each attempt of a batch has another stamp than the one before.
    present = {name: InputFile(stamp) for name, stamp in stamps.items()}
    present |= {name: InputFile(f"{stamps.get(name, '')}+") for name in new}
    plan = LayerPlan.of(made.layers, present, kept.layer_sizes(_ROWS))
    found = kept.extend(_ROWS, rows, plan, MadeOf(layers=plan.layers))
    if _EARLIER in present:
        shutil.rmtree(earlier, ignore_errors=True)
    return found.drop("file")


def compute(tables: TableDirectory, rows: DataFrame) -> None:
    """Writes the tables from the rows of all batches."""
    seen = live.without_strangers(rows).persist()
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
