"""Tables as Parquet, each version in a directory of its own (``mqis.places.pipeline_tables``).

Spark replaces files one by one, so a concurrent reader would see a mix of old and new. Here a new
version is written beside the old one and becomes current at once: a reader sees one version or
the other, and readers never see the output of a failed job. The executors have to share the
directory with the driver.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructType

from mqis.pipeline.columns import described
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.layers import LayerPlan, MadeOf, copied_rows, layer_sizes, write_layers
from mqis.pipeline.locations import local_path
from mqis.places.pipeline_tables import (
    current_version,
    drop_table,
    make_current,
    next_version,
    table_names,
)
from mqis.wire.errors import MqisError

_UNWRITTEN: tuple[type[Exception], ...] = (OSError, *SPARK_ERRORS)


class TableStore(Protocol):
    """A place for tables: a directory of Parquet files, or a schema of a Spark catalogue."""

    session: SparkSession

    def names(self) -> list[str]: ...

    def has(self, name: str) -> bool: ...

    def read(self, name: str) -> DataFrame:
        """Reads a table; raises ``MqisError`` if there is none."""
        ...

    def count(self, name: str) -> int:
        """The number of rows of a table; 0 if there is none."""
        ...

    def write(
        self, name: str, frame: DataFrame, *, by: Sequence[str] = (), digest: str = ""
    ) -> DataFrame:
        """Replaces a table and reads it back; ``by`` divides its files by values of columns.

        ``digest`` is that of what the table depends on.
        """
        ...

    def made_of(self, name: str) -> MadeOf:
        """Tells what a table was made of, if the store keeps that."""
        ...

    def drop(self, name: str) -> None: ...


class TableDirectory:
    """The tables of one directory."""

    def __init__(self, session: SparkSession, directory: str | Path) -> None:
        self.session = session
        self.directory = local_path(directory).resolve()

    def names(self) -> list[str]:
        return table_names(self.directory)

    def has(self, name: str) -> bool:
        return current_version(self.directory, name) is not None

    def read(self, name: str) -> DataFrame:
        """Reads the current version; raises ``MqisError`` if there is none."""
        version = current_version(self.directory, name)
        if version is None:
            raise MqisError(
                f"{self.directory}: there is no table {name!r}; run 'mqis pipeline ingest' first"
                + (f" (there are {', '.join(self.names())})" if self.names() else "")
            )
        schema = _stored_schema(version)  # a job of Spark would read the same
        reader = self.session.read if schema is None else self.session.read.schema(schema)
        return reader.parquet(str(version))

    def count(self, name: str) -> int:
        version = current_version(self.directory, name)
        return 0 if version is None else sum(map(_rows_of, version.rglob(_FILES)))

    def write(
        self, name: str, frame: DataFrame, *, by: Sequence[str] = (), digest: str = ""
    ) -> DataFrame:
        """Writes a new version, makes it current and reads it back from its files."""
        with self._new_version(name) as target:
            writer = frame.write.mode("error")
            (writer.partitionBy(*by) if by else writer).parquet(str(target))
            MadeOf(digest).write(target)
        return self.read(name)

    def made_of(self, name: str) -> MadeOf:
        version = current_version(self.directory, name)
        return MadeOf() if version is None else MadeOf.read(version)

    def layer_sizes(self, name: str) -> dict[str, int]:
        version = current_version(self.directory, name)
        return {} if version is None else layer_sizes(version)

    def extend(
        self, name: str, new: DataFrame, plan: LayerPlan, made: MadeOf, *, by: Sequence[str] = ()
    ) -> DataFrame:
        """Writes a new version of a table that is made file by file; ``new`` are the rows read."""
        before = current_version(self.directory, name)
        with self._new_version(name) as target:
            kept = None if before is None else copied_rows(self.session, before, plan, by)
            rows = new if kept is None else described(new.unionByName(kept), new.schema)
            write_layers(rows, plan, by, before, target)
            made.write(target)
        return self.read(name)

    @contextmanager
    def _new_version(self, name: str) -> Iterator[Path]:
        """Lets the block write a version, which becomes current if the block succeeds."""
        place, target = self.directory / name, next_version(self.directory, name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield target
            make_current(self.directory, name, target)
        except _UNWRITTEN as error:
            shutil.rmtree(target, ignore_errors=True)
            raise MqisError(f"{place}: cannot be written: {explained(error)}") from error

    def drop(self, name: str) -> None:
        """Removes the table."""
        drop_table(self.directory, name)


#: Where Spark keeps its own schema, comments included, in the files that it writes.
_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_FILES = "*.parquet"


def _stored_schema(version: Path) -> StructType | None:
    """The schema of a table's files; None if another program than Spark wrote them."""
    file = next(version.rglob(_FILES), None)
    told = None if file is None else (pq.read_schema(file).metadata or {}).get(_SCHEMA)
    if file is None or told is None:
        return None
    schema = StructType.fromJson(json.loads(told))
    for part in file.relative_to(version).parts[:-1]:  # the columns by which files are divided
        schema = schema.add(part.partition("=")[0], StringType())
    return schema


def _rows_of(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)
