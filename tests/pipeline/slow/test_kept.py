"""The graph's tables equal, row by row, those that the jobs before it wrote.

They do so if one run reads all journals, and if several runs read them while they grow.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import generate
from mqis.pipeline import runs
from mqis.pipeline.building import TableBuilder
from mqis.pipeline.tables import TableDirectory
from tests.pipeline.growing import grow
from tests.pipeline.kept import KEPT_PLAN, kept_tables, lines_of

KEPT_TABLES = kept_tables()


@pytest.fixture(scope="module", params=["one run", "several runs"])
def made(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[TableDirectory, Path]:
    root = tmp_path_factory.mktemp("kept") / "made"
    generate(KEPT_PLAN, root)
    tables = TableDirectory(spark, root.parent / "tables")
    if request.param == "several runs":
        whole = (root / "journals").rename(root.parent / "whole")
        for share in (0.4, 0.75):
            grow(whole, root / "journals", share)
            run_all(tables, root)
        grow(whole, root / "journals", 1)
    run_all(tables, root)
    runs.traffic(tables)
    return tables, root


def run_all(tables: TableDirectory, root: Path) -> None:
    runs.ingest(tables, str(root / "journals"), str(root / "exports"))
    with TableBuilder(tables) as shared:
        for run in (runs.audit, runs.hygiene, runs.routes, runs.what_if, runs.history, runs.lag):
            run(tables, shared)


@pytest.mark.parametrize("name", sorted(KEPT_TABLES))
def test_a_table_is_as_it_was(made: tuple[TableDirectory, Path], name: str) -> None:
    tables, root = made
    columns = json.loads(KEPT_TABLES[name][0])[1]  # a column that is newer is not compared
    assert lines_of(name, tables.read(name).select(*columns), root) == KEPT_TABLES[name]
