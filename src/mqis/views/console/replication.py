"""The replication matrix: partitions by servers, and how far each replica is behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from time import monotonic

from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus
from mqis.views.console.polling import Polled


class Lag(StrEnum):
    """How a replica stands beside its authority."""

    AUTHORITY = "authority"
    LEVEL = "level"
    BEHIND = "behind"
    AHEAD = "ahead"
    SYNCHRONISING = "synchronising"
    UNKNOWN = "unknown"


_STATES = {
    "sync": "asks for changes",
    "restoring": "asks others what it was",
    "start_sync0": "starts over",
    "sync0": "gets everything",
    "complete_sync0": "has nearly everything",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One partition at one server."""

    server: str
    lag: Lag
    #: How many numbers its last one lies behind the authority's.
    behind: int = 0
    missing: int = 0
    last_seq: str = ""
    purged_seq: str = ""
    state: str = ""
    #: Seconds since it was first seen behind.
    behind_s: float = 0.0

    @property
    def text(self) -> str:
        """The lag in words, because colour alone tells nobody anything."""
        if self.lag is Lag.BEHIND:
            return f"{self.behind:,} behind{_for(self.behind_s)}"
        if self.lag is Lag.AHEAD:
            return f"{-self.behind:,} ahead"
        if self.lag is Lag.SYNCHRONISING:
            return _STATES.get(self.state, self.state.replace("_", " "))
        return {Lag.AUTHORITY: "authority", Lag.LEVEL: "level"}.get(self.lag, "unknown")


@dataclass(frozen=True, slots=True)
class MatrixRow:
    id: str
    name: str
    owner: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    server: str
    neighbour: NeighbourStatus


@dataclass(frozen=True, slots=True)
class Matrix:
    servers: tuple[Polled, ...]
    rows: tuple[MatrixRow, ...]
    neighbours: tuple[Neighbour, ...]

    @property
    def behind(self) -> int:
        return sum(max(cell.behind, 0) for row in self.rows for cell in row.cells)

    @property
    def silent(self) -> tuple[str, ...]:
        """Who should answer and does not."""
        return tuple(s.name for s in self.servers if not s.alive and s.problem is not None)

    @property
    def good(self) -> bool:
        level = (Lag.AUTHORITY, Lag.LEVEL)
        return not self.silent and all(c.lag in level for row in self.rows for c in row.cells)

    @property
    def sentence(self) -> str:
        """All of it in one line, for who cannot see the table or does not want to."""
        told = []
        if self.silent:
            verb = "does" if len(self.silent) == 1 else "do"
            told.append(f"{', '.join(self.silent)} {verb} not answer")
        late = sorted({c.server for row in self.rows for c in row.cells if c.lag is Lag.BEHIND})
        if late:
            changes = "change" if self.behind == 1 else "changes"
            told.append(f"{', '.join(late)}: {self.behind:,} {changes} behind")
        busy = [row.name for row in self.rows if any(c.lag is Lag.SYNCHRONISING for c in row.cells)]
        if busy:
            told.append(f"synchronisation is under way for {', '.join(busy)}")
        if not self.rows:
            told.append("No server tells of a partition")
        return "; ".join(told) or "Every replica is level with its authority"


def _for(seconds: float) -> str:
    return f" for {seconds:,.0f} s" if seconds >= 1 else ""


class Watch:
    """Looks again and again, and remembers since when a replica is behind."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], float] = {}

    def matrix(self, polled: Sequence[Polled]) -> Matrix:
        """Rows as the servers list them, the enterprise first."""
        known = {p.id: p for each in reversed(polled) for p in _partitions(each)}
        order = sorted(known.values(), key=lambda p: (p.name != "enterprise", p.name.lower(), p.id))
        rows = tuple(self._row(partition, polled) for partition in order)
        neighbours = tuple(
            Neighbour(each.name, neighbour)
            for each in polled
            for neighbour in (each.status.neighbours if each.status else ())
        )
        return Matrix(tuple(polled), rows, neighbours)

    def _row(self, partition: PartitionStatus, polled: Sequence[Polled]) -> MatrixRow:
        held = {each.name: p for each in polled for p in _partitions(each) if p.id == partition.id}
        owned = [p for p in held.values() if p.authority]
        # Without the authority in sight the replica that is farthest is the measure.
        reference = max(int(p.last_seq, 16) for p in owned or held.values())
        cells = tuple(
            self._timed(partition.id, _cell(each.name, held.get(each.name), reference))
            for each in polled
        )
        return MatrixRow(partition.id, partition.name, partition.owner, cells)

    def _timed(self, partition: str, cell: Cell) -> Cell:
        key = cell.server, partition
        if cell.lag is not Lag.BEHIND:
            self._since.pop(key, None)
            return cell
        now = self._clock()
        return replace(cell, behind_s=now - self._since.setdefault(key, now))


def _partitions(polled: Polled) -> Iterable[PartitionStatus]:
    return () if polled.status is None else polled.status.partitions


def _cell(server: str, partition: PartitionStatus | None, reference: int) -> Cell:
    if partition is None:
        return Cell(server, Lag.UNKNOWN)
    behind = reference - int(partition.last_seq, 16)
    if partition.authority:
        lag = Lag.AUTHORITY
    elif behind:
        lag = Lag.BEHIND if behind > 0 else Lag.AHEAD
    elif partition.state != "normal":
        lag = Lag.SYNCHRONISING
    else:
        lag = Lag.LEVEL
    return Cell(
        server,
        lag,
        behind,
        partition.missing,
        partition.last_seq,
        partition.purged_seq,
        partition.state,
    )
