"""Python Data Sources: ``spark.read.format("mqis.journal").load(DIRECTORY)`` and its kin.

Give a schema with fewer columns to read fewer: ``.schema("server string, lsn long")``. Spark does
not pass the columns that a query needs to Python sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
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
    session: SparkSession, path: str, columns: Iterable[str] = (), *, without: Iterable[str] = ()
) -> DataFrame:
    """Loads journals for **one** query, whose filters reach the files; load again for the next.

    Reads only ``columns``, if any are named, and no files of ``without``.
    """
    wanted = columns_of(schemas.JOURNAL, columns, JournalSource.name())
    options = {"pushdown": "true", "without": json.dumps(sorted(without))}
    return _load(session, JournalSource, path, wanted, **options)


def changes(session: SparkSession, path: str, columns: Iterable[str] = ()) -> DataFrame:
    """Loads the changes in the bodies of journals, for **one** query like ``journal``.

    The tasks that read the files decode them. Works out only ``columns``, if any are named;
    ``properties.number`` names a part of the properties.
    """
    wanted = columns_of(schemas.CARRIED, columns, JournalSource.name())
    return _load(session, JournalSource, path, wanted, pushdown="true", rows=CHANGES)


def segments(session: SparkSession, path: str, *, without: Iterable[str] = ()) -> DataFrame:
    """Loads the headers, digests and damaged places of segment files; no files of ``without``."""
    left_out = json.dumps(sorted(without))
    return _load(session, SegmentSource, path, schemas.CHECKED_SEGMENTS, without=left_out)


def directory(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, rows: str = "objects"
) -> DataFrame:
    """Loads exports: their ``objects``, the ``partitions`` of their first lines, or ``lines``."""
    wanted = columns_of(ROWS[rows], columns, DirectorySource.name())
    return _load(session, DirectorySource, path, wanted, rows=rows)


def capture(session: SparkSession, path: str, columns: Iterable[str] = ()) -> DataFrame:
    """Loads captures: their messages, and what cannot be read."""
    wanted = columns_of(schemas.CAPTURE, columns, CaptureSource.name())
    return _load(session, CaptureSource, path, wanted)


def _load(
    session: SparkSession, source: type[DataSource], path: str, schema: StructType, **options: str
) -> DataFrame:
    return session.read.format(source.name()).options(**options).schema(schema).load(path)
