"""The graph's tables equal, row by row, those that the jobs before it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import generate
from mqis.pipeline import runs
from mqis.pipeline.building import TableBuilder
from mqis.pipeline.tables import TableDirectory
from tests.pipeline.kept import KEPT_PLAN, kept_tables, lines_of

KEPT_TABLES = kept_tables()


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TableDirectory, Path]:
    root = tmp_path_factory.mktemp("kept") / "made"
    generate(KEPT_PLAN, root)
    tables = TableDirectory(spark, root.parent / "tables")
    runs.ingest(tables, str(root / "journals"), str(root / "exports"))
    with TableBuilder(tables) as shared:
        for run in (runs.audit, runs.hygiene, runs.routes, runs.what_if, runs.history, runs.lag):
            run(tables, shared)
    runs.traffic(tables)
    return tables, root


@pytest.mark.parametrize("name", sorted(KEPT_TABLES))
def test_a_table_is_as_it_was(made: tuple[TableDirectory, Path], name: str) -> None:
    tables, root = made
    columns = json.loads(KEPT_TABLES[name][0])[1]  # a column that is newer is not compared
    assert lines_of(name, tables.read(name).select(*columns), root) == KEPT_TABLES[name]
