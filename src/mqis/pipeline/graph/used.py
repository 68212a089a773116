"""The input that is used: without strangers' journals, exports of other servers, repeated records.

``evidence`` says what is left out and why.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.graph.registry import step, view
from mqis.pipeline.transforms.records import each_once

CLOCKS = (EvidenceKind.CLOCK_AHEAD.value, EvidenceKind.CLOCK_BEHIND.value)
_UNUSED = (EvidenceKind.STRANGER.value, EvidenceKind.MISNAMED_EXPORT.value)


@step
def repeated_files(segments: DataFrame) -> DataFrame:
    """(file): copies of other segments. A stream reads them, too."""
    return segments.filter("kept is not null").select("file")


@view
def original_records(records: DataFrame, repeated_files: DataFrame) -> DataFrame:
    """The records that no copy of a file has brought."""
    return records.join(F.broadcast(repeated_files), "file", "left_anti")


@step
def overlapping_servers(original_records: DataFrame) -> DataFrame:
    """The servers with files that repeat records without being copies of each other: (server)."""
    spans = original_records.groupBy("server", "server_id", "file").agg(
        F.min("lsn").alias("first"), F.max("lsn").alias("last")
    )
    in_order = Window.partitionBy("server", "server_id").orderBy("first", "last")
    before = spans.select("server", "first", F.lag("last").over(in_order).alias("before"))
    return before.filter("before >= first").select("server").distinct()


@view
def single_records(original_records: DataFrame, overlapping_servers: DataFrame) -> DataFrame:
    """Each record once."""
    twice = F.broadcast(overlapping_servers)
    repeated = each_once(original_records.join(twice, "server", "left_semi"))
    return original_records.join(twice, "server", "left_anti").unionByName(repeated)


@step
def unused_files(evidence: DataFrame) -> DataFrame:
    """(file): exports that are not used; of a stranger's journal, its directory."""
    return evidence.filter(F.col("kind").isin(*_UNUSED)).select("file").distinct()


@step
def strange_journals(segments: DataFrame, journals: DataFrame) -> DataFrame:
    """(server, server_id): the journals of servers that no directory knows."""
    listed = segments.filter("server_id is not null").select("server", "server_id").distinct()
    return listed.join(journals.select("server", "server_id"), ["server", "server_id"], "left_anti")


@view
def used_records(single_records: DataFrame, strange_journals: DataFrame) -> DataFrame:
    strange = F.broadcast(strange_journals)
    return single_records.join(strange, ["server", "server_id"], "left_anti")


@view
def used_objects(objects: DataFrame, unused_files: DataFrame) -> DataFrame:
    names = (name for name in schemas.DIRECTORY.fieldNames() if name != "error")
    readable = objects.filter("error is null").select(*names)
    return readable.join(F.broadcast(unused_files), "file", "left_anti")


@view
def used_partitions(partitions: DataFrame, unused_files: DataFrame) -> DataFrame:
    return partitions.join(F.broadcast(unused_files), "file", "left_anti")


@step
def wrong_clocks(evidence: DataFrame) -> DataFrame:
    """(server): the servers from whose times no lag can be computed."""
    return evidence.filter(F.col("kind").isin(*CLOCKS)).select("server").distinct()
