"""Rebuild: an export of the directory as it was at a moment, or at a number of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.jobs.ingest import empty
from mqis.pipeline.session import PipelineError
from mqis.pipeline.tables import Tables
from mqis.pipeline.transforms.causes import journals
from mqis.pipeline.transforms.rebuild import lines, local_changes, points_in_time
from mqis.protocol.directory.export import Header, format_header, parse_entry
from mqis.protocol.directory.objects import DirectoryObject, Partition
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Rebuilt:
    lines: int
    #: The number of each partition in it, by the partition's identifier.
    partitions: dict[str, int]


def rebuild(
    tables: Tables,
    out: Path,
    *,
    at_time: datetime | None = None,
    partition: Guid | None = None,
    at_seq: int | None = None,
) -> Rebuilt:
    """Write the export. Give a time, or a partition with a number."""
    if (at_time is None) == (at_seq is None) or (at_seq is not None and partition is None):
        raise PipelineError("rebuild at a time, or at a number of one partition")
    records = tables.read("records")
    if partition is not None:
        records = records.filter(F.col("partition") == F.lit(bytearray(partition.raw)))
    changes = local_changes(records).persist()
    try:
        points = _points(tables, changes, at_time, partition, at_seq)
        states = _states(tables, changes, points)
        found = lines(changes, points).orderBy("place", "key").select("partition", "seq", "line")
        kept = list(_kept(found, {state.id.raw: state.purged_seq.value for state in states}))
    finally:
        changes.unpersist()
    header = Header(_enterprise(kept), tuple(states), len(kept))
    aside = out.with_name(f"{out.name}.part")
    aside.write_text("\n".join([format_header(header), *kept, ""]), encoding="ascii")
    aside.replace(out)
    return Rebuilt(len(kept), {str(state.id): state.last_seq.value for state in states})


def _points(
    tables: Tables,
    changes: DataFrame,
    at_time: datetime | None,
    partition: Guid | None,
    at_seq: int | None,
) -> DataFrame:
    if at_time is not None:
        found = points_in_time(changes, F.lit(at_time))
    else:
        assert partition is not None
        row = [(bytearray(partition.raw), at_seq)]
        found = tables.session.createDataFrame(row, "partition binary, at long")
    return found


def _states(tables: Tables, changes: DataFrame, points: DataFrame) -> list[Partition]:
    """The partitions as they were; ``PipelineError`` where a journal does not reach back."""
    joined = changes.join(F.broadcast(points), "partition")
    until = F.col("seq") <= F.col("at")
    told = joined.groupBy("partition", "at").agg(
        F.max_by("server", "seq").alias("owner"),
        F.max(F.when(until, F.col("seq"))).alias("last"),
        F.count_if(until).alias("changes"),
        # A purge follows a change, so it is the next change that tells of it.
        F.coalesce(
            F.min_by(F.when(~until, F.col("purged_seq")), F.when(~until, F.col("seq"))),
            F.max("purged_seq"),
        ).alias("purged"),
    )
    rows = told.collect()
    _check(tables, {row["owner"] for row in rows})
    if not rows:
        raise PipelineError("there is no change up to that point: the journals begin later")
    return sorted(
        (
            Partition(
                Guid(bytes(row["partition"])),
                row["owner"],
                SequenceNumber(row["last"] or 0),
                SequenceNumber(row["purged"]),
                SequenceNumber(row["purged"]),
            )
            for row in rows
        ),
        key=lambda state: state.id,
    )


def _check(tables: Tables, owners: set[str]) -> None:
    errors = tables.read("errors") if tables.has("errors") else empty(tables.session, "errors")
    whole = journals(tables.read("records"), errors).filter("complete").collect()
    for owner in sorted(owners - {row["server"] for row in whole}):
        raise PipelineError(
            f"the journal of {owner} is damaged or does not reach back to its first record, so "
            "what it held cannot be told"
        )


def _kept(found: DataFrame, purged: dict[bytes, int]) -> Iterator[str]:
    """Tombstones that were purged are not there any more."""
    for row in found.toLocalIterator():
        is_tombstone = row["line"].startswith('{"type":"deleted"')
        if not is_tombstone or row["seq"] > purged[bytes(row["partition"])]:
            yield row["line"]


def _enterprise(kept: list[str]) -> str | None:
    first = parse_entry(kept[0], 2) if kept else None
    if isinstance(first, DirectoryObject) and first.type is ObjectType.ENTERPRISE:
        return first.path
    return None
