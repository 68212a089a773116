"""The journal as a stream: nothing twice, nothing left out, across a restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from mqis.pipeline import schemas
from mqis.pipeline.jobs import stream as jobs
from mqis.pipeline.session import PipelineError
from mqis.pipeline.sources.files import Share
from mqis.pipeline.sources.journal import JournalSource
from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms.live import divergence
from mqis.wire.journal import RecordState, segment_header, walk
from tests.pipeline.conftest import Enterprise
from tests.pipeline.test_sources import whole_records


def ends(path: Path) -> list[int]:
    """Where each record of a segment ends; the first: where records begin."""
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


def test_a_stream_goes_on_where_it_ended(
    spark: SparkSession, enterprise: Enterprise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that is behind, a batch that fails when half is done, and the end."""
    journals = tmp_path / "journals"
    shutil.copytree(enterprise.journals, journals)
    (behind,) = (journals / "s003-psc").glob("*.mqj")
    octets = behind.read_bytes()
    behind.write_bytes(octets[: len(octets) // 2])
    tables = Tables(spark, tmp_path / "tables")

    def run() -> list[int]:
        batches: list[int] = []
        query = jobs.stream(tables, str(journals), once=True)
        jobs.follow(query, tables, lambda number, _: batches.append(number))
        return batches

    assert run() == [0]
    live = tables.read("live").filter("server = 's003-psc'").collect()
    assert sum(row.behind for row in live) > 0

    behind.write_bytes(octets)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "compute", broken)
        with pytest.raises(PipelineError, match=r"the stream ended: .*no room"):
            run()
    assert run() == [1]
    assert run() == []
    assert {row.behind for row in tables.read("live").collect()} == {0}
    seen = spark.read.parquet(str(tmp_path / "tables" / "stream" / "batches"))
    changes = seen.filter("kind = 2").select("server", "lsn").collect()
    wanted = [
        (server, entry.lsn)
        for server, entry in whole_records(enterprise)
        if entry.record.state in (RecordState.LOCAL, RecordState.APPLIED)
    ]
    assert sorted((row.server, row.lsn) for row in changes) == sorted(wanted)
    check_divergence(tables, enterprise)


def broken(tables: Tables, batches: Path) -> None:
    raise OSError("no room")


def check_divergence(tables: Tables, enterprise: Enterprise) -> None:
    """What was passed over; what a journal does not show is for the audit, which sees exports."""
    damaged = {damage["server"] for damage in enterprise.manifest["damage"]}
    shown = ("lost", "never_sent", "refused", "expired")
    planted = {
        (f["server"], f["partition"], f["id"], f["type"], f["seq"])
        for f in enterprise.manifest["faults"]
        if f["cause"] in shown and f["server"] not in damaged
    }
    rows = [r for r in tables.read("live_divergence").collect() if r.server not in damaged]
    assert {row.difference for row in rows} == {"passed_over"}
    assert {(r.server, r.partition, r.id, r.type, r.seq) for r in rows} == planted
    assert len(rows) == len(planted) > 0


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
