"""The status of an enterprise: its servers, their replicas, and the words for both.

A replica is behind by as many numbers as the authority of its partition has given out after the
replica's last one. Where no authority is known, the replica that is farthest gives a lower bound
for the others, and its own lag is unknown. All views take numbers, states and words from here;
``EnterpriseStatus.findings`` is the one list of what keeps the enterprise from being in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from mqis.server.monitoring.status import NeighbourStatus

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class MemberState(StrEnum):
    """The state of one server; the supervisor's state wins if it explains why it is not up."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    PAUSING = "pausing"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    #: It does not answer, for an unknown reason.
    DOWN = "down"
    #: Its monitoring is not known: its store was read instead.
    STORED = "stored"
    #: Neither its monitoring nor its store is known.
    UNASKED = "unasked"
    #: Its monitoring is not known, and its store cannot be read.
    UNREADABLE = "unreadable"

    @property
    def text(self) -> str:
        return _MEMBER_WORDS.get(self, self.value)

    @property
    def is_expected(self) -> bool:
        return self in (MemberState.READY, MemberState.STORED, MemberState.UNASKED)


_MEMBER_WORDS = {
    MemberState.READY: "up",
    MemberState.DOWN: "does not answer",
    MemberState.STORED: "from its store",
    MemberState.UNASKED: "not asked",
    MemberState.UNREADABLE: "store cannot be read",
}


class Lag(StrEnum):
    """The position of a replica relative to its authority."""

    AUTHORITY = "authority"
    IN_STEP = "in-step"
    BEHIND = "behind"
    AHEAD = "ahead"
    #: It has the authority's last number, and has not finished a full resynchronisation.
    RESYNC = "resync"
    UNKNOWN = "unknown"


#: The words for what a replica waits for, by ``PartitionStatus.state``.
WAITING_WORDS = {
    "sync": "changes requested",
    "restoring": "recovering",
    "start_sync0": "full resync requested",
    "sync0": "full resync",
    "complete_sync0": "full resync ending",
}


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One partition at one server."""

    id: str
    name: str
    owner: str
    authority: bool
    #: normal, sync, restoring, start_sync0, sync0 or complete_sync0.
    state: str
    last_seq: str
    purged_seq: str
    #: Changes that this server knows to be missing.
    missing: int
    #: Numbers that the authority has and this server lacks; None: there is nothing to compare with.
    behind: int | None
    #: Seconds since it was first observed to be behind.
    behind_s: float | None = None
    #: Numbers that it has and the authority lacks.
    ahead: int = 0
    #: No authority is in sight, and ``behind`` is only what another replica has more.
    at_least: bool = False

    @property
    def is_resyncing(self) -> bool:
        """True during a full resynchronisation or recovery; a request for changes is routine."""
        return self.state not in ("normal", "sync")

    @property
    def lag(self) -> Lag:
        if self.behind:
            return Lag.BEHIND
        if self.ahead:
            return Lag.AHEAD
        if self.is_resyncing:
            return Lag.RESYNC
        if self.authority:
            return Lag.AUTHORITY
        return Lag.UNKNOWN if self.behind is None else Lag.IN_STEP

    @property
    def text(self) -> str:
        """The position and the wait in words."""
        if self.state == "normal":
            return self._position
        return f"{self._position}, {waiting_text(self.state)}"

    @property
    def _position(self) -> str:
        if self.authority and not self.behind:
            return "authority"
        if self.behind is None:
            return "authority not in sight"
        if self.ahead:
            return f"{self.ahead:,} ahead"
        if not self.behind:
            return "in step"
        since = self.behind_s or 0.0
        least = "at least " if self.at_least else ""
        return f"{least}{self.behind:,} behind" + (f" for {duration(since)}" if since >= 1 else "")


def waiting_text(state: str) -> str:
    return WAITING_WORDS.get(state, state.replace("_", " "))


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One server."""

    name: str
    role: str
    site: str
    address: str
    pid: int | None
    restarts: int
    state: MemberState
    #: Seconds since the epoch at which it came into that state, if that is known.
    since: float | None
    #: The reason why it is not up.
    reason: str
    #: Its replicas, from its store if it does not answer; None if unknown.
    partitions: tuple[ReplicaStatus, ...] | None = None
    peers: tuple[NeighbourStatus, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def up(self) -> bool:
        return self.state is MemberState.READY

    @property
    def replicas(self) -> tuple[ReplicaStatus, ...]:
        return self.partitions or ()

    @property
    def behind(self) -> int:
        """Changes that are missing here, of all partitions."""
        return sum(replica.behind or 0 for replica in self.replicas)

    @property
    def behind_s(self) -> float | None:
        times = (replica.behind_s for replica in self.replicas)
        return max((time for time in times if time is not None), default=None)

    @property
    def queued(self) -> int:
        """Messages to other servers that wait for delivery or acknowledgement."""
        return sum(peer.queued for peer in self.peers)

    @property
    def connected(self) -> int:
        """Neighbours with an open session."""
        return sum(peer.connected for peer in self.peers)

    def to_json(self) -> dict[str, Any]:
        shown = asdict(self)
        del shown["peers"]
        return shown | {
            "up": self.up,
            "partitions": [asdict(replica) for replica in self.replicas],
            "queued": self.queued,
            "connected": self.connected,
            "neighbours": len(self.peers),
        }


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One partition at one server, which may have no replica of it."""

    server: MemberStatus
    replica: ReplicaStatus | None

    @property
    def lag(self) -> Lag:
        return Lag.UNKNOWN if self.replica is None else self.replica.lag

    @property
    def text(self) -> str:
        if self.replica is not None:
            return self.replica.text
        return "unknown" if self.server.partitions is None else "no replica"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One partition at all servers, in their order."""

    id: str
    name: str
    owner: str
    cells: tuple[MatrixCell, ...]

    @property
    def replicas(self) -> Iterator[ReplicaStatus]:
        return (cell.replica for cell in self.cells if cell.replica is not None)


@dataclass(frozen=True, slots=True)
class EnterpriseStatus:
    enterprise: str
    #: Seconds since the epoch.
    taken: float
    #: The process of 'mqis up', None if there is none.
    supervisor: int | None
    servers: tuple[MemberStatus, ...]

    @property
    def rows(self) -> tuple[MatrixRow, ...]:
        """The partitions that any server has, the enterprise's first."""
        known = {r.id: r for server in reversed(self.servers) for r in server.replicas}
        order = sorted(known.values(), key=lambda r: (r.name != "enterprise", r.name.lower(), r.id))
        return tuple(MatrixRow(r.id, r.name, r.owner, self._cells(r.id)) for r in order)

    def _cells(self, partition: str) -> tuple[MatrixCell, ...]:
        held = ({r.id: r for r in server.replicas} for server in self.servers)
        pairs = zip(self.servers, held, strict=True)
        return tuple(MatrixCell(server, replicas.get(partition)) for server, replicas in pairs)

    @property
    def findings(self) -> tuple[str, ...]:
        """The reasons why the enterprise is not in step; empty if it is."""
        rows = self.rows
        return (
            *_unexpected(self.servers),
            *(_differences(server) for server in self.servers if _differences(server)),
            *_resyncing(rows),
            *_incomplete(rows),
        )

    @property
    def converged(self) -> bool:
        """Returns whether all servers are up, and every replica is in step with its authority."""
        return not self.findings

    @property
    def summary(self) -> str:
        return "; ".join(self.findings) or "Every replica is in step with its authority"

    def to_json(self) -> dict[str, Any]:
        servers = [server.to_json() for server in self.servers]
        return asdict(self) | {"servers": servers, "converged": self.converged}


def duration(seconds: float) -> str:
    """Formats a duration: 12 s, 3 min, 5 h, 2 d."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


# --- findings -------------------------------------------------------------------------------------


def _unexpected(servers: Iterable[MemberStatus]) -> Iterator[str]:
    """Yields the servers that are not up, grouped by state."""
    found: dict[MemberState, list[str]] = {}
    for server in servers:
        if not server.state.is_expected:
            found.setdefault(server.state, []).append(server.name)
    for state, names in found.items():
        yield f"{', '.join(names)}{_predicate(state, many=len(names) > 1)}"


def _predicate(state: MemberState, *, many: bool) -> str:
    if state is MemberState.DOWN:
        return " do not answer" if many else f" {state.text}"
    if state is MemberState.UNREADABLE:
        return f": {state.text}"
    return f" {'are' if many else 'is'} {state.text}"


def _differences(server: MemberStatus) -> str:
    """The differences between its replicas and their authorities; empty if there are none."""
    ahead = sum(replica.ahead for replica in server.replicas)
    amounts = ((server.behind, "behind"), (ahead, "ahead"))
    parts = (f"{n:,} {'change' if n == 1 else 'changes'} {side}" for n, side in amounts if n)
    text = ", ".join(parts)
    return f"{server.name}: {text}" if text else ""


def _resyncing(rows: Iterable[MatrixRow]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for row in rows:
        for state in dict.fromkeys(r.state for r in row.replicas if r.is_resyncing):
            found.setdefault(waiting_text(state), []).append(row.name)
    for words, names in found.items():
        yield f"{', '.join(names)}: {words}"


def _incomplete(rows: tuple[MatrixRow, ...]) -> Iterator[str]:
    """Yields partitions without a known authority, and servers that lack a partition."""
    if not rows:
        yield "No server reports a partition"
    unseen = [row.name for row in rows if not any(r.authority for r in row.replicas)]
    if unseen:
        yield f"no authority is in sight for {', '.join(unseen)}"
    lacking: dict[str, list[str]] = {}
    for row in rows:
        for cell in row.cells:
            if cell.replica is None and cell.server.partitions is not None:
                lacking.setdefault(cell.server.name, []).append(row.name)
    for name, partitions in lacking.items():
        yield f"{name} has no replica of {', '.join(partitions)}"
