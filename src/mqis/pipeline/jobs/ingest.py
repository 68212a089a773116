"""Ingest: journals, exports and captures become the bronze tables ``records``, ``segments``,
``errors``, ``objects``, ``partitions`` and ``packets``. Everything else is computed from these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas, sources
from mqis.pipeline.evidence.extents import conflicting, inventories
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.jobs.evidence import JournalContent, evidence, read_journals
from mqis.pipeline.jobs.snapshots import snapshots
from mqis.pipeline.session import PipelineError
from mqis.pipeline.sources.capture import capture_files
from mqis.pipeline.sources.checks import header_row
from mqis.pipeline.sources.directory import export_files
from mqis.pipeline.sources.files import paths_in
from mqis.pipeline.sources.inventory import JournalFiles, RepeatedSegment, journal_files
from mqis.pipeline.sources.journal import PATTERN
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.records import conflicts, each_once
from mqis.pipeline.trusted import readable_objects


@dataclass(frozen=True, slots=True)
class Ingested:
    records: int
    objects: int
    servers: int
    errors: int
    packets: int = 0
    #: Findings about the input itself.
    evidence: int = 0


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
    found: JournalContent | None = None
    try:
        if journals:
            found, damage = _journals(tables, journals)
            errors.append(damage)
            errors += [_as_errors(rows, "snapshot") for rows in snapshots(tables, journals)]
        if exports:
            errors += _exports(tables, exports)
        if captures:
            errors.append(_captures(tables, captures))
        read_again = ["journal", "snapshot"] * bool(journals) + ["export"] * bool(exports)
        errors += _other_errors(tables, read_again + ["capture"] * bool(captures))
        tables.write(
            "errors", reduce(lambda all_, more: all_.unionByName(more), errors).coalesce(1)
        )
        if found is None:
            found = _content(tables)
        if journals or exports:
            evidence(tables, found)
    except SPARK_ERRORS as error:
        raise PipelineError(explained(error)) from error
    return _count(tables, found)


def _journals(tables: TableDirectory, path: str) -> tuple[JournalContent, DataFrame]:
    """Writes ``records`` and ``segments``; returns the content and the damage."""
    session = tables.session
    files = journal_files(path)
    names = [*schemas.RECORDS.fieldNames(), "error"]
    records = sources.journal(session, path, names, without=files.left_out)
    tables.write("records", records.filter("error is null").drop("error"), by=["server"])
    checked = sources.segments(session, path, without=files.left_out)
    checked = checked.withColumn("kept", F.lit(None).cast("string"))
    copies = session.createDataFrame(list(map(_copy, files.repeated)), schemas.SEGMENTS)
    segments = tables.write("segments", checked.unionByName(copies) if files.repeated else checked)
    content = _each_once(tables, files, read_journals(tables.read("records")))
    damage = segments.select("server", "file", F.explode("damage").alias("place"))
    damage = damage.select("server", "file", "place.*").withColumnRenamed("reason", "error")
    return content, _as_errors(damage, "journal")


def _copy(copy: RepeatedSegment) -> tuple[object, ...]:
    """The row of a segment that is not read."""
    assert copy.segment.header is not None
    row = header_row(copy.segment.header)
    row |= {"file": copy.segment.path, "size": copy.segment.size, "kept": copy.kept}
    return tuple(row.get(name) for name in schemas.SEGMENTS.fieldNames())


def _each_once(
    tables: TableDirectory, files: JournalFiles, content: JournalContent
) -> JournalContent:
    """Removes records that files repeat without being copies of each other, which is rare."""
    journals = inventories(files.segments, content.extents, ())
    overlapping = sorted({j.server for j in journals.values() if j.overlaps})
    if not overlapping:
        return content
    records = tables.read("records")
    twice = F.col("server").isin(overlapping)
    wrong = conflicts(records.filter(twice)).collect()
    once = records.filter(~twice).unionByName(each_once(records.filter(twice)))
    content = read_journals(tables.write("records", once, by=["server"]))
    content.conflicts += [
        conflicting(r["server"], r["first"], r["last"], r["count"]) for r in wrong
    ]
    return content


def _content(tables: TableDirectory) -> JournalContent:
    return read_journals(tables.read("records")) if tables.has("records") else JournalContent()


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


def _count(tables: TableDirectory, content: JournalContent) -> Ingested:
    def counted(name: str) -> int:
        return tables.read(name).count() if tables.has(name) else 0

    objects: dict[str, int] = {}
    if tables.has("objects"):
        rows = readable_objects(tables).groupBy("server").count().collect()
        objects = {row["server"]: row["count"] for row in rows}
    return Ingested(
        sum(extent.records for extent in content.extents.values()),
        sum(objects.values()),
        len(content.servers | objects.keys()),
        counted("errors"),
        counted("packets"),
        counted("evidence"),
    )
