"""Starting points of a rebuild: the first record of a journal, or one of its snapshots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.session import PipelineError
from mqis.pipeline.tables import TableDirectory

#: A server that takes over a partition skips twice as many numbers. If the first number is smaller
#: than this, earlier changes are missing.
SKIPPED = 1 << 19


@dataclass(frozen=True, slots=True)
class JournalExtent:
    """The extent of one server's journal, as far as it was ingested."""

    first: int
    last: int
    records: int
    damaged: bool

    @property
    def is_unbroken(self) -> bool:
        return not self.damaged and self.records == self.last - self.first + 1

    @property
    def is_whole(self) -> bool:
        return self.is_unbroken and self.first == 1


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """The state of one partition in one snapshot of its owner."""

    server: str
    lsn: int
    partition: bytes
    last_seq: int
    purged_seq: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The point to go back to: a time, or a sequence number."""

    time: datetime | None = None
    seq: int | None = None


class Beginnings:
    """The journals and snapshots that a rebuild can start from."""

    def __init__(self, tables: TableDirectory) -> None:
        self._tables = tables
        self.held = _read_extents(tables)
        self.snapshots = _read_snapshots(tables)

    def of(
        self, partition: bytes, makers: Collection[str], first_seq: int, moment: Moment
    ) -> PartitionSnapshot | None:
        """Returns the newest snapshot before ``moment``; None if the journals have every change.

        ``makers`` are the servers that made changes of the partition, ``first_seq`` is the number
        of the first change in their journals. Raises ``PipelineError`` if neither a snapshot nor
        the journals reach back to ``moment``.
        """
        mine = [s for s in self.snapshots if s.partition == partition]
        fitting = [s for s in mine if self._continues(s) and self._is_before(s, moment)]
        if fitting:
            return max(fitting, key=lambda s: (s.last_seq, s.lsn))
        short = sorted(name for name in makers if not self._is_whole(name))
        founded = 1 < first_seq < SKIPPED
        if not short and not founded and (makers or not mine):
            return None
        named = short or sorted(makers) or sorted({s.server for s in mine})
        raise PipelineError(self._explain(named[0], mine, first_seq))

    def _is_whole(self, server: str) -> bool:
        held = self.held.get(server)
        return held is not None and held.is_whole

    def _continues(self, snapshot: PartitionSnapshot) -> bool:
        """Returns whether the journal has every record since the snapshot."""
        held = self.held.get(snapshot.server)
        return held is not None and held.is_unbroken and held.first <= snapshot.lsn + 1

    def _is_before(self, snapshot: PartitionSnapshot, moment: Moment) -> bool:
        if moment.seq is not None:
            return snapshot.last_seq <= moment.seq
        assert moment.time is not None
        taken = self._time_of(snapshot)
        return taken is not None and taken <= moment.time

    def _time_of(self, snapshot: PartitionSnapshot) -> datetime | None:
        """The latest time that it can have been taken: that of its last record, or of the next."""
        if snapshot.lsn == 0:
            return datetime.min.replace(tzinfo=UTC)
        times = (self._times.get((snapshot.server, snapshot.lsn + more)) for more in (0, 1))
        return next(filter(None, times), None)

    @cached_property
    def _times(self) -> dict[tuple[str, int], datetime]:
        """The times of the last record before and the first record after each snapshot."""
        near = {(s.server, s.lsn + more) for s in self.snapshots for more in (0, 1)}
        asked = self._tables.session.createDataFrame(sorted(near), "server string, lsn long")
        found = self._tables.read("records").join(F.broadcast(asked), ["server", "lsn"])
        rows = found.select("server", "lsn", F.unix_micros("time").alias("us")).collect()
        return {(r[0], r[1]): datetime.fromtimestamp(r[2] / 1e6, tz=UTC) for r in rows}

    def _explain(self, name: str, mine: list[PartitionSnapshot], first_seq: int) -> str:
        held = self.held.get(name)
        if held is None:
            return f"there is no journal of {name}, so its past cannot be rebuilt; ingest it first"
        if not held.is_unbroken:
            return f"the journal of {name} is damaged or has gaps, so its past cannot be rebuilt"
        known = "it has no snapshots" if not mine else "its snapshots are newer"
        begins = f"record {held.first:,}"
        if held.is_whole:  # the store had changes before its journal was begun
            begins = f"change {first_seq:,}"
        return (
            f"the journal of {name} begins with {begins} and {known}: "
            "neither reaches back to that point; choose a later one"
        )


def _read_extents(tables: TableDirectory) -> dict[str, JournalExtent]:
    records = tables.read("records")
    rows = records.groupBy("server").agg(
        F.min("lsn").alias("first"), F.max("lsn").alias("last"), F.count_distinct("lsn").alias("n")
    )
    damaged: set[str] = set()
    if tables.has("errors"):
        faults = tables.read("errors").filter(F.col("source") == "journal")
        damaged = {row["server"] for row in faults.select("server").distinct().collect()}
    return {
        row["server"]: JournalExtent(row["first"], row["last"], row["n"], row["server"] in damaged)
        for row in rows.collect()
    }


def _read_snapshots(tables: TableDirectory) -> list[PartitionSnapshot]:
    """The snapshots, of each server only the partitions that it owns."""
    if not tables.has("snapshot_partitions"):
        return []
    own = tables.read("snapshot_partitions").filter(F.lower("owner") == F.lower("server"))
    rows = own.select("server", "lsn", "partition", "last_seq", "purged_seq").collect()
    return [PartitionSnapshot(r[0], r[1], bytes(r[2]), r[3], r[4]) for r in rows]
