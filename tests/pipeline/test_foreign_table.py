"""A table of somebody else in the schema of ``--into``: one line, and it stays."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.pipeline.conftest import Enterprise


def test_a_table_with_another_schema_is_not_replaced(
    spark: SparkSession, enterprise: Enterprise, tmp_path: Path
) -> None:
    exports = tmp_path / "exports"
    exports.mkdir()
    shutil.copy(sorted(Path(enterprise.exports).glob("*.jsonl"))[0], exports)
    spark.sql(f"CREATE SCHEMA foreign LOCATION '{(tmp_path / 'warehouse').as_uri()}'")
    try:
        spark.sql("CREATE TABLE foreign.objects USING parquet AS SELECT 'red' AS colour")
        done = run("pipeline", "ingest", "--exports", exports, "--into", "foreign")
        assert done.exit_code == 1
        assert isinstance(done.exception, MqisError)
        assert str(done.exception) == (
            "spark_catalog.foreign.objects: exists with another schema (column colour), so it is "
            "not replaced; drop it, or choose another schema with --into"
        )
        assert [row.colour for row in spark.table("foreign.objects").collect()] == ["red"]
        assert not spark.catalog.tableExists("foreign.partitions")
    finally:
        spark.sql("DROP SCHEMA foreign CASCADE")
