"""The graph: every table has its schema, and no definition starts a Spark job."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from mqis.pipeline import graph, schemas
from mqis.pipeline.building import TableBuilder
from mqis.pipeline.catalogs import CatalogTables
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.inputs import PipelineInputs
from mqis.pipeline.project import write_project
from mqis.pipeline.registry import table
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from tests.pipeline.conftest import Enterprise

#: The schemas of what is read from outside.
SOURCES = {
    "journal": schemas.JOURNAL,
    "checked_segments": schemas.READ_SEGMENTS,
    "snapshot_files": schemas.DIGESTS,
    "earlier_segments": schemas.SEALED_SEGMENTS,
    "snapshot_lines": schemas.EXPORT_LINES,
    "snapshot_states": schemas.PARTITIONS,
    "snapshot_places": schemas.SNAPSHOT_PLACES,
    "exported_objects": schemas.DIRECTORY,
    "exported_partitions": schemas.PARTITIONS,
    "captured": schemas.CAPTURE,
    "messages": schemas.MESSAGES,
    "estate_checks": schemas.ESTATE_CHECKS,
    "synthetic_seed": schemas.SEED,
    "failed_link": schemas.FAILED_LINK,
}


def kinds(schema: StructType) -> dict[str, str]:
    return {field.name: kind_of(field.dataType) for field in schema}


def kind_of(kind: DataType) -> str:
    return kind.simpleString()


def test_definitions_start_no_jobs_and_make_their_schemas(spark: SparkSession) -> None:
    made: dict[str, StructType] = dict(SOURCES)
    spark.sparkContext.setJobGroup("definitions", "definitions")

    def empty(name: str) -> DataFrame:
        if name not in made:
            made[name] = define(name)
        return spark.createDataFrame([], made[name])

    def define(name: str) -> StructType:
        found = TABLES[name]
        frame = found.make(**{read: empty(read) for read in found.reads})
        if found.schema is not None:
            assert kinds(frame.schema) == kinds(found.schema), name
        return frame.schema

    for name in TABLES:
        empty(name)
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("definitions")


def test_definitions_name_the_columns_that_stay() -> None:
    """Through Connect ``drop`` looks the table up, which a declarative pipeline has yet to make."""
    package = Path(graph.__file__).parents[1]
    files = [path for name in ("graph", "transforms") for path in (package / name).glob("*.py")]
    assert files
    assert [path.name for path in files if ".drop(" in path.read_text(encoding="utf-8")] == []


def test_tables_have_schemas_and_known_inputs() -> None:
    for name, found in TABLES.items():
        assert (found.schema is not None) == (found.kind is TableKind.TABLE), name
        assert {*found.reads, found.requires or "records"} <= TABLES.keys() | SOURCES.keys(), name


def test_two_tables_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tables are named lag"):

        @table(schemas.LAG)
        def lag(records: DataFrame) -> DataFrame:
            return records


def test_a_table_of_an_earlier_version_is_named(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableDirectory(spark, tmp_path)
    tables.write("segments", spark.createDataFrame([("a",)], "file string"))
    with pytest.raises(MqisError, match="the table segments lacks the column damage, so an earl"):
        TableBuilder(tables).frame("segments")


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("nowhere.mqis", "Spark knows no catalogue 'nowhere'; configure it with --conf"),
        ("a.b.c", "give a catalogue and a schema, CATALOG.SCHEMA"),
        ("a;b", "give a catalogue and a schema, CATALOG.SCHEMA"),
    ],
)
def test_a_wrong_place_is_one_clear_line(spark: SparkSession, place: str, why: str) -> None:
    with pytest.raises(MqisError) as refused:
        CatalogTables(spark, place)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_project_is_three_short_files(enterprise: Enterprise, tmp_path: Path) -> None:
    inputs = PipelineInputs(journals=enterprise.journals, exports=enterprise.exports)
    spec, definition, defaults = write_project(tmp_path / "project", inputs, "estate")
    assert "schema: estate\n" in spec.read_text("ascii")
    lines = definition.read_text("ascii").splitlines()
    assert len(lines) == 3
    assert enterprise.journals in lines[-1]
    assert defaults == tmp_path / "project" / "conf" / "spark-defaults.conf"
    with pytest.raises(MqisError, match="exists already"):
        write_project(tmp_path / "project", inputs, "estate")
