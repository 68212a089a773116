"""Versions of a table: the old one until the new one is whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.tables import TableDirectory
from mqis.places.pipeline_tables import current_version, table_names, table_versions
from mqis.wire.errors import MqisError


def test_versions(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableDirectory(spark, tmp_path)
    with pytest.raises(MqisError, match="no table 'numbers'"):
        tables.read("numbers")
    for count in (3, 4, 5):
        assert tables.write("numbers", spark.range(count)).count() == count
    assert tables.names() == ["numbers"]
    assert (tmp_path / "numbers").readlink() == Path(".numbers", "v000003")
    assert sorted(p.name for p in (tmp_path / ".numbers").iterdir()) == ["v000002", "v000003"]
    tables.drop("numbers")
    assert list(tmp_path.iterdir()) == []


def test_other_programs_read_a_table_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark, pandas, DuckDB and pyarrow do: a directory of Parquet files, by its path."""
    tables = TableDirectory(spark, tmp_path)
    tables.write("numbers", spark.range(3))
    tables.write("numbers", spark.range(5))
    named = spark.createDataFrame([("007", 1), ("b", 2)], "server string, lsn long")
    tables.write("records", named, by=["server"])
    assert spark.read.parquet(str(tmp_path / "numbers")).count() == 5
    assert ds.dataset(tmp_path / "numbers", format="parquet").count_rows() == 5
    assert len(pd.read_parquet(tmp_path / "numbers")) == 5
    assert sorted(pd.read_parquet(tmp_path / "records").server.astype(str)) == ["007", "b"]
    assert (tmp_path / "numbers" / "_SUCCESS").is_file()


def test_a_file_system_without_links(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mounted bucket has none: a file names the version there."""

    def refused(link: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(link))

    tables = TableDirectory(spark, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "symlink_to", refused)
        for count in (3, 4, 5):
            assert tables.write("numbers", spark.range(count)).count() == count
        assert tables.names() == ["numbers"]
        assert (tmp_path / "numbers" / "CURRENT").read_text() == "v000003\n"
        assert sorted(p.name for p in (tmp_path / "numbers").iterdir()) == [
            "CURRENT",
            "v000002",
            "v000003",
        ]
    # As mqis 0.x left it: the next version is a link.
    assert tables.write("numbers", spark.range(6)).count() == 6
    assert (tmp_path / "numbers").readlink() == Path(".numbers", "v000004")
    assert tables.write("numbers", spark.range(7)).count() == 7
    assert table_versions(tmp_path, "numbers") == [
        tmp_path / ".numbers" / v for v in ("v000004", "v000005")
    ]


@pytest.mark.parametrize(
    "target", ["/etc", "../outside", ".numbers/v1", ".other/v000001", ".numbers"]
)
def test_a_link_that_leads_elsewhere_is_no_table(tmp_path: Path, target: str) -> None:
    (tmp_path / "tables" / ".numbers" / "v1").mkdir(parents=True)
    (tmp_path / "tables" / ".other" / "v000001").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "tables" / "numbers").symlink_to(target)
    assert table_names(tmp_path / "tables") == []
    assert current_version(tmp_path / "tables", "numbers") is None


def test_a_failed_write_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableDirectory(spark, tmp_path)
    tables.write("numbers", spark.range(3))
    broken = spark.range(3).select(F.raise_error(F.lit("No space left on device")).alias("id"))
    with pytest.raises(MqisError, match="free some space"):
        tables.write("numbers", broken)
    assert tables.read("numbers").count() == 3
    assert table_versions(tmp_path, "numbers") == [tmp_path / ".numbers" / "v000001"]
    with pytest.raises(MqisError, match="free some space"):
        tables.write("fresh", broken)
    assert not tables.has("fresh")


def test_names_stay_names(spark: SparkSession, tmp_path: Path) -> None:
    named = spark.createDataFrame([("007", 1), ("a/b", 2)], "server string, lsn long")
    read = TableDirectory(spark, tmp_path).write("records", named, by=["server"])
    assert sorted((row.server, row.lsn) for row in read.collect()) == [("007", 1), ("a/b", 2)]
