"""Versions of a table: the old one until the new one is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError


def test_versions(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableDirectory(spark, tmp_path)
    with pytest.raises(MqisError, match="no table 'numbers'"):
        tables.read("numbers")
    for count in (3, 4, 5):
        assert tables.write("numbers", spark.range(count)).count() == count
    assert tables.names() == ["numbers"]
    assert (tmp_path / "numbers" / "CURRENT").read_text() == "v000003\n"
    assert sorted(p.name for p in (tmp_path / "numbers").iterdir()) == [
        "CURRENT",
        "v000002",
        "v000003",
    ]


def test_a_failed_write_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableDirectory(spark, tmp_path)
    tables.write("numbers", spark.range(3))
    broken = spark.range(3).select(F.raise_error(F.lit("No space left on device")).alias("id"))
    with pytest.raises(MqisError, match="free some space"):
        tables.write("numbers", broken)
    assert tables.read("numbers").count() == 3
    assert sorted(p.name for p in (tmp_path / "numbers").iterdir()) == ["CURRENT", "v000001"]
    with pytest.raises(MqisError, match="free some space"):
        tables.write("fresh", broken)
    assert not tables.has("fresh")


def test_names_stay_names(spark: SparkSession, tmp_path: Path) -> None:
    named = spark.createDataFrame([("007", 1), ("a/b", 2)], "server string, lsn long")
    read = TableDirectory(spark, tmp_path).write("records", named, by=["server"])
    assert sorted((row.server, row.lsn) for row in read.collect()) == [("007", 1), ("a/b", 2)]
