"""Builds tables of the graph one after the other: the driver behind ``mqis pipeline``.

A table of a directory is made only if something that it depends on is not as it was: input, tables
that it reads, or code. Of one that is made file by file, only the rows of new files are read
(``mqis.pipeline.layers``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame

from mqis.pipeline.columns import described
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.inputs import FileSource, Sources
from mqis.pipeline.layers import InputFile, LayerPlan, MadeOf
from mqis.pipeline.registry import TableDefinition
from mqis.pipeline.session import code_digest, is_one_task
from mqis.pipeline.sources import Only
from mqis.pipeline.tables import TableDirectory, TableStore
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


@dataclass(frozen=True, slots=True)
class FilesRead:
    """How many of the input files of a table were read, and how many there are."""

    read: int
    files: int


class TableBuilder:
    """Makes tables from sources, from tables that are stored, and from each other.

    Every table and step is made at most once; leaving the ``with`` block frees what was cached.
    With ``anew`` nothing is kept of what is stored.
    """

    def __init__(
        self, tables: TableStore, sources: Sources | None = None, *, anew: bool = False
    ) -> None:
        self._tables = tables
        self._sources = sources or {}
        self._anew = anew
        self._made: dict[str, DataFrame] = {}
        self._digests: dict[str, str] = {}
        #: Of the tables that are made file by file.
        self.files_read: dict[str, FilesRead] = {}
        #: True if the rows of such a table could not be kept: other code made them.
        self.began_anew = False
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
                with named_jobs(self._tables.session, f"table {name}"):
                    digest = self._digest_of(table)
                    self._made[name] = self._up_to_date(table, digest)
                self._digests[name] = digest
                self.written.add(name)

    def frame(self, name: str) -> DataFrame:
        """What a function of the graph returns; a table as it is stored, empty if it is not."""
        if name not in self._made:
            self._made[name] = self._stored(name)
        return self._made[name]

    def _has(self, name: str) -> bool:
        return name in self._sources or (name in TABLES and self._tables.has(name))

    def _make(self, name: str, only: Only = None) -> DataFrame:
        """What a function returns; with ``only``, of the rows of some input files."""
        table = TABLES[name]
        return table.make(**{read: self._read(read, only) for read in table.reads})

    def _read(self, name: str, only: Only) -> DataFrame | None:
        if name in TABLES:
            kind = TABLES[name].kind
            if only is not None and kind is TableKind.STREAM:
                return self._make(name, only)
            found = self.frame(name)
            return in_one_task(found) if kind is TableKind.TABLE else found
        if name not in self._sources:
            return None
        source = self._sources[name]
        return in_one_task(source(only) if isinstance(source, FileSource) else source())

    # --- what is new ------------------------------------------------------------------------------

    def _up_to_date(self, table: TableDefinition, digest: str) -> DataFrame:
        """The stored table, made as far as it is not what it would be."""
        assert table.schema is not None
        before = MadeOf() if self._anew else self._tables.made_of(table.name)
        if digest and before.digest == digest:
            self._count(table, 0)
            return self._tables.read(table.name)
        if table.files and isinstance(self._tables, TableDirectory):
            return self._extended(table, self._tables, before, digest)
        self._count(table, None)
        made = described(self._make(table.name), table.schema)
        return self._tables.write(table.name, made, by=table.by, digest=digest)

    def _extended(
        self, table: TableDefinition, tables: TableDirectory, before: MadeOf, digest: str
    ) -> DataFrame:
        """Reads the input files of a table that are new, and keeps the rows of the others."""
        assert table.schema is not None
        layers = before.layers if before.code == code_digest() else {}
        self.began_anew |= not (layers or self._anew) and tables.has(table.name)
        sizes = tables.layer_sizes(table.name) if layers else {}
        plan = LayerPlan.of(layers, self._files_of(table), sizes)
        # Also the first time: a file that has come since is one of the next run.
        new = described(self._make(table.name, plan.read), table.schema)
        self._count(table, len(plan.read))
        made = MadeOf(digest, code_digest(), plan.layers)
        return tables.extend(table.name, new, plan, made, by=table.by)

    def _files_of(self, table: TableDefinition) -> dict[str, InputFile]:
        source = self._sources.get(table.files)
        if isinstance(source, FileSource):
            return {name: InputFile(stamp) for name, stamp in source.stamps.items()}
        rows = self.frame(table.files).collect()
        return {row["file"]: InputFile(row["stamp"], row["open"]) for row in rows}

    def _count(self, table: TableDefinition, read: int | None) -> None:
        source = self._sources.get(table.files)
        if isinstance(source, FileSource):
            files = len(source.stamps)
            self.files_read[table.name] = FilesRead(files if read is None else read, files)

    def _digest_of(self, table: TableDefinition) -> str:
        """A digest of all that a table depends on; empty if that cannot be told."""
        parts = [self._digest(name) for name in table.reads]
        if not all(parts):
            return ""
        return _digest(code_digest(), table.name, *parts)

    def _digest(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = self._digest_of_input(name)
        return self._digests[name]

    def _digest_of_input(self, name: str) -> str:
        if name in self._sources:
            source = self._sources[name]
            if not isinstance(source, FileSource):
                return ""
            return _digest(name, *(f"{file} {s}" for file, s in sorted(source.stamps.items())))
        if name not in TABLES:
            return _digest(name)
        if TABLES[name].kind is not TableKind.TABLE:
            return self._digest_of(TABLES[name])
        return self._tables.made_of(name).digest if self._tables.has(name) else _digest(name)

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


def _digest(*parts: str) -> str:
    made = blake2b(digest_size=16)
    for part in parts:
        made.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return made.hexdigest()
