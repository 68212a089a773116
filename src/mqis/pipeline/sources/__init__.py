"""Python Data Sources: ``spark.read.format("mqis.journal").load(DIRECTORY)`` and its kin.

Give a schema with fewer columns to read fewer: ``.schema("server string, lsn long")``. Spark does
not pass the columns that a query needs to Python sources.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources.capture import CaptureSource
from mqis.pipeline.sources.checks import DIGESTS, SegmentSource
from mqis.pipeline.sources.directory import ROWS, DirectorySource
from mqis.pipeline.sources.files import only_option
from mqis.pipeline.sources.filters import columns_of
from mqis.pipeline.sources.journal import CHANGES, JournalSource

SOURCES = (JournalSource, SegmentSource, DirectorySource, CaptureSource)


def register(session: SparkSession) -> None:
    """Registers the sources by name; ``session.open_session`` calls this."""
    for source in SOURCES:
        session.dataSource.register(source)


#: The files that are read, of those of the path; None for all.
Only = Collection[str] | None


def journal(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, only: Only = None
) -> DataFrame:
    """Loads journals for **one** query, whose filters reach the files; load again for the next.

    Reads only ``columns``, if any are named.
    """
    wanted = columns_of(schemas.JOURNAL, columns, JournalSource.name())
    return _load(session, JournalSource, path, wanted, only, pushdown="true")


def changes(session: SparkSession, path: str, columns: Iterable[str] = ()) -> DataFrame:
    """Loads the changes in the bodies of journals, for **one** query like ``journal``.

    The tasks that read the files decode them. Works out only ``columns``, if any are named;
    ``properties.number`` names a part of the properties.
    """
    wanted = columns_of(schemas.CARRIED, columns, JournalSource.name())
    return _load(session, JournalSource, path, wanted, pushdown="true", rows=CHANGES)


def segments(session: SparkSession, path: str, *, only: Only = None) -> DataFrame:
    """Loads the headers, digests and damaged places of segment files."""
    return _load(session, SegmentSource, path, schemas.READ_SEGMENTS, only)


def digests(session: SparkSession, path: str, *, only: Only = None) -> DataFrame:
    """Loads the SHA-256 of files of any kind."""
    return _load(session, SegmentSource, path, schemas.DIGESTS, only, rows=DIGESTS)


def directory(
    session: SparkSession,
    path: str,
    columns: Iterable[str] = (),
    *,
    rows: str = "objects",
    only: Only = None,
) -> DataFrame:
    """Loads exports: their ``objects``, the ``partitions`` of their first lines, or ``lines``."""
    wanted = columns_of(ROWS[rows], columns, DirectorySource.name())
    return _load(session, DirectorySource, path, wanted, only, rows=rows)


def capture(
    session: SparkSession, path: str, columns: Iterable[str] = (), *, only: Only = None
) -> DataFrame:
    """Loads captures: their messages, and what cannot be read."""
    wanted = columns_of(schemas.CAPTURE, columns, CaptureSource.name())
    return _load(session, CaptureSource, path, wanted, only)


_SIZE = re.compile(r"([0-9]{1,15})([kmgt]?)b?")
#: Spark's settings about small files, and the options that they are for our sources, to which
#: Spark does not pass them.
_PACKING = {
    "spark.sql.files.maxPartitionBytes": "task_bytes",
    "spark.sql.files.openCostInBytes": "open_bytes",
}


def _load(
    session: SparkSession,
    source: type[DataSource],
    path: str,
    schema: StructType,
    only: Only = None,
    **options: str,
) -> DataFrame:
    if only is not None:
        options["only"] = only_option(only)
    for setting, option in _PACKING.items():
        if size := _bytes(session.conf.get(setting, None) or ""):
            options[option] = size
    return session.read.format(source.name()).options(**options).schema(schema).load(path)


def _bytes(setting: str) -> str:
    """The number of bytes that a setting of Spark means (134217728b, 128m); empty if none."""
    match = _SIZE.fullmatch(setting.strip().lower())
    return str(int(match[1]) << 10 * "bkmgt".index(match[2] or "b")) if match else ""
