"""Every column of every table says what it is, in the code and in the stored table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mqis.pipeline import schemas
from mqis.pipeline.building import TableBuilder
from mqis.pipeline.columns import COMMENTS, comment_of, commented, described
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.tables import TableDirectory

_COLUMNS = [
    (table.name, column)
    for table in TABLES.values()
    if table.kind is TableKind.TABLE and table.schema is not None
    for column in table.schema.names
]


def test_every_column_has_a_comment_and_every_comment_a_column() -> None:
    assert [place for place in _COLUMNS if not comment_of(*place)] == []
    used = {f"{table}.{name}" for table, name in _COLUMNS} | {name for _, name in _COLUMNS}
    assert COMMENTS.keys() - used == set()
    own = {key for key in COMMENTS if "." in key}
    plain = {name for table, name in _COLUMNS if f"{table}.{name}" not in own}
    assert {key for key in COMMENTS if "." not in key} - plain == set(), "all tables have their own"


def test_a_stored_table_has_its_comments(spark: SparkSession, tmp_path: Path) -> None:
    schema = commented("gaps", schemas.GAPS)
    tables = TableDirectory(spark, tmp_path)
    row = ("skipped", "a", "p", 2, 3, 0, True)
    tables.write("gaps", described(spark.createDataFrame([row], schemas.GAPS), schema))
    told = {each.name: each.metadata.get("comment") for each in tables.read("gaps").schema}
    assert told == {name: comment_of("gaps", name) for name in schemas.GAPS.names}
    tables.read("gaps").createOrReplaceTempView("stored_gaps")
    shown = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE stored_gaps").collect()}
    assert shown == told


def test_the_jobs_of_a_table_have_its_name(spark: SparkSession, tmp_path: Path) -> None:
    names: list[str | None] = []

    class Watching(TableDirectory):
        def write(
            self, name: str, frame: DataFrame, *, by: Sequence[str] = (), digest: str = ""
        ) -> DataFrame:
            names.append(spark.sparkContext.getLocalProperty("spark.job.description"))
            return super().write(name, frame, by=by, digest=digest)

    with TableBuilder(Watching(spark, tmp_path)) as builder:
        builder.write(["errors"])
    assert names == ["mqis: table errors"]
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
