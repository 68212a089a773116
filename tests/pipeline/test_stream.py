"""The journal as a stream: nothing twice, nothing left out, across a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources.files import Share
from mqis.pipeline.sources.journal import JournalSource
from mqis.pipeline.transforms.live import divergence
from mqis.wire.journal import segment_header, walk
from tests.pipeline.conftest import Enterprise


def ends(path: Path) -> list[int]:
    """The offset at which records begin, then the offset at which each record of a segment ends."""
    data = path.read_bytes()
    _, start = segment_header(data)
    return [start, *(entry.offset + entry.length for entry in walk(data, start))]


def test_offsets_stand_behind_whole_records(enterprise: Enterprise, tmp_path: Path) -> None:
    (source,) = Path(enterprise.journals, "s001-psc").glob("*.mqj")
    cuts = ends(source)
    target = tmp_path / source.name
    target.write_bytes(source.read_bytes()[: cuts[5] + 7])
    reader = JournalSource({"path": str(tmp_path)}).streamReader(schemas.JOURNAL)
    first = reader.latestOffset(reader.initialOffset(), None)  # type: ignore[arg-type]
    assert first == {str(target): cuts[5]}
    target.write_bytes(source.read_bytes()[: cuts[9]])
    second = reader.latestOffset(first, None)  # type: ignore[arg-type]
    assert second == {str(target): cuts[9]}
    assert reader.partitions({}, first) == [Share(str(target), cuts[0], cuts[5])]
    (share,) = reader.partitions(first, second)
    batches: list[Any] = list(reader.read(share))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["lsn"] for row in rows] == [6, 7, 8, 9]
    assert reader.latestOffset(second, None) == second  # type: ignore[arg-type]
    assert reader.partitions(second, second) == []


def test_messages_that_arrive_otherwise(spark: SparkSession) -> None:
    """The digests of a body at both ends, and the changes that came with it."""
    source, partition, obj = (bytearray([n]) * 16 for n in (1, 2, 3))
    rows = [
        ("a", 1, 1, 2, 0, None, source, 7, 111),
        ("b", 1, 1, 6, 0, None, source, 7, 112),
        ("b", 2, 2, 7, 1, obj, source, 7, None),
        ("a", 2, 1, 2, 0, None, source, 8, 111),
        ("c", 1, 1, 6, 0, None, source, 8, 111),
        ("c", 2, 2, 7, 1, obj, source, 8, None),
    ]
    names = ("server", "lsn", "kind", "state", "operation", "object_id", "message_source")
    fields = [schemas.JOURNAL[name] for name in (*names, "message_ordinal")]
    schema = StructType([*fields, StructField("digest", LongType())])
    frame = spark.createDataFrame(rows, schema).select(
        "*",
        F.lit(partition).alias("partition"),
        F.lit(5).cast("long").alias("seq"),
        F.lit(1).alias("object_type"),
        F.lit(None).cast("timestamp").alias("time"),
        F.lit(None).cast("long").alias("from_seq"),
        F.lit(None).cast("long").alias("to_seq"),
    )
    found = divergence(frame).collect()
    assert [(row.server, row.seq, row.difference) for row in found] == [("b", 5, "altered")]
