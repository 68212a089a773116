"""A stream across a failure and a restart: nothing twice, nothing left out.

Part of ``make engines``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqis.pipeline import streaming as jobs
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordState
from tests.pipeline.conftest import Enterprise
from tests.pipeline.test_sources import whole_records


def test_a_stream_goes_on_where_it_ended(
    spark: SparkSession, enterprise: Enterprise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that is behind, a batch that fails when half is done, and the end."""
    journals = tmp_path / "journals"
    shutil.copytree(enterprise.journals, journals)
    (behind,) = (journals / "s003-psc").glob("*.mqj")
    octets = behind.read_bytes()
    behind.write_bytes(octets[: len(octets) // 2])
    tables = TableDirectory(spark, tmp_path / "tables")

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
        with pytest.raises(MqisError, match=r"the stream ended: .*no room"):
            run()
    assert run() == [1]
    assert run() == []
    check_standing(tables, enterprise)
    seen = TableDirectory(spark, tmp_path / "tables" / "stream").read("rows")
    changes = seen.filter("kind = 2").select("server", "lsn").collect()
    wanted = [
        (server, entry.lsn)
        for server, entry in whole_records(enterprise)
        if entry.record.state in (RecordState.LOCAL, RecordState.APPLIED)
    ]
    assert sorted((row.server, row.lsn) for row in changes) == sorted(wanted)
    check_divergence(tables, enterprise)


def test_rows_of_batches_are_kept_in_few_files(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that is repeated replaces itself; those of an earlier version are taken over."""
    tables = TableDirectory(spark, tmp_path)
    for number in range(3):
        old = spark.createDataFrame([(number, f"old {number}")], "lsn long, server string")
        old.write.parquet(str(tmp_path / "stream" / "batches" / f"batch={number}"))
    wanted = [(0, "old 0"), (1, "old 1")]  # batch 2 was not finished, so it is repeated
    for number in range(2, 9):
        rows = [(number, "new"), (number, "more")]
        for _ in range(2 if number == 5 else 1):
            frame = spark.createDataFrame(rows, "lsn long, server string").coalesce(1)
            found = jobs.added(tables, frame, number)
        wanted += rows
    assert sorted(map(tuple, found.collect())) == sorted(wanted)
    assert not (tmp_path / "stream" / "batches").exists()
    place = tmp_path / "stream" / "rows"
    assert len(list(place.glob("*.parquet"))) < len(wanted) / 2


def broken(tables: TableDirectory, rows: DataFrame) -> None:
    raise OSError("no room")


def check_standing(tables: TableDirectory, enterprise: Enterprise) -> None:
    """Checks that only the server is behind whose journal lacks its end, by what it lacks there.

    The journal of the stranger, who claims later changes, makes nobody behind.
    """
    evidence = enterprise.manifest["evidence"]
    assert "stranger" in {found["kind"] for found in evidence}
    lacking = {
        (found["server"], found["partition"]): found["last"] - found["first"] + 1
        for found in evidence
        if found["kind"] == "missing_end"
    }
    rows = tables.read("live").collect()
    assert {(r.server, r.partition): r.behind for r in rows if r.behind} == lacking
    authorities = {server["site"]: server["psc"] for server in enterprise.manifest["servers"]}
    authorities[str(Guid.NULL)] = enterprise.manifest["servers"][0]["name"]
    assert {(r.partition, r.authority) for r in rows} == set(authorities.items())


def check_divergence(tables: TableDirectory, enterprise: Enterprise) -> None:
    """Checks that the stream finds skipped changes; only the audit, by exports, finds the rest."""
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
