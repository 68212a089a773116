"""Tables in a schema of any Spark catalogue: Hive, Iceberg, Delta, Unity, a database by JDBC.

Each table is replaced through Spark's own interfaces, so it is of the catalogue's own kind. A table
of another schema is never replaced: it may be somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from mqis.pipeline.failures import raised_as
from mqis.pipeline.graph import TABLES
from mqis.pipeline.layers import MadeOf
from mqis.pipeline.tables import TableDirectory, TableStore
from mqis.pipeline.transforms.expressions import shaped
from mqis.wire.errors import MqisError

_NAME = re.compile(r"[A-Za-z_]\w*")
_SESSION = "spark_catalog"
_JDBC = "JDBCTableCatalog"
#: JSON has milliseconds by default.
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


class CatalogTables:
    """The tables of ``CATALOG.SCHEMA``, or of a schema of the session's catalogue."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self.session = session
        self.place = place
        parts = place.split(".")
        if len(parts) > 2 or not all(map(_NAME.fullmatch, parts)):
            raise MqisError(f"{place}: give a catalogue and a schema, CATALOG.SCHEMA")
        self._catalog, self._schema = [_SESSION, *parts][-2:]
        self._is_session = self._catalog == _SESSION
        kind = session.conf.get(f"spark.sql.catalog.{self._catalog}", None) or ""
        if not kind and not self._is_session:
            raise MqisError(
                f"{place}: Spark knows no catalogue {self._catalog!r}; configure it with --conf "
                f"spark.sql.catalog.{self._catalog}=CLASS, or use {_SESSION}.{self._schema}"
            )
        #: A database has no maps and structures: such columns are written as JSON.
        self._flat = kind.endswith(_JDBC)
        with raised_as(MqisError, f"{place}: cannot be used: "):
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {self._catalog}.{self._schema}")

    def _full(self, name: str) -> str:
        return f"{self._catalog}.{self._schema}.{name}"

    def names(self) -> list[str]:
        rows = self.session.sql(f"SHOW TABLES IN {self._catalog}.{self._schema}").collect()
        return sorted(row["tableName"] for row in rows if not row["isTemporary"])

    def has(self, name: str) -> bool:
        return self.session.catalog.tableExists(self._full(name))

    def read(self, name: str) -> DataFrame:
        """Reads a table; raises ``MqisError`` if there is none."""
        if not self.has(name):
            raise MqisError(
                f"{self.place}: there is no table {name!r}; run 'mqis pipeline ingest' first"
            )
        stored = self.session.table(self._full(name))
        return _unflattened(stored, name) if self._flat else stored

    def count(self, name: str) -> int:
        return self.session.table(self._full(name)).count() if self.has(name) else 0

    def made_of(self, name: str) -> MadeOf:
        return MadeOf()

    def write(
        self,
        name: str,
        frame: DataFrame,
        *,
        by: Sequence[str] = (),
        digest: str = "",
    ) -> DataFrame:
        """Replaces a table and reads it back."""
        made = _flattened(frame) if self._flat else frame
        self._refuse_another(name, made.schema)
        with raised_as(MqisError, f"{self._full(name)}: cannot be written: "):
            self._replace(name, made, by)
        return self.read(name)

    def _refuse_another(self, name: str, schema: StructType) -> None:
        """Raises if the table has other columns than this one would."""
        if not self.has(name):
            return
        other = _types(self.session.table(self._full(name)).schema) ^ _types(schema)
        if other:
            column = min(other)[0]
            raise MqisError(
                f"{self._full(name)}: exists with another schema (column {column}), so it is not "
                "replaced; drop it, or choose another schema with --into"
            )

    def _replace(self, name: str, frame: DataFrame, by: Sequence[str]) -> None:
        full = self._full(name)
        if self._is_session:
            # A table cannot be overwritten by a query that reads it: its own input was read before.
            writer = frame.write.mode("overwrite").format("parquet")
            (writer.partitionBy(*by) if by else writer).saveAsTable(full)
        elif self._flat:
            # A database's catalogue cannot replace a table at once.
            self.drop(name)
            frame.writeTo(full).create()
        else:
            creator = frame.writeTo(full)
            (creator.partitionedBy(*map(F.col, by)) if by else creator).createOrReplace()

    def drop(self, name: str) -> None:
        """Removes the table."""
        with raised_as(MqisError, f"{self._full(name)}: cannot be dropped: "):
            self.session.catalog.dropTable(self._full(name), ifExists=True)


def _types(schema: StructType) -> set[tuple[str, str]]:
    """(column, type) without what a catalogue may change: whether values may be null."""
    return {(field.name, field.dataType.simpleString()) for field in schema}


def _flattened(frame: DataFrame) -> DataFrame:
    """The frame with its maps, structures and lists of lists as JSON."""
    nested = [field.name for field in frame.schema if _is_nested(field.dataType)]
    return shaped(frame, frame.columns, **{name: F.to_json(name, _TIMES) for name in nested})


def _unflattened(stored: DataFrame, name: str) -> DataFrame:
    """The table as the graph defines it."""
    schema = TABLES[name].schema if name in TABLES else None
    for field in schema or ():
        if _is_nested(field.dataType):
            parsed = F.from_json(field.name, field.dataType, _TIMES)  # type: ignore[arg-type]
            stored = stored.withColumn(field.name, parsed)
    return stored


def _is_nested(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return isinstance(kind.elementType, ArrayType | MapType | StructType)
    return isinstance(kind, MapType | StructType)


def table_store(session: SparkSession, into: str, directory: Path) -> TableStore:
    """The tables of a catalogue's schema if one is named, else of a directory."""
    return CatalogTables(session, into) if into else TableDirectory(session, directory)
