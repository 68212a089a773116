"""The status of an enterprise: its servers, their replicas, and the words for both.

All views take numbers, states and words from here. ``EnterpriseStatus.verdict`` is the one verdict
about the health of the enterprise (``server.monitoring.verdict``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from mqis.findings import Gravity
from mqis.server.monitoring.replicas import (
    WAITING_WORDS,
    Distance,
    Lag,
    ReplicaStatus,
    duration,
)
from mqis.server.monitoring.status import NeighbourStatus
from mqis.server.monitoring.verdict import Absence, HealthVerdict, judge, partition_order

__all__ = [
    "WAITING_WORDS",
    "EnterpriseStatus",
    "Lag",
    "MatrixCell",
    "MatrixRow",
    "MemberState",
    "MemberStatus",
    "ReplicaStatus",
    "duration",
]


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

    @property
    def absence(self) -> Absence | None:
        """The words for a server in this state; None if nobody expects it to be up."""
        if self.is_expected:
            return None
        gravity = Gravity.ERROR if self in _BROKEN else Gravity.WARNING
        if self is MemberState.DOWN:
            return Absence(f" {self.text}", " do not answer", gravity)
        if self is MemberState.UNREADABLE:
            return Absence(f": {self.text}", f": {self.text}", gravity)
        return Absence(f" is {self.text}", f" are {self.text}", gravity)


#: The states that no operator chose, and that do not pass by themselves.
_BROKEN = (MemberState.FAILED, MemberState.DOWN, MemberState.UNREADABLE)
_MEMBER_WORDS = {
    MemberState.READY: "up",
    MemberState.DOWN: "does not answer",
    MemberState.STORED: "from its store",
    MemberState.UNASKED: "not asked",
    MemberState.UNREADABLE: "store cannot be read",
}


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
    #: The problems that it reports itself.
    problems: tuple[str, ...] = ()

    @property
    def absence(self) -> Absence | None:
        return self.state.absence

    @property
    def at_rest(self) -> bool:
        return self.state is MemberState.STORED

    @property
    def up(self) -> bool:
        return self.state is MemberState.READY

    @property
    def replicas(self) -> tuple[ReplicaStatus, ...]:
        return self.partitions or ()

    @property
    def behind(self) -> int:
        """Numbers that are missing here, of all partitions."""
        return self.distance.numbers

    @property
    def distance(self) -> Distance:
        """The same, divided into changes and skipped numbers."""
        return sum((replica.distance for replica in self.replicas), Distance(0))

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
            "partitions": [_replica_json(replica) for replica in self.replicas],
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


@dataclass(frozen=True, slots=True)
class EnterpriseStatus:
    enterprise: str
    #: Seconds since the epoch.
    taken: float
    #: The process of 'mqis up', None if there is none.
    supervisor: int | None
    servers: tuple[MemberStatus, ...]
    #: The run directory; empty if there is none.
    run: str = ""

    @property
    def rows(self) -> tuple[MatrixRow, ...]:
        """The partitions that any server has, the enterprise's first."""
        known = {r.id: r for server in reversed(self.servers) for r in server.replicas}
        order = sorted(known.values(), key=partition_order)
        return tuple(MatrixRow(r.id, r.name, r.owner, self._cells(r.id)) for r in order)

    def _cells(self, partition: str) -> tuple[MatrixCell, ...]:
        held = ({r.id: r for r in server.replicas} for server in self.servers)
        pairs = zip(self.servers, held, strict=True)
        return tuple(MatrixCell(server, replicas.get(partition)) for server, replicas in pairs)

    @property
    def verdict(self) -> HealthVerdict:
        return judge(self.servers, self.run)

    @property
    def findings(self) -> tuple[str, ...]:
        """The reasons why the enterprise is not in step; empty if it is."""
        return tuple(finding.what for finding in self.verdict.findings)

    @property
    def converged(self) -> bool:
        """Returns whether all servers are up, and every replica is in step with its authority."""
        return self.verdict.gravity is Gravity.OK

    @property
    def summary(self) -> str:
        return self.verdict.summary

    def to_json(self) -> dict[str, Any]:
        servers = [server.to_json() for server in self.servers]
        verdict = self.verdict
        shown = asdict(self)
        del shown["run"]
        return shown | {
            "servers": servers,
            "converged": verdict.gravity is Gravity.OK,
            "verdict": verdict.to_json(),
        }


def _replica_json(replica: ReplicaStatus) -> dict[str, Any]:
    return asdict(replica) | {"text": replica.text}
