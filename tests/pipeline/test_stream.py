"""The journal as a stream: nothing twice, nothing left out, across a restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mqis.pipeline import schemas
from mqis.pipeline.jobs.stream import stream
from mqis.pipeline.sources.files import Share
from mqis.pipeline.sources.journal import JournalSource
from mqis.pipeline.tables import Tables
from mqis.wire.journal import RecordState, Whole, segment_header, walk
from tests.pipeline.conftest import Enterprise


def whole(path: Path) -> list[Whole]:
    data = path.read_bytes()
    entries = walk(data, segment_header(data)[1])
    return [entry for entry in entries if isinstance(entry, Whole)]


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
    spark: SparkSession, enterprise: Enterprise, tmp_path: Path
) -> None:
    journals = tmp_path / "journals"
    shutil.copytree(enterprise.journals, journals)
    (behind,) = (journals / "s003-psc").glob("*.mqj")
    octets = behind.read_bytes()
    behind.write_bytes(octets[: len(octets) // 2])
    tables = Tables(spark, tmp_path / "tables")

    batches: list[int] = []

    def run() -> int:
        query = stream(tables, str(journals), once=True, told=lambda n, _: batches.append(n))
        query.awaitTermination()
        rows = tables.read("live").filter("server = 's003-psc'").collect()
        return sum(row.behind for row in rows)

    assert run() > 0
    behind.write_bytes(octets)
    assert run() == 0
    assert len(batches) == len(set(batches)) >= 2
    seen = spark.read.parquet(str(tmp_path / "tables" / "stream" / "batches"))
    states = (int(RecordState.LOCAL), int(RecordState.APPLIED))
    entries = [e for path in journals.rglob("*.mqj") for e in whole(path)]
    assert seen.count() == sum(entry.record.state in states for entry in entries)
