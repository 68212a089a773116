"""The registry of all tables: one pure function from frames to a frame for each.

    @table(schemas.LAG, requires="records")
    def lag(arrivals: DataFrame) -> DataFrame: ...

The function's name is the table's, and its parameters are the tables and sources that it reads. It
only describes the computation: nothing in it starts a Spark job, so that two drivers can run the
same definitions, ``mqis.pipeline.building`` and Spark Declarative Pipelines
(``mqis.pipeline.declarative``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from inspect import signature
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from mqis.pipeline.columns import commented

MakeTable = Callable[..., DataFrame]


class TableKind(Enum):
    """The ways in which a driver keeps what a function makes."""

    #: Written for users.
    TABLE = "table"
    #: A few rows that several queries need: computed once. A query that contains all earlier ones
    #: would take Spark longer to plan than to run.
    STEP = "step"
    #: A query that others contain; nothing is kept.
    VIEW = "view"
    #: What a source reads: in a declarative pipeline a streaming table, elsewhere a query.
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: str
    make: MakeTable
    kind: TableKind
    #: The names of the tables and sources that it reads.
    reads: tuple[str, ...]
    schema: StructType | None
    #: The table of the input without which this one is not made; empty if it always is.
    requires: str
    #: The columns by whose values the files of the table are divided.
    by: tuple[str, ...]
    #: The columns by which its rows are shown, "-messages" for the most first; none: in any order.
    order: tuple[str, ...] = ()
    #: Of a table that is made file by file: the source or step that tells of each file what its
    #: rows depend on. Rows of files that are as they were are kept (``mqis.pipeline.layers``). Its
    #: function makes of the rows of some files the same rows as of those of all.
    files: str = ""


#: All definitions by name, in the order of the modules that ``mqis.pipeline.graph`` imports.
TABLES: dict[str, TableDefinition] = {}

Decorator = Callable[[MakeTable], MakeTable]


def _defined(kind: TableKind, **more: Any) -> Decorator:
    def define(make: MakeTable) -> MakeTable:
        name = make.__name__
        if name in TABLES:
            raise ValueError(f"two tables are named {name}")
        TABLES[name] = TableDefinition(name, make, kind, tuple(signature(make).parameters), **more)
        return make

    return define


def table(
    schema: StructType,
    *,
    requires: str = "",
    by: tuple[str, ...] = (),
    order: tuple[str, ...] = (),
    files: str = "",
) -> Decorator:
    """Defines a table that users see; its columns have the comments of ``columns``."""

    def define(make: MakeTable) -> MakeTable:
        told = commented(make.__name__, schema)
        more = {"requires": requires, "by": by, "order": order, "files": files}
        return _defined(TableKind.TABLE, schema=told, **more)(make)

    return define


def stream(*, requires: str) -> Decorator:
    """Defines what a source reads, and only reads what is new where that is possible."""
    return _defined(TableKind.STREAM, schema=None, requires=requires, by=())


def step(make: MakeTable) -> MakeTable:
    """Defines a small intermediate result."""
    return _defined(TableKind.STEP, schema=None, requires="", by=())(make)


def view(make: MakeTable) -> MakeTable:
    """Defines a query that tables contain."""
    return _defined(TableKind.VIEW, schema=None, requires="", by=())(make)
