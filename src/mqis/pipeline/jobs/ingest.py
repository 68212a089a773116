"""Ingest: journals and exports become the bronze tables ``records``, ``errors``, ``objects`` and
``partitions``. Everything else is computed from these."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas, sources
from mqis.pipeline.failures import explained
from mqis.pipeline.session import PipelineError
from mqis.pipeline.sources.directory import export_files
from mqis.pipeline.sources.files import paths_in
from mqis.pipeline.sources.journal import PATTERN
from mqis.pipeline.tables import Tables


@dataclass(frozen=True, slots=True)
class Ingested:
    records: int
    objects: int
    servers: int
    errors: int


def ingest(tables: Tables, journals: str = "", exports: str = "") -> Ingested:
    """Read what is given, each a directory or several with commas; what is not stays as it is."""
    if not journals and not exports:
        raise PipelineError("nothing to read: name journals, exports or both")
    if journals:
        paths_in({"path": journals}, PATTERN, "journal segments")
    if exports:
        export_files({"path": exports})
    errors: list[DataFrame] = []
    try:
        if journals:
            errors.append(_journals(tables, journals))
        if exports:
            errors += _exports(tables, exports)
        for kept in _other_errors(tables, journals=bool(journals), exports=bool(exports)):
            errors.append(kept)
        found = errors[0]
        for more in errors[1:]:
            found = found.unionByName(more)
        tables.write("errors", found.coalesce(1))
    except PySparkException as error:
        raise PipelineError(explained(error)) from error
    return _count(tables)


def _journals(tables: Tables, path: str) -> DataFrame:
    session = tables.session
    records = sources.journal(session, path, [*schemas.RECORDS.fieldNames(), "error"])
    tables.write("records", records.filter("error is null").drop("error"), by=["server"])
    columns = ["server", "file", "offset", "length", "error"]
    damage = sources.journal(session, path, columns).filter("error is not null")
    return _as_errors(damage, "journal")


def _exports(tables: Tables, path: str) -> list[DataFrame]:
    session = tables.session
    objects = sources.directory(session, path)
    tables.write("objects", objects.filter("error is null").drop("error"), by=["server"])
    partitions = sources.directory(session, path, rows="partitions")
    tables.write("partitions", partitions.filter("error is null").drop("error").coalesce(1))
    unread = sources.directory(session, path, ["server", "file", "offset", "error"])
    return [_as_errors(unread.filter("error is not null"), "export")]


def _as_errors(rows: DataFrame, source: str) -> DataFrame:
    length = F.col("length") if "length" in rows.columns else F.lit(None).cast("long")
    return rows.select(
        F.lit(source).alias("source"),
        "server",
        "file",
        "offset",
        length.alias("length"),
        F.col("error").alias("reason"),
    )


def _other_errors(tables: Tables, *, journals: bool, exports: bool) -> list[DataFrame]:
    """What an earlier run found in what this one does not read again."""
    if (journals and exports) or not tables.has("errors"):
        return []
    stays = "export" if journals else "journal"
    return [tables.read("errors").filter(F.col("source") == stays)]


def _count(tables: Tables) -> Ingested:
    def counted(name: str) -> int:
        return tables.read(name).count() if tables.has(name) else 0

    known: set[str] = set()
    for name in ("records", "objects"):
        if tables.has(name):
            known |= {row.server for row in tables.read(name).select("server").distinct().collect()}
    return Ingested(counted("records"), counted("objects"), len(known), counted("errors"))


def empty(session: SparkSession, name: str) -> DataFrame:
    """A bronze table that was not ingested, without rows."""
    schema = {"records": schemas.RECORDS, "errors": schemas.ERRORS}[name]
    return session.createDataFrame([], schema)
