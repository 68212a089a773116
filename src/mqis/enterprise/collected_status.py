"""Collects the status of an enterprise from the answers of its servers.

``collect`` polls once. A ``Collector`` polls again and again, and remembers since when a server
does not answer and since when a replica is behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mqis.enterprise.plan import ServerRole
from mqis.enterprise.polling import Polled, ReadStore, poll, read_store
from mqis.enterprise.roster import Roster, RosterEntry, roster_of_run
from mqis.enterprise.states import ProcessState
from mqis.enterprise.status import EnterpriseStatus, MemberState, MemberStatus
from mqis.protocol.directory.objects import name_key
from mqis.server.monitoring.replica_comparison import Comparison
from mqis.server.monitoring.replicas import Since

__all__ = ["Collector", "Since", "collect", "compare"]


def collect(
    roster: Roster, read: ReadStore | None = read_store, since: Since | None = None
) -> EnterpriseStatus:
    """Polls all servers once. Without ``read`` no store is opened."""
    polled = poll(roster.servers, read)
    return compare(roster, polled, {} if since is None else since, time.time())


class Collector:
    """Polls the servers of a roster, which is read anew each time."""

    def __init__(self, roster: Callable[[], Roster], read: ReadStore = read_store) -> None:
        self._roster = roster
        self._read = read
        self._since: Since = {}

    @classmethod
    def of_run(cls, run: Path) -> Collector:
        """Returns a collector for the servers of a run directory."""
        return cls(lambda: roster_of_run(run))

    def collect(self) -> EnterpriseStatus:
        """Polls all servers; raises ``NodesError`` if there is no run directory."""
        return collect(self._roster(), self._read, self._since)


def compare(roster: Roster, polled: Sequence[Polled], since: Since, now: float) -> EnterpriseStatus:
    """Combines the answers into a status; updates ``since`` with conditions that began now."""
    comparison = Comparison(since, now)
    for each in polled:
        if each.status is not None:
            comparison.add(each.entry.name, each.status)
    owners = _owners(polled)
    servers = tuple(_member(each, comparison, owners) for each in polled)
    names = (each.status.enterprise for each in polled if each.status is not None)
    enterprise = roster.enterprise or next(filter(None, names), "")
    return EnterpriseStatus(enterprise, now, roster.supervisor, servers, roster.run)


def _owners(polled: Sequence[Polled]) -> set[str]:
    """The authorities of all partitions, as the servers that answer know them."""
    statuses = (each.status for each in polled if each.answered and each.status is not None)
    return {name_key(p.owner) for status in statuses for p in status.partitions if p.owner}


def _role(polled: Polled, owners: set[str]) -> str:
    """The role by the server's own directory, which knows of a promotion at once.

    The run directory knows of it at the next 'mqis up', and the server that was replaced never
    does if it is lost.
    """
    role = (polled.status.role if polled.status else "") or polled.entry.role
    replaced = owners and name_key(polled.entry.name) not in owners
    if not polled.answered and replaced and role in (ServerRole.PEC, ServerRole.PSC):
        return f"former {role}"
    return role


def _member(polled: Polled, comparison: Comparison, owners: set[str]) -> MemberStatus:
    entry, status = polled.entry, polled.status
    replicas = None
    if status is not None:
        replicas = comparison.replicas(entry.name, status)
    state, since, reason = _condition(polled, comparison)
    return MemberStatus(
        entry.name,
        _role(polled, owners),
        entry.site or (status.site if status else ""),
        entry.address,
        _pid(polled),
        entry.restarts,
        state,
        since,
        reason,
        replicas,
        status.neighbours if status else (),
        status.counters if status else {},
        status.problems if status else (),
        status.version if status else "",
        status.memory_bytes if status else 0,
        status.disk_free if status else {},
        status.lost_files if status and polled.answered else (),
    )


def _pid(polled: Polled) -> int | None:
    if polled.answered and polled.status is not None:
        return polled.status.pid
    return polled.entry.pid if _is_explained(polled.entry) else None


def _is_explained(entry: RosterEntry) -> bool:
    """True if the supervisor knows why the server does not answer."""
    return entry.supervised is not None and entry.supervised.state is not ProcessState.READY


def _condition(polled: Polled, comparison: Comparison) -> tuple[MemberState, float | None, str]:
    """The state, the time since which it has it, and the reason."""
    entry, silent = polled.entry, (polled.entry.name, "")
    known = entry.supervised
    if polled.answered and polled.status is not None:
        comparison.since.pop(silent, None)
        # Its monitoring answers before it accepts calls, while it gets its directory.
        supervised = known is not None and known.state is ProcessState.STARTING
        starting = supervised or not polled.status.serving
        state = MemberState.STARTING if starting else MemberState.READY
        return state, polled.status.started, ""
    if known is not None and _is_explained(entry):
        return MemberState(known.state.value), known.since, known.reason
    if entry.monitor is not None:
        first = comparison.since.setdefault(silent, comparison.now)
        return MemberState.DOWN, first, polled.problem
    if polled.problem:
        return MemberState.UNREADABLE, None, polled.problem
    return MemberState.STORED if polled.status else MemberState.UNASKED, None, ""
