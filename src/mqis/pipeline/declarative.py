"""The graph as a Spark Declarative Pipeline: ``spark-pipelines run`` builds the same tables.

``mqis pipeline init`` writes a definition file that calls ``define``. Spark then orders the tables,
runs those that do not depend on each other side by side, and for ``read_records``, which is a
streaming table, reads only what is new in the journals.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

from mqis.pipeline import schemas
from mqis.pipeline.graph import TABLES, TableDefinition, TableKind
from mqis.pipeline.inputs import PipelineInputs, Sources, sources_of

__all__ = ["PipelineInputs", "define"]


def define(spark: SparkSession, inputs: PipelineInputs) -> None:
    """Defines all tables for which there is input; for a definition file of a pipeline."""
    inputs.check()
    sources = sources_of(spark, inputs)
    if inputs.journals:
        reader = spark.readStream.format("mqis.journal").schema(schemas.JOURNAL)
        sources["journal"] = lambda: reader.load(inputs.journals)
    defined = {name: table for name, table in TABLES.items() if _has_input(name, sources)}
    for table in defined.values():
        query = _query(spark, table, sources, defined.keys())
        if table.kind is TableKind.STREAM:
            pipelines.table(name=table.name, comment=_comment(table))(query)
        elif table.kind is TableKind.VIEW:
            pipelines.temporary_view(name=table.name)(query)
        else:
            pipelines.materialized_view(name=table.name, comment=_comment(table))(query)


def _has_input(name: str, sources: Sources) -> bool:
    """Returns whether a source is given, or a table has the input that it requires."""
    if name not in TABLES:
        return name in sources
    required = TABLES[name].requires
    return not required or _has_input(required, sources)


def _query(
    spark: SparkSession, table: TableDefinition, sources: Sources, defined: Container[str]
) -> Callable[[], DataFrame]:
    def read(name: str) -> DataFrame | None:
        if name in sources:
            return sources[name]()
        if name not in TABLES:
            return None
        if name in defined:
            return spark.read.table(name)
        schema = TABLES[name].schema
        assert schema is not None
        return spark.createDataFrame([], schema)

    return lambda: table.make(**{name: read(name) for name in table.reads})


def _comment(table: TableDefinition) -> str:
    return (table.make.__doc__ or f"mqis: {table.name}").partition("\n")[0]
