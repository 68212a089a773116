"""Starting points of a rebuild: the first record of a journal, or one of its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.readable import used_input
from mqis.pipeline.tables import TableStore
from mqis.protocol.journal.numbers import SKIPPED
from mqis.wire.errors import MqisError


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
    """The snapshots that a rebuild can start from."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self.snapshots = _read_snapshots(tables)

    def of(
        self, partition: bytes, owner: str, first_seq: int, moment: Moment
    ) -> PartitionSnapshot | None:
        """Returns the newest snapshot before ``moment``; None if the journals have every change.

        ``first_seq`` is the number of the first change in the journals, 0 if there is none;
        ``owner`` made it. Raises ``MqisError`` if neither reaches back to ``moment``.
        """
        mine = [s for s in self.snapshots if s.partition == partition]
        fitting = [s for s in mine if self._is_before(s, moment)]
        if fitting:
            return max(fitting, key=lambda s: (s.last_seq, s.lsn))
        if first_seq == 1 or first_seq >= SKIPPED or not (first_seq or mine):
            return None
        known = "it has no snapshots" if not mine else "its snapshots are newer"
        name = owner or mine[0].server
        begins = f"change {first_seq:,}" if first_seq else "no change of its own"
        raise MqisError(
            f"the journal of {name} begins with {begins} and {known}: "
            "neither reaches back to that point; choose a later one"
        )

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
        found = used_input(self._tables, "records").join(F.broadcast(asked), ["server", "lsn"])
        rows = found.select("server", "lsn", F.unix_micros("time").alias("us")).collect()
        return {(r[0], r[1]): datetime.fromtimestamp(r[2] / 1e6, tz=UTC) for r in rows}


def _read_snapshots(tables: TableStore) -> list[PartitionSnapshot]:
    """The snapshots, of each server only the partitions that it owns."""
    if not tables.has("snapshot_partitions"):
        return []
    own = tables.read("snapshot_partitions").filter(F.lower("owner") == F.lower("server"))
    trusted = tables.read("journals").select("server")
    known = own.join(F.broadcast(trusted), "server", "left_semi")
    rows = known.select("server", "lsn", "partition", "last_seq", "purged_seq").collect()
    return [PartitionSnapshot(r[0], r[1], bytes(r[2]), r[3], r[4]) for r in rows]
