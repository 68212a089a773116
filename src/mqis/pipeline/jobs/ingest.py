"""Ingest: journals, exports and captures become the bronze tables ``records``, ``errors``,
``objects``, ``partitions`` and ``packets``. Everything else is computed from these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas, sources
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.jobs.snapshots import snapshots
from mqis.pipeline.session import PipelineError
from mqis.pipeline.sources.capture import capture_files
from mqis.pipeline.sources.directory import export_files
from mqis.pipeline.sources.files import paths_in
from mqis.pipeline.sources.journal import PATTERN
from mqis.pipeline.tables import TableDirectory


@dataclass(frozen=True, slots=True)
class Ingested:
    records: int
    objects: int
    servers: int
    errors: int
    packets: int = 0


def ingest(
    tables: TableDirectory, journals: str = "", exports: str = "", captures: str = ""
) -> Ingested:
    """Reads what is given into tables; tables of other inputs stay as they are.

    Each argument is a file or directory, or several with commas.
    """
    if not (journals or exports or captures):
        raise PipelineError("nothing to read: give --journals, --exports or --captures")
    if journals:
        paths_in({"path": journals}, PATTERN, "journal segments")
    if exports:
        export_files({"path": exports})
    if captures:
        capture_files({"path": captures})
    errors: list[DataFrame] = []
    try:
        if journals:
            errors.append(_journals(tables, journals))
            errors += [_as_errors(rows, "snapshot") for rows in snapshots(tables, journals)]
        if exports:
            errors += _exports(tables, exports)
        if captures:
            errors.append(_captures(tables, captures))
        read_again = ["journal", "snapshot"] * bool(journals) + ["export"] * bool(exports)
        errors += _other_errors(tables, read_again + ["capture"] * bool(captures))
        found = errors[0]
        for more in errors[1:]:
            found = found.unionByName(more)
        tables.write("errors", found.coalesce(1))
    except SPARK_ERRORS as error:
        raise PipelineError(explained(error)) from error
    return _count(tables)


def _journals(tables: TableDirectory, path: str) -> DataFrame:
    session = tables.session
    records = sources.journal(session, path, [*schemas.RECORDS.fieldNames(), "error"])
    tables.write("records", records.filter("error is null").drop("error"), by=["server"])
    columns = ["server", "file", "offset", "length", "error"]
    damage = sources.journal(session, path, columns).filter("error is not null")
    return _as_errors(damage, "journal")


def _exports(tables: TableDirectory, path: str) -> list[DataFrame]:
    session = tables.session
    # Lines that cannot be read stay in the table, so that exports are parsed only once.
    objects = tables.write("objects", sources.directory(session, path), by=["server"])
    partitions = sources.directory(session, path, rows="partitions")
    tables.write("partitions", partitions.filter("error is null").drop("error").coalesce(1))
    return [_as_errors(objects.filter("error is not null"), "export")]


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


def _captures(tables: TableDirectory, path: str) -> DataFrame:
    """Writes ``packets`` and returns their errors, which stay in ``packets`` as well."""
    packets = tables.write("packets", sources.capture(tables.session, path))
    unread = packets.filter("error is not null").withColumn("server", F.lit(None).cast("string"))
    return _as_errors(unread, "capture")


def _other_errors(tables: TableDirectory, read_again: list[str]) -> list[DataFrame]:
    """Errors from earlier runs, for inputs that this run does not read again."""
    if not tables.has("errors"):
        return []
    return [tables.read("errors").filter(~F.col("source").isin(read_again))]


def _count(tables: TableDirectory) -> Ingested:
    def by_server(name: str, frame: Callable[[], DataFrame]) -> dict[str, int]:
        rows = frame().groupBy("server").count().collect() if tables.has(name) else []
        return {row["server"]: row["count"] for row in rows}

    def counted(name: str) -> int:
        return tables.read(name).count() if tables.has(name) else 0

    records = by_server("records", lambda: tables.read("records"))
    objects = by_server("objects", lambda: objects_of(tables))
    return Ingested(
        sum(records.values()),
        sum(objects.values()),
        len(records.keys() | objects.keys()),
        counted("errors"),
        counted("packets"),
    )


def objects_of(tables: TableDirectory) -> DataFrame:
    """The table ``objects`` without the lines that could not be read."""
    return tables.read("objects").filter("error is null").drop("error")


def empty(session: SparkSession, name: str) -> DataFrame:
    """An empty table in place of a bronze table that was not ingested."""
    schema = {"records": schemas.RECORDS, "errors": schemas.ERRORS}[name]
    return session.createDataFrame([], schema)
