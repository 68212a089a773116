"""Builds tables of the graph one after the other: the driver behind ``mqis pipeline``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame

from mqis.pipeline.columns import described
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.inputs import Sources
from mqis.pipeline.session import is_one_task
from mqis.pipeline.tables import TableStore
from mqis.pipeline.watching import named_jobs
from mqis.wire.errors import MqisError

#: A frame with more rows stays with the executors.
_FEW = 100_000


def settled(frame: DataFrame) -> DataFrame:
    """Computes a frame that is used several times, so that others do not contain its plan.

    Spark takes longer to plan a query that contains all earlier plans than to run it. So frames
    that are usually small (servers, differences, the messages with a change) are computed early and
    continue as plain rows on the driver; many rows stay cached on the executors.
    """
    if is_one_task(frame.sparkSession):  # there is too little for a cache to pay
        rows = frame.limit(_FEW + 1).toArrow()
        return _of_rows(frame, rows) if rows.num_rows <= _FEW else frame.persist()
    kept = frame.persist()
    rows = kept.limit(_FEW + 1).toArrow()
    if rows.num_rows > _FEW:
        return kept
    kept.unpersist()
    return _of_rows(frame, rows)


def _of_rows(frame: DataFrame, rows: pa.Table) -> DataFrame:
    return in_one_task(frame.sparkSession.createDataFrame(rows, frame.schema))


def in_one_task(frame: DataFrame) -> DataFrame:
    """The frame as one partition, in a session whose queries are one task: nothing is shuffled."""
    return frame.coalesce(1) if is_one_task(frame.sparkSession) else frame


class TableBuilder:
    """Makes tables from sources, from tables that are stored, and from each other.

    Every table and step is made at most once; leaving the ``with`` block frees what was cached.
    """

    def __init__(self, tables: TableStore, sources: Sources | None = None) -> None:
        self._tables = tables
        self._sources = sources or {}
        self._made: dict[str, DataFrame] = {}
        self.written: set[str] = set()

    def __enter__(self) -> TableBuilder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tables.session.catalog.clearCache()

    def write(self, names: Iterable[str]) -> None:
        """Writes the tables of these names; leaves out those without the input they require."""
        for name in names:
            table = TABLES[name]
            if not table.requires or self._has(table.requires):
                assert table.schema is not None
                with named_jobs(self._tables.session, f"table {name}"):
                    made = described(self._make(name), table.schema)
                    self._made[name] = self._tables.write(name, made, by=table.by)
                self.written.add(name)

    def frame(self, name: str) -> DataFrame:
        """What a function of the graph returns; a table as it is stored, empty if it is not."""
        if name not in self._made:
            self._made[name] = self._stored(name)
        return self._made[name]

    def _has(self, name: str) -> bool:
        return name in self._sources or (name in TABLES and self._tables.has(name))

    def _make(self, name: str) -> DataFrame:
        table = TABLES[name]
        return table.make(**{read: self._read(read) for read in table.reads})

    def _read(self, name: str) -> DataFrame | None:
        if name in TABLES:
            found = self.frame(name)
            return in_one_task(found) if TABLES[name].kind is TableKind.TABLE else found
        return in_one_task(self._sources[name]()) if name in self._sources else None

    def _stored(self, name: str) -> DataFrame:
        table = TABLES[name]
        if table.kind is TableKind.STEP:
            made = self._make(name)
            is_part = is_one_task(made.sparkSession) and _readers()[name] == 1
            return made if is_part else settled(made)
        if table.kind is not TableKind.TABLE:
            return self._make(name)
        assert table.schema is not None
        if self._tables.has(name):
            found = self._tables.read(name)
            if missing := set(table.schema.fieldNames()) - set(found.columns):
                raise MqisError(
                    f"the table {name} lacks the column {min(missing)}, so an earlier version of "
                    "mqis wrote it; ingest the input again"
                )
            return found
        return self._tables.session.createDataFrame([], table.schema)


@cache
def _readers() -> Counter[str]:
    """How many tables and steps read each step, also through views."""
    found: Counter[str] = Counter()

    def read_by(reader: str) -> None:
        for name in TABLES[reader].reads:
            if name in TABLES and TABLES[name].kind is TableKind.STEP:
                found[name] += 1
            elif name in TABLES and TABLES[name].kind is not TableKind.TABLE:
                read_by(name)

    for name, table in TABLES.items():
        if table.kind in (TableKind.TABLE, TableKind.STEP):
            read_by(name)
    return found
