"""Python Data Sources: ``spark.read.format("mqis.journal").load(DIRECTORY)`` and its kin.

Give a schema with fewer columns to read fewer: ``.schema("server string, lsn long")``. Spark does
not pass the columns that a query needs to Python sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources.capture import CaptureSource
from mqis.pipeline.sources.checks import SegmentSource
from mqis.pipeline.sources.choosing import columns_of
from mqis.pipeline.sources.directory import ROWS, DirectorySource
from mqis.pipeline.sources.journal import CHANGES, JournalSource

SOURCES = (JournalSource, SegmentSource, DirectorySource, CaptureSource)


def register(session: SparkSession) -> None:
    """Registers the sources by name; ``session.open_session`` calls this."""
    for source in SOURCES:
        session.dataSource.register(source)


def journal(
    session: SparkSession,
    path: str,
    columns: Iterable[str] = (),
    *,
    share_bytes: int = 0,
    without: Iterable[str] = (),
) -> DataFrame:
    """Loads journals for **one** query, whose filters reach the files; load again for the next.

    Reads only ``columns``, if any are named, and no files of ``without``.
    """
    reader = _journal_reader(session, share_bytes, without)
    return reader.schema(_only(schemas.JOURNAL, columns)).load(path)


def changes(
    session: SparkSession,
    path: str,
    columns: Iterable[str] = (),
    *,
    share_bytes: int = 0,
    without: Iterable[str] = (),
) -> DataFrame:
    """Loads the changes in the bodies of journals, for **one** query like ``journal``.

    The tasks that read the files decode them. Works out only ``columns``, if any are named;
    ``properties.number`` names a part of the properties.
    """
    reader = _journal_reader(session, share_bytes, without).option("rows", CHANGES)
    wanted = columns_of(schemas.CARRIED, columns, JournalSource.name())
    return reader.schema(wanted).load(path)


def _journal_reader(
    session: SparkSession, share_bytes: int, without: Iterable[str]
) -> DataFrameReader:
    reader = session.read.format(JournalSource.name()).option("pushdown", "true")
    if share_bytes:
        reader = reader.option("share_bytes", share_bytes)
    if files := sorted(without):
        reader = reader.option("without", json.dumps(files))
    return reader


def segments(session: SparkSession, path: str, *, without: Iterable[str] = ()) -> DataFrame:
    """Loads the headers, digests and damaged places of segment files; no files of ``without``."""
    reader = session.read.format(SegmentSource.name())
    if files := sorted(without):
        reader = reader.option("without", json.dumps(files))
    return reader.load(path)


def directory(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, rows: str = "objects"
) -> DataFrame:
    """Loads exports: their ``objects``, the ``partitions`` of their first lines, or ``lines``."""
    whole = ROWS[rows]
    reader = session.read.format(DirectorySource.name()).option("rows", rows)
    return reader.schema(_only(whole, columns)).load(path)


def capture(session: SparkSession, path: str, columns: Iterable[str] = ()) -> DataFrame:
    """Loads captures: their messages, and what cannot be read."""
    reader = session.read.format(CaptureSource.name())
    return reader.schema(_only(schemas.CAPTURE, columns)).load(path)


def _only(schema: StructType, columns: Iterable[str]) -> StructType:
    names = list(columns)
    return StructType([schema[name] for name in names]) if names else schema
