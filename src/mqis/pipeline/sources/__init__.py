"""Python Data Sources: ``spark.read.format("mqis.journal").load(DIRECTORY)`` and its kin.

Give a schema with fewer columns to read fewer: ``.schema("server string, lsn long")``. Spark does
not tell Python sources which columns a query needs.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources.capture import CaptureSource
from mqis.pipeline.sources.directory import ROWS, DirectorySource
from mqis.pipeline.sources.journal import JournalSource

SOURCES = (JournalSource, DirectorySource, CaptureSource)


def register(session: SparkSession) -> None:
    """Make the sources known under their names; a session does it when it is opened."""
    for source in SOURCES:
        session.dataSource.register(source)


def journal(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, share_bytes: int = 0
) -> DataFrame:
    """A journal for **one** query, whose filters reach the files; load another for the next one.

    Just the columns that are named, if any.
    """
    reader = session.read.format(JournalSource.name()).option("pushdown", "true")
    if share_bytes:
        reader = reader.option("share_bytes", share_bytes)
    return reader.schema(_only(schemas.JOURNAL, columns)).load(path)


def directory(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, rows: str = "objects"
) -> DataFrame:
    """Exports: their objects, with ``rows="partitions"`` what their first lines say, or lines."""
    whole = ROWS[rows]
    reader = session.read.format(DirectorySource.name()).option("rows", rows)
    return reader.schema(_only(whole, columns)).load(path)


def capture(session: SparkSession, path: str, columns: Iterable[str] = ()) -> DataFrame:
    """Captures: what was said in them, and what of them cannot be read."""
    reader = session.read.format(CaptureSource.name())
    return reader.schema(_only(schemas.CAPTURE, columns)).load(path)


def _only(schema: StructType, columns: Iterable[str]) -> StructType:
    names = list(columns)
    return StructType([schema[name] for name in names]) if names else schema
