"""Refuses a rebuild if changes between its starting point and its moment are missing.

The numbers of a partition's changes rise by one, so a missing number is a missing change. Damage of
a journal that leaves the numbers complete does not matter, nor does damage before the starting
point or after the moment. Exports tell whether changes are missing at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.graph.used import CLOCKS
from mqis.pipeline.readable import ALTERED, explanations, used_input
from mqis.pipeline.rebuilding.beginnings import Moment, PartitionSnapshot
from mqis.pipeline.tables import TableStore
from mqis.protocol.journal.numbers import SKIPPED
from mqis.texts import moment, parse_moment
from mqis.wire.errors import MqisError


@dataclass(frozen=True, slots=True)
class PastPartition:
    """One partition in the past: rebuilt from the changes after ``base`` up to ``last_seq``."""

    partition: bytes
    owner: str
    last_seq: int
    purged_seq: int
    base: PartitionSnapshot | None
    #: The first change in the journal after a snapshot; 0 if there is none, or no snapshot.
    first: int
    #: The last change in the journal or the snapshot, and its record's number.
    end: int
    end_lsn: int


class RebuildCompleteness:
    """The facts about all partitions that decide whether a rebuild would be complete."""

    def __init__(self, tables: TableStore, changes: DataFrame, moment: Moment) -> None:
        self._moment = moment
        self._breaks = _breaks(changes)
        self._exported = _exported_numbers(tables)
        self._ended = _ends(tables)
        self._damage = _last_damage(tables)
        self._clocks = explanations(tables, CLOCKS)
        self._altered = explanations(tables, ALTERED)

    def check(self, past: PastPartition) -> None:
        """Raises ``MqisError`` if changes are or may be missing."""
        base = past.base.last_seq if past.base is not None else 0
        for after, before in [(0, past.first), *self._breaks[past.partition]]:
            self._check_break(past, max(after, base), before)
        known = self._exported.get(past.partition)
        if self._moment.seq is not None:
            if self._moment.seq > past.end:
                raise MqisError(
                    f"the journal of {past.owner} ends at change {past.end:,} of the partition; "
                    "choose an earlier one"
                )
            return
        if not self._is_beyond(past):
            return
        if known is not None and 0 < known - past.end < SKIPPED:
            raise MqisError(
                f"the end of the journal of {past.owner} is missing: it ends at change "
                f"{past.end:,}, but an export has change {known:,}; ingest the rest of it, or "
                "choose an earlier time"
            )
        if known is None and self._damage.get(past.owner, -1) >= past.end_lsn:
            raise MqisError(
                f"the journal of {past.owner} is damaged behind change {past.end:,}, so later "
                "changes may be missing; choose an earlier time, or ingest exports as well"
            )

    def _check_break(self, past: PastPartition, after: int, before: int) -> None:
        """Refuses if the numbers between ``after`` and ``before`` belong to the rebuilt state."""
        if before - after - 1 <= 0 or before - after >= SKIPPED:
            return
        reaches = (
            self._moment.seq > after if self._moment.seq is not None else after <= past.last_seq
        )
        if reaches:
            raise MqisError(
                f"the journal of {past.owner} is damaged or has gaps: changes {after + 1:,} to "
                f"{before - 1:,} are missing, so that point cannot be rebuilt; choose one before "
                "them, or behind a later snapshot"
            )

    def _is_beyond(self, past: PastPartition) -> bool:
        """Returns whether the journal has no change after the moment, so that its end matters."""
        ended = self._ended.get(past.owner)
        assert self._moment.time is not None
        return past.last_seq >= past.end and (ended is None or self._moment.time >= ended)

    def warnings(self, partitions: Iterable[PastPartition]) -> list[str]:
        """Reasons for which the result may not be what the user expects."""
        warnings: dict[str, None] = {}
        for past in partitions:
            if past.owner in self._altered:
                text = self._altered[past.owner]
                warnings[f"the journal of {past.owner} was altered: {text}"] = None
            if self._moment.time is None:
                continue
            if past.owner in self._clocks:
                text = self._clocks[past.owner]
                warnings[f"the times of {past.owner} cannot be trusted: {text}"] = None
            ended = self._ended.get(past.owner)
            unproven = self._exported.get(past.partition) is None and self._is_beyond(past)
            if unproven and ended is not None:
                warnings[f"the journal of {past.owner} ends at {moment(ended.timestamp())}"] = None
        return list(warnings)


def _breaks(changes: DataFrame) -> dict[bytes, list[tuple[int, int]]]:
    """The pairs of a partition's neighbouring numbers between which others are missing."""
    before = Window.partitionBy("partition").orderBy("seq")
    numbered = changes.select("partition", "seq", F.lag("seq").over(before).alias("after"))
    found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for row in numbered.filter("seq > after + 1").collect():
        found[bytes(row["partition"])].append((row["after"], row["seq"]))
    return found


def _exported_numbers(tables: TableStore) -> dict[bytes, int]:
    """The highest number of each partition in any export."""
    if not tables.has("partitions"):
        return {}
    used = used_input(tables, "partitions").groupBy("partition")
    rows = used.agg(F.max("last_seq").alias("seq")).collect()
    return {bytes(row["partition"]): row["seq"] for row in rows}


def _ends(tables: TableStore) -> dict[str, datetime]:
    """The times of the last records."""
    zone = F.date_format("ended", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
    rows = tables.read("journals").filter("ended is not null").select("server", zone).collect()
    return {row[0]: parse_moment(row[1]) for row in rows}


def _last_damage(tables: TableStore) -> dict[str, int]:
    """The last record's number in the damaged files of each server: damage may lie behind it."""
    if not tables.has("segments"):
        return {}
    damaged = tables.read("segments").filter("size(damage) > 0 and highest_lsn is not null")
    rows = damaged.groupBy("server").agg(F.max("highest_lsn").alias("lsn")).collect()
    return {row["server"]: row["lsn"] for row in rows}
