"""The input that is used: without strangers' journals and exports of other servers.

``evidence`` says what is left out and why.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.registry import step, view

CLOCKS = (
    EvidenceKind.CLOCK_AHEAD.value,
    EvidenceKind.CLOCK_BEHIND.value,
    EvidenceKind.CLOCKS_DISAGREE.value,
)
_UNUSED = (
    EvidenceKind.STRANGER.value,
    EvidenceKind.MISNAMED_EXPORT.value,
    EvidenceKind.DUPLICATE_EXPORT.value,
)
#: The columns by which a line of an export is one.
LINE_KEY = ("type", "deleted", "partition", "id")


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
def used_records(records: DataFrame, strange_journals: DataFrame) -> DataFrame:
    return records.join(F.broadcast(strange_journals), ["server", "server_id"], "left_anti")


@step
def doubled_files(evidence: DataFrame) -> DataFrame:
    """(file): exports in which lines stand twice."""
    kind = EvidenceKind.DOUBLED_LINES.value
    return evidence.filter(F.col("kind") == kind).select("file").distinct()


@view
def used_objects(
    objects: DataFrame, unused_files: DataFrame, doubled_files: DataFrame
) -> DataFrame:
    names = [name for name in schemas.DIRECTORY.fieldNames() if name != "error"]
    readable = objects.filter("error is null").select(*names)
    used = readable.join(F.broadcast(unused_files), "file", "left_anti")
    twice = F.broadcast(doubled_files)
    firsts = used.join(twice, "file", "left_semi").groupBy("file", *LINE_KEY)
    once = firsts.agg(F.min_by(F.struct(*names), "offset").alias("line")).select("line.*")
    return used.join(twice, "file", "left_anti").select(*names).unionByName(once.select(*names))


@view
def used_partitions(partitions: DataFrame, unused_files: DataFrame) -> DataFrame:
    return partitions.join(F.broadcast(unused_files), "file", "left_anti")


@step
def wrong_clocks(evidence: DataFrame) -> DataFrame:
    """(server): the servers from whose times no lag can be computed."""
    return evidence.filter(F.col("kind").isin(*CLOCKS)).select("server").distinct()
