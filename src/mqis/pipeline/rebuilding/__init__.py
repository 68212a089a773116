"""Rebuild: an export of the directory as it was at a time, or at a number of one partition.

Each partition is rebuilt from its authority's journal: from the first record on or, if old records
have been removed, from the newest snapshot before that time on. What another server made before,
such as the PEC for a new site, is given as the authority got it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.files import write_whole
from mqis.pipeline.readable import used_input
from mqis.pipeline.rebuilding.authorities import authorities, replicated
from mqis.pipeline.rebuilding.beginnings import Beginnings, Moment
from mqis.pipeline.rebuilding.completeness import PastPartition, RebuildCompleteness
from mqis.pipeline.tables import TableStore
from mqis.pipeline.transforms.rebuild import folded, lines, local_changes, snapshot_changes
from mqis.protocol.directory.export_format import ExportHeader, format_header, parse_entry, sealed
from mqis.protocol.directory.objects import DirectoryObject, Partition
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Rebuilt:
    lines: int
    #: By partition identifier: the last sequence number in the export.
    partitions: dict[str, int]
    #: By identifier of each partition that was rebuilt from a snapshot: the snapshot's LSN.
    snapshots: dict[str, int]
    #: Doubts: altered journals, wrong clocks, journals that end before the given time.
    warnings: tuple[str, ...] = ()


def rebuild(
    tables: TableStore,
    out: Path,
    *,
    at_time: datetime | None = None,
    partition: Guid | None = None,
    at_seq: int | None = None,
) -> Rebuilt:
    """Writes the export to ``out``. Takes a time, or a partition with a sequence number."""
    if (at_time is None) == (at_seq is None) or (at_seq is not None and partition is None):
        raise MqisError(
            "a rebuild needs either a time, or a partition and one of its sequence numbers"
        )
    records = used_input(tables, "records")
    if partition is not None:
        records = records.filter(F.col("partition") == F.lit(bytearray(partition.raw)))
    changes = local_changes(records).persist()
    moment = Moment(at_time, at_seq)
    try:
        past = _past_states(tables, changes, moment, partition)
        known = RebuildCompleteness(tables, changes, moment)
        for one in past.values():
            known.check(one)
        owners = authorities(tables, records, changes, past, moment)
        kept = list(_without_purged(_lines(tables, changes, past, owners), past))
    finally:
        changes.unpersist()
    states = tuple(_partition(past[key], owners[key]) for key in sorted(past))
    header = ExportHeader(_enterprise(kept), states, len(kept) + 1)
    write_whole(out, "\n".join([*sealed([format_header(header), *kept]), ""]))
    return Rebuilt(
        len(kept),
        {str(state.id): state.last_seq.value for state in states},
        {str(Guid(key)): one.base.lsn for key, one in past.items() if one.base is not None},
        tuple(known.warnings(past.values())),
    )


def _past_states(
    tables: TableStore, changes: DataFrame, moment: Moment, only: Guid | None
) -> dict[bytes, PastPartition]:
    """The past state of every partition, by its identifier."""
    known = Beginnings(tables)
    summaries = {
        bytes(row["partition"]): row.asDict() for row in _summaries(changes, moment).collect()
    }
    wanted = summaries.keys() | {s.partition for s in known.snapshots}
    if only is not None:
        wanted &= {only.raw}
    exported = _purged_numbers(tables)
    found: dict[bytes, PastPartition] = {}
    for key in wanted:
        row = summaries.get(key, {})
        base = known.of(key, row.get("maker") or "", row.get("first") or 0, moment)
        based = base.last_seq if base else 0
        last = max(row.get("last") or 0, based)
        owner = row.get("owner") or (base.server if base else "")
        if owner:
            # A purge comes after a change, so only the next change shows it, or an export or
            # snapshot that was made before the next change.
            purged = row.get("purged_later")
            if purged is None:
                purged = max(row.get("purged") or 0, base.purged_seq if base else 0)
                purged = max(purged, exported.get((key, last), 0))
            end = max(row.get("end") or 0, based)
            end_lsn = row.get("end_lsn") or (base.lsn if base else 0)
            # Without a snapshot, ``Beginnings`` has judged what comes before the first change.
            first = (row.get("first") or 0) if base else 0
            found[key] = PastPartition(key, owner, last, purged, base, first, end, end_lsn)
    if not found:
        raise MqisError(
            "there is no change up to that point: the journals begin later; choose a later one"
        )
    return found


def _summaries(changes: DataFrame, moment: Moment) -> DataFrame:
    """Each partition's state at ``moment``, as far as its changes show it."""
    if moment.time is not None:
        until = F.col("time") <= F.lit(moment.time)
    else:
        until = F.col("seq") <= F.lit(moment.seq)
    before, behind = F.when(until, F.col("seq")), F.when(~until, F.col("seq"))
    return changes.groupBy("partition").agg(
        F.min_by("server", "seq").alias("maker"),
        F.min("seq").alias("first"),
        F.max("seq").alias("end"),
        F.max_by("lsn", "seq").alias("end_lsn"),
        F.max_by("server", before).alias("owner"),
        F.max(before).alias("last"),
        F.max(F.when(until, F.col("purged_seq"))).alias("purged"),
        F.min_by("purged_seq", behind).alias("purged_later"),
    )


def _purged_numbers(tables: TableStore) -> dict[tuple[bytes, int], int]:
    """Purged numbers by (partition, last number), from the authorities' exports and snapshots."""
    found: dict[tuple[bytes, int], int] = {}
    for name in ("partitions", "snapshot_partitions"):
        if tables.has(name):
            held = used_input(tables, name) if name == "partitions" else tables.read(name)
            own = held.filter(F.lower("owner") == F.lower("server"))
            for row in own.select("partition", "last_seq", "purged_seq").collect():
                key = bytes(row["partition"]), row["last_seq"]
                found[key] = max(found.get(key, 0), row["purged_seq"])
    return found


def _lines(
    tables: TableStore,
    changes: DataFrame,
    past: Mapping[bytes, PastPartition],
    owners: Mapping[bytes, str],
) -> DataFrame:
    """The lines of all partitions, in order, as ``owners`` had them."""
    session = tables.session
    points = [
        (bytearray(key), one.last_seq, one.base.last_seq if one.base else -1, owners[key])
        for key, one in past.items()
    ]
    known = session.createDataFrame(points, "partition binary, at long, base long, owner string")
    later = changes.join(F.broadcast(known), "partition").filter("seq > base")
    is_own = F.lower("server") == F.lower("owner")
    made = folded(later.filter(is_own)).unionByName(replicated(folded(later.filter(~is_own))))
    bases = [one.base for one in past.values() if one.base is not None]
    for base_is_own in (True, False):
        rows = [
            (base.server, base.lsn, bytearray(base.partition))
            for base in bases
            if base_is_own is (base.server.lower() == owners[base.partition].lower())
        ]
        if not rows:
            continue
        chosen = session.createDataFrame(rows, "server string, lsn long, partition binary")
        held = snapshot_changes(
            tables.read("snapshots").join(
                F.broadcast(chosen), ["server", "lsn", "partition"], "left_semi"
            )
        )
        made = made.unionByName(held if base_is_own else replicated(held))
    found = lines(made, known.select("partition", "at")).orderBy("place", "key")
    return found.select("partition", "seq", "line")


def _partition(one: PastPartition, owner: str) -> Partition:
    purged = SequenceNumber(one.purged_seq)
    return Partition(Guid(one.partition), owner, SequenceNumber(one.last_seq), purged, purged)


def _without_purged(found: DataFrame, past: Mapping[bytes, PastPartition]) -> Iterator[str]:
    """Leaves out the tombstones that had been purged."""
    for row in found.toLocalIterator():
        is_tombstone = row["line"].startswith('{"type":"deleted"')
        if not is_tombstone or row["seq"] > past[bytes(row["partition"])].purged_seq:
            yield row["line"]


def _enterprise(kept: list[str]) -> str | None:
    first = parse_entry(kept[0], 2) if kept else None
    if isinstance(first, DirectoryObject) and first.type is ObjectType.ENTERPRISE:
        return first.path
    return None
