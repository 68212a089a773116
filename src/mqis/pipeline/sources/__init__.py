"""Python Data Sources: ``spark.read.format("mqis.journal").load(DIRECTORY)`` and its kin.

Give a schema with fewer columns to read fewer: ``.schema("server string, lsn long")``. Spark does
not tell Python sources which columns a query needs.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from mqis.pipeline.sources.directory import DirectorySource
from mqis.pipeline.sources.journal import JournalSource

SOURCES = (JournalSource, DirectorySource)


def register(session: SparkSession) -> None:
    """Make the sources known under their names; a session does it when it is opened."""
    for source in SOURCES:
        session.dataSource.register(source)
