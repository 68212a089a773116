"""Hygiene of planted faults: from all exports, and from those of one server alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import Generated, GeneratePlan, generate
from mqis.pipeline.readable import in_order
from mqis.pipeline.report.content import inventory
from mqis.pipeline.runs import hygiene, ingest
from mqis.pipeline.tables import TableDirectory
from mqis.views.hygiene.copies import check_export

PLAN = GeneratePlan(sites=3, machines=9, queues=20, changes=10, faults=0, hygiene=2)
#: A replica of the enterprise's partition and of two sites' partitions.
ONE = "s002-psc.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Generated]:
    directory = tmp_path_factory.mktemp("hygiene") / "made"
    return directory / "exports", generate(PLAN, directory)


def planted(made: Generated) -> list[tuple[str, str, str]]:
    return sorted((fault.check, fault.type, fault.id) for fault in made.hygiene)


@pytest.mark.parametrize("exports", [".", ONE])
def test_planted_faults_and_nothing_else(
    spark: SparkSession, made: tuple[Path, Generated], tmp_path: Path, exports: str
) -> None:
    directory, result = made
    tables = TableDirectory(spark, tmp_path / "tables")
    ingest(tables, exports=str(directory / exports))
    counts = hygiene(tables)

    rows = in_order("hygiene", tables.read("hygiene")).collect()
    assert sorted((row.check, row.type, row.id) for row in rows) == planted(result)
    assert sum(counts.values()) == len(result.hygiene)
    # Every server has a copy of every object; the report counts each object once.
    assert sum(row["count"] for row in inventory(tables)) == tables.read("directory").count()
    limits = {row.check for row in tables.read("hygiene_limits").collect()}
    assert limits == ({"duplicate_id", "no_gate", None} if exports == ONE else set())
    if exports == ONE:
        report = check_export(directory / ONE)
        assert [(f.check, f.objects[0].id, f.detail, f.what) for f in report.findings] == [
            (row.check, row.id, row.detail, row.explanation) for row in rows
        ]
