"""The page of replication: first what is not equal, then counts; filters and pages for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mqis.enterprise.status import (
    EnterpriseStatus,
    Lag,
    MatrixRow,
    MemberStatus,
    ReplicaStatus,
)
from mqis.server.monitoring.status import NeighbourStatus
from mqis.texts import some
from mqis.views.console.paging import PagedRows, mentions, paged
from mqis.views.console.tones import Tone, tone_of_neighbour, tone_of_replica

#: The most servers that have a column each; of more, the replicas are counted.
MOST_COLUMNS = 8
#: Rows of the list of partitions, and of the lists of exceptions: others follow below them.
_PARTITIONS, _FEW = 25, 20
#: The order of colours: what somebody has to act on comes first.
_GRAVEST = (Tone.BAD, Tone.LATE, Tone.PLAIN, Tone.GOOD, Tone.INFO)


@dataclass(frozen=True, slots=True)
class ReplicationQuestion:
    """The filter of a visitor, and the pages of the lists."""

    server: str = ""
    partition: str = ""
    page: int = 1
    apart_page: int = 1
    neighbours_page: int = 1

    @property
    def is_filtered(self) -> bool:
        return bool(self.server or self.partition)

    @property
    def is_live(self) -> bool:
        """True for the view that all browsers share, which events keep up to date."""
        return self == ReplicationQuestion()


@dataclass(frozen=True, slots=True)
class ReplicasApart:
    """Replicas of one server that are not equal to their authorities, in the same words."""

    server: MemberStatus
    replicas: tuple[ReplicaStatus, ...]

    @property
    def tone(self) -> Tone:
        return tone_of_replica(self.replicas[0])

    @property
    def text(self) -> str:
        return self.replicas[0].text

    @property
    def names(self) -> str:
        return some([replica.name for replica in self.replicas])


@dataclass(frozen=True, slots=True)
class NeighbourRow:
    server: str
    neighbour: NeighbourStatus

    @property
    def tone(self) -> Tone:
        return tone_of_neighbour(self.neighbour)


@dataclass(frozen=True, slots=True)
class ReplicationPage:
    #: The servers that the filter leaves.
    servers: tuple[MemberStatus, ...]
    #: Replicas of these servers that are authorities, or in step with them.
    equal: int
    #: The number of all others, and these by server and state.
    unequal: int
    apart: PagedRows[ReplicasApart]
    #: The partitions whose authority is not in sight, and their replicas, which nobody can judge.
    unseen: tuple[str, ...]
    unjudged: int
    #: The servers of which no replica is known.
    silent: tuple[MemberStatus, ...]
    partitions: PagedRows[MatrixRow]
    neighbours: PagedRows[NeighbourRow]
    #: Pairs of neighbours that the list leaves out: nothing waits between them.
    quiet: int
    question: ReplicationQuestion

    @property
    def has_columns(self) -> bool:
        """True if each server has a column."""
        return len(self.servers) <= MOST_COLUMNS

    @property
    def names(self) -> frozenset[str]:
        return frozenset(server.name for server in self.servers)

    @property
    def heard(self) -> frozenset[str]:
        """The servers of which replicas are known."""
        return self.names - {server.name for server in self.silent}


def replication_page(
    status: EnterpriseStatus, question: ReplicationQuestion | None = None
) -> ReplicationPage:
    asked = question or ReplicationQuestion()
    servers = tuple(s for s in status.servers if mentions(asked.server, s.name, s.site))
    partitions = [p for p in status.partitions if mentions(asked.partition, p.name, p.owner)]
    wanted = {partition.id for partition in partitions}
    groups: dict[tuple[str, Tone, str], ReplicasApart] = {}
    equal = unequal = unjudged = 0
    for server in servers:
        for replica in server.replicas:
            if replica.id not in wanted:
                continue
            if replica.lag in (Lag.AUTHORITY, Lag.IN_STEP):
                equal += 1
                continue
            if replica.lag is Lag.UNKNOWN:
                unjudged += 1
                continue
            unequal += 1
            key = server.name, tone_of_replica(replica), replica.text
            before = groups[key].replicas if key in groups else ()
            groups[key] = ReplicasApart(server, (*before, replica))
    owned = {r.id for server in status.servers for r in server.replicas if r.authority}
    shown = paged(partitions, asked.page, _PARTITIONS)
    neighbours = list(_neighbours(servers))
    listed = _listed(neighbours, everything=bool(asked.server))
    return ReplicationPage(
        servers,
        equal,
        unequal,
        paged(sorted(groups.values(), key=_gravest_first), asked.apart_page, _FEW),
        tuple(p.name for p in partitions if p.id not in owned),
        unjudged,
        tuple(server for server in servers if server.partitions is None),
        PagedRows(status.rows_of(shown.rows), shown.total, shown.page, shown.pages),
        paged(listed, asked.neighbours_page, _FEW),
        len(neighbours) - len(listed),
        asked,
    )


def _gravest_first(each: ReplicasApart) -> tuple[int, int, str, str]:
    behind = sum(replica.behind or 0 for replica in each.replicas)
    return _GRAVEST.index(each.tone), -behind, each.server.name, each.text


def _neighbours(servers: Iterable[MemberStatus]) -> Iterable[NeighbourRow]:
    for server in servers:
        yield from (NeighbourRow(server.name, peer) for peer in server.peers)


def neighbours_of(server: MemberStatus) -> list[NeighbourRow]:
    """The neighbours of a server, those for which messages wait first."""
    return sorted(_neighbours([server]), key=_waiting_first)


def _listed(rows: Sequence[NeighbourRow], *, everything: bool) -> list[NeighbourRow]:
    """All pairs if they are few, or if a filter asks for them; else those where something waits."""
    if everything or len(rows) <= _FEW:
        return sorted(rows, key=_waiting_first)
    return sorted((row for row in rows if row.neighbour.queued), key=_waiting_first)


def _waiting_first(row: NeighbourRow) -> tuple[int, int, str, str]:
    tone = _GRAVEST.index(row.tone)
    return tone, -row.neighbour.queued, row.server, row.neighbour.name
