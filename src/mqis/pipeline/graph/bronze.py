"""Journals, exports and captures as tables; every other table is computed from these.

The parameters that are no tables are sources: ``mqis.pipeline.inputs`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.graph.facts import Facts, facts_by, judged_by_key
from mqis.pipeline.registry import step, stream, table
from mqis.pipeline.sources.inventory import SegmentFile, copies_among
from mqis.pipeline.transforms.expressions import gathered, shaped
from mqis.pipeline.transforms.records import each_once
from mqis.pipeline.transforms.records import repeats as repeated
from mqis.wire.guid import Guid

#: What is told of a copy: where it is, and what its header says.
_OF_COPIES = ("file", "size", "server", "server_id", "number", "first_lsn", "header", "kept")


@table(schemas.READ_SEGMENTS, requires="checked_segments", files="checked_segments")
def read_segments(checked_segments: DataFrame) -> DataFrame:
    """The segment files as tasks read them; each is read once."""
    return checked_segments


@table(schemas.DIGESTS, requires="snapshot_files", files="snapshot_files")
def snapshot_digests(snapshot_files: DataFrame) -> DataFrame:
    """The SHA-256 of snapshots, to which headers of segments are compared."""
    return snapshot_files


@step
def copied_segments(read_segments: DataFrame) -> DataFrame:
    """(file, kept): files that others contain. Tasks compare the digests of those in question."""
    header = ("server", "server_id", "number", "first_lsn")
    alike = read_segments.filter("header is not null").withColumn(
        "same", F.concat_ws("/", *(F.hex(name) for name in header))
    )
    several = alike.groupBy("same").agg(F.count("*").alias("files")).filter("files > 1")
    asked = alike.join(several, "same").select("same", "file", "size", *header, "digest")
    return judged_by_key(facts_by("same", files=asked), _copies, schemas.COPIES)


def _copies(known: Facts) -> Iterator[dict[str, Any]]:
    listed = (
        SegmentFile(
            *(row["file"], row["size"], row["server"], Guid(row["server_id"])),
            *(row["number"], row["first_lsn"]),
            digest=row["digest"],
        )
        for row in known["files"]
    )
    for copy in copies_among(listed):
        yield {"file": copy.path, "kept": copy.kept}


@table(schemas.SEGMENTS, requires="journal")
def segments(
    read_segments: DataFrame, copied_segments: DataFrame, snapshot_digests: DataFrame
) -> DataFrame:
    """The segment files, with copies of others, whose records do not count."""
    of_snapshots = snapshot_digests.select(
        F.col("file").alias("snapshot"), F.col("digest").alias("snapshot_digest")
    )
    each = read_segments.join(F.broadcast(of_snapshots), "snapshot", "left")
    told = each.join(copied_segments, "file", "left")
    original = F.col("kept").isNull()
    names = schemas.SEGMENTS.fieldNames()
    own = {name: F.when(original, F.col(name)) for name in names if name not in _OF_COPIES}
    return shaped(told, names, **own)


@stream(requires="journal")
def read_records(journal: DataFrame) -> DataFrame:
    """The records of all journals as they were read: a table that a stream can append to."""
    return journal.filter("error is null").select(*schemas.RECORDS.fieldNames())


@step
def overlapping_servers(segments: DataFrame) -> DataFrame:
    """The servers with files that repeat records without being copies of each other: (server)."""
    spans = segments.filter("kept is null and lowest_lsn is not null")
    in_order = Window.partitionBy("server", "server_id").orderBy("lowest_lsn", "highest_lsn")
    before = spans.withColumn("before", F.lag("highest_lsn").over(in_order))
    return before.filter("before >= lowest_lsn").select("server").distinct()


@step
def segment_contents(segments: DataFrame, overlapping_servers: DataFrame) -> DataFrame:
    """(file, stamp, open): what the records depend on that a segment file gives, and whether it is
    the last one of its journal, to which the server adds records.

    It is the content of the file, and whether that counts. If files of a server overlap, it is that
    of all of them.
    """
    content = F.concat_ws(" ", F.hex("digest"), F.col("kept").isNull().cast("string"))
    told = segments.select("file", "server", "server_id", "number", content.alias("stamp"))
    last = told.groupBy("server", "server_id").agg(F.max("number").alias("last"))
    each = told.join(last, ["server", "server_id"], "left").join(
        overlapping_servers.withColumn("overlaps", F.lit(True)), "server", "left"
    )
    of_all = F.xxhash64(
        F.sort_array(F.collect_list(F.struct("file", "stamp")).over(Window.partitionBy("server")))
    )
    overlapping = each.filter("overlaps").withColumn("stamp", of_all.cast("string"))
    found = each.filter("overlaps is null").unionByName(overlapping)
    is_open = F.coalesce(F.col("number") == F.col("last"), F.lit(False))
    return found.select("file", "stamp", is_open.alias("open"))


def _originals(read_records: DataFrame, segments: DataFrame) -> DataFrame:
    """The records without those of copies of files, which a stream reads, too."""
    copies = segments.filter("kept is not null").select("file")
    return read_records.join(copies, "file", "left_anti")


@table(schemas.RECORDS, requires="journal", by=("server",), files="segment_contents")
def records(
    read_records: DataFrame, segments: DataFrame, overlapping_servers: DataFrame
) -> DataFrame:
    """Each record once."""
    originals, twice = _originals(read_records, segments), F.broadcast(overlapping_servers)
    single = originals.join(twice, "server", "left_anti").select(*schemas.RECORDS.fieldNames())
    return single.unionByName(each_once(originals.join(twice, "server", "left_semi")))


@table(schemas.REPEATS, requires="journal", files="segment_contents")
def repeats(
    read_records: DataFrame, segments: DataFrame, overlapping_servers: DataFrame
) -> DataFrame:
    """The records that several files have with one number and that are not in ``records``."""
    twice = F.broadcast(overlapping_servers)
    found = repeated(_originals(read_records, segments).join(twice, "server", "left_semi"))
    return gathered(found)


@table(schemas.SNAPSHOTS, requires="snapshot_lines", files="snapshot_lines")
def snapshots(snapshot_lines: DataFrame, snapshot_places: DataFrame) -> DataFrame:
    return _placed(snapshot_lines, snapshot_places, schemas.SNAPSHOTS)


@table(schemas.SNAPSHOT_PARTITIONS, requires="snapshot_lines", files="snapshot_lines")
def snapshot_partitions(snapshot_states: DataFrame, snapshot_places: DataFrame) -> DataFrame:
    return gathered(_placed(snapshot_states, snapshot_places, schemas.SNAPSHOT_PARTITIONS))


@table(schemas.ERRORS, requires="snapshot_lines", files="snapshot_lines")
def snapshot_errors(snapshot_lines: DataFrame, snapshot_places: DataFrame) -> DataFrame:
    """The lines of snapshots that cannot be read."""
    lines = snapshot_lines.select("file", "offset", "error").filter("error is not null")
    return shaped(
        lines.join(F.broadcast(snapshot_places), "file"),
        schemas.ERRORS.names,
        source=F.lit("snapshot"),
        length=F.lit(None).cast("long"),
        reason=F.col("error"),
    )


def _placed(rows: DataFrame, places: DataFrame, schema: StructType) -> DataFrame:
    """Adds the server in whose journal's directory the file is, and the record it stands after."""
    names = schema.fieldNames()
    own = rows.filter("error is null").select(*(n for n in names if n not in ("server", "lsn")))
    return own.join(F.broadcast(places), "file").select(*names)


@table(schemas.DIRECTORY, requires="exported_objects", by=("server",), files="exported_objects")
def objects(exported_objects: DataFrame) -> DataFrame:
    """The lines of exports. Those that cannot be read are kept, so that files are parsed once."""
    return exported_objects


@table(schemas.READ_PARTITIONS, requires="exported_objects", files="exported_objects")
def partitions(exported_partitions: DataFrame) -> DataFrame:
    names = schemas.READ_PARTITIONS.fieldNames()
    return gathered(exported_partitions.filter("error is null").select(*names))


@table(schemas.CAPTURE, requires="captured", files="captured")
def packets(captured: DataFrame) -> DataFrame:
    return captured


@table(schemas.ERRORS)
def errors(
    segments: DataFrame, objects: DataFrame, packets: DataFrame, snapshot_errors: DataFrame
) -> DataFrame:
    """Everything in the input that could not be read."""
    damage = segments.select("server", "file", F.explode("damage").alias("place")).select(
        "server", "file", "place.offset", "place.length", F.col("place.reason").alias("error")
    )
    long, text = F.lit(None).cast("long"), F.lit(None).cast("string")
    found = [
        _as_errors(damage, "journal"),
        _as_errors(objects.withColumn("length", long), "export"),
        _as_errors(packets.withColumn("length", long).withColumn("server", text), "capture"),
        snapshot_errors.select(*schemas.ERRORS.fieldNames()),
    ]
    return gathered(reduce(lambda all_, more: all_.unionByName(more), found))


def _as_errors(rows: DataFrame, source: str) -> DataFrame:
    unread = rows.filter("error is not null")
    return shaped(unread, schemas.ERRORS.names, source=F.lit(source), reason=F.col("error"))
