"""The status of an enterprise: its servers, their replicas, and the words for both.

All views take numbers, states and words from here. ``EnterpriseStatus.verdict`` is the one verdict
about the health of the enterprise (``server.monitoring.verdict``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from mqis.findings import Gravity
from mqis.server.monitoring.replicas import (
    WAITING_WORDS,
    Distance,
    Lag,
    ReplicaStatus,
    sequence_text,
)
from mqis.server.monitoring.status import NeighbourStatus
from mqis.server.monitoring.verdict import Absence, HealthVerdict, judge, partition_order
from mqis.texts import agreeing, counted, duration, some

__all__ = [
    "WAITING_WORDS",
    "EnterpriseStatus",
    "Lag",
    "MatrixCell",
    "MatrixRow",
    "MemberState",
    "MemberStatus",
    "ReplicaGroup",
    "ReplicaStatus",
    "duration",
    "sequence_text",
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


#: Seconds after which a closed file should be in the archive.
_LATE_ARCHIVE_S = 600
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
    version: str = ""
    memory_bytes: int = 0
    #: store, journal or archive -> the free bytes there.
    disk_free: Mapping[str, int] = field(default_factory=dict)
    #: Files that are gone and without which it cannot start again, each in words.
    lost_files: tuple[str, ...] = ()

    @property
    def absence(self) -> Absence | None:
        return self.state.absence

    @property
    def absence_text(self) -> str:
        """Why it is not up, as a sentence: "It is stopped: it was killed."; empty if it is up."""
        if self.absence is None:
            return ""
        subject = "Its" if self.state is MemberState.UNREADABLE else "It"
        reason = f": {self.reason}" if self.reason and self.reason != self.state.text else ""
        return f"{subject}{self.absence.one.replace(':', '')}{reason.rstrip('.')}."

    @property
    def at_rest(self) -> bool:
        return self.state is MemberState.STORED

    @property
    def neighbours(self) -> int:
        return len(self.peers)

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
    def late_archive(self) -> str:
        """One sentence about an archive that is behind; "" if it is not."""
        waiting, lag_s = (self.counters.get(f"archive_{name}", 0) for name in ("waiting", "lag_s"))
        if lag_s < _LATE_ARCHIVE_S:
            return ""
        files, wait = round(waiting), agreeing(round(waiting), "waits", "wait")
        return (
            f"{self.name}: {counted(files, 'file')} of the journal {wait} for the archive, the "
            f"oldest for {duration(lag_s)}; its log says why"
        )

    @property
    def is_fine(self) -> bool:
        """True if nothing is to be said of it: of many servers, only the others are listed."""
        return self.up and not (
            self.behind or self.problems or self.lost_files or self.late_archive
        )

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
            "neighbours": self.neighbours,
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
class ReplicaGroup:
    """The servers whose replicas of a partition are in the same state."""

    lag: Lag
    words: str
    servers: tuple[str, ...]

    @property
    def text(self) -> str:
        """A count of those that are in step, and names of the others."""
        if self.lag is Lag.IN_STEP:
            return f"{len(self.servers):,} {self.words}"
        return f"{some(self.servers)}: {self.words}"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One partition at all servers, in their order."""

    id: str
    name: str
    owner: str
    cells: tuple[MatrixCell, ...]

    @property
    def authority(self) -> MatrixCell | None:
        """The authority's own copy; None if no server in sight is the authority."""
        return next((c for c in self.cells if c.replica and c.replica.authority), None)

    @property
    def measure(self) -> ReplicaStatus:
        """The authority's copy, else another, for the numbers of the partition."""
        held = [c.replica for c in (self.authority, *self.cells) if c is not None and c.replica]
        return held[0]

    def groups(self, among: Collection[str] | None = None) -> tuple[ReplicaGroup, ...]:
        """The replicas by their state, what is not in step first; ``among`` these servers."""
        found: dict[tuple[Lag, str], list[str]] = {}
        for each in self.cells:
            if each.lag is not Lag.AUTHORITY and (among is None or each.server.name in among):
                found.setdefault((each.lag, each.text), []).append(each.server.name)
        order = sorted(found.items(), key=lambda item: item[0][0] in (Lag.IN_STEP, Lag.UNKNOWN))
        return tuple(ReplicaGroup(lag, words, tuple(names)) for (lag, words), names in order)


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
        return self.rows_of(self.partitions)

    @property
    def partitions(self) -> tuple[ReplicaStatus, ...]:
        """One replica of each partition that any server has, the enterprise's first."""
        known = {r.id: r for server in reversed(self.servers) for r in server.replicas}
        return tuple(sorted(known.values(), key=partition_order))

    def rows_of(self, partitions: Iterable[ReplicaStatus]) -> tuple[MatrixRow, ...]:
        held = [(server, {r.id: r for r in server.replicas}) for server in self.servers]
        return tuple(
            MatrixRow(
                r.id,
                r.name,
                r.owner,
                tuple(MatrixCell(server, replicas.get(r.id)) for server, replicas in held),
            )
            for r in partitions
        )

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
