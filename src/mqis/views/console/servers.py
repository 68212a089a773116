"""Servers on pages: the list of all, and everything about one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqis.enterprise.status import (
    EnterpriseStatus,
    Lag,
    MemberState,
    MemberStatus,
    ReplicaStatus,
)
from mqis.findings import Finding
from mqis.texts import duration, size
from mqis.views.console.paging import PagedRows, mentions, paged
from mqis.views.console.replication import NeighbourRow, neighbours_of
from mqis.views.console.server_places import NotShownError
from mqis.views.console.tones import tone_of_server
from mqis.views.tracing.serverlog import LogLine, last_lines

#: More servers than this are shown only if something is to be said of them.
MOST_SHOWN = 20
#: The lines of the log on the page of a server.
LOG_LINES = 40


@dataclass(frozen=True, slots=True)
class ServersShown:
    """Some servers of an enterprise: those of which something is to be said, if there are many."""

    rows: tuple[MemberStatus, ...]
    #: Servers that are left out: they are up and in step.
    fine: int
    #: Servers that are left out because there are too many.
    more: int = 0


def exceptions_first(servers: Sequence[MemberStatus]) -> ServersShown:
    """All servers if they are few, else at most as many of those that are not fine."""
    if len(servers) <= MOST_SHOWN:
        return ServersShown(tuple(servers), 0)
    troubled = sorted((s for s in servers if not s.is_fine), key=_gravest_first)
    more = max(0, len(troubled) - MOST_SHOWN)
    return ServersShown(tuple(troubled[:MOST_SHOWN]), len(servers) - len(troubled), more)


def server_list(status: EnterpriseStatus, text: str, page: int) -> PagedRows[MemberStatus]:
    """The servers whose name, site, role or state holds the text, the faulty ones first."""
    found = [s for s in status.servers if mentions(text, s.name, s.site, s.role, s.state.text)]
    return paged(sorted(found, key=lambda s: (s.is_fine, *_gravest_first(s))), page)


def _gravest_first(server: MemberStatus) -> tuple[bool, bool, str]:
    return tone_of_server(server) != "bad", tone_of_server(server) == "good", server.name


@dataclass(frozen=True, slots=True)
class ServerPage:
    """Everything that is known about one server, except who is connected to it."""

    member: MemberStatus
    #: (name, value) of its facts.
    facts: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    partitions: PagedRows[ReplicaStatus]
    neighbours: PagedRows[NeighbourRow]


def server_page(
    status: EnterpriseStatus, name: str, *, page: int = 1, neighbours_page: int = 1
) -> ServerPage:
    """The page of a server; raises ``NotShownError`` if there is none of that name."""
    member = next((s for s in status.servers if s.name.lower() == name.lower()), None)
    if member is None:
        raise NotShownError(f"there is no server {name!r}")
    replicas = sorted(member.replicas, key=lambda r: r.lag in (Lag.AUTHORITY, Lag.IN_STEP))
    return ServerPage(
        member,
        tuple(facts_of(member, status.taken)),
        status.verdict.about(member.name).findings,
        paged(replicas, page, MOST_SHOWN),
        paged(neighbours_of(member), neighbours_page, MOST_SHOWN),
    )


def facts_of(member: MemberStatus, now: float) -> list[tuple[str, str]]:
    """The facts about a server with their names; those that are not known are left out."""
    since = "" if member.since is None else duration(now - member.since)
    free = (f"{size(free)} ({place})" for place, free in sorted(member.disk_free.items()))
    connections = member.counters.get("connections")
    found = [
        ("role", member.role.upper() if member.role.islower() else member.role),
        ("site", member.site),
        ("state", member.state.text),
        ("up for" if member.state is MemberState.READY else "in that state for", since),
        ("version", member.version),
        ("process", "" if member.pid is None else str(member.pid)),
        ("restarts", str(member.restarts)),
        ("memory", size(member.memory_bytes) if member.memory_bytes else ""),
        ("disk left", ", ".join(free)),
        ("sessions with servers", f"{member.connected} of {member.neighbours}"),
        ("messages waiting", f"{member.queued:,}"),
        ("connections of clients", "" if connections is None else f"{connections:,.0f}"),
    ]
    return [(word, value) for word, value in found if value]


def log_of(path: Path | None, name: str) -> tuple[LogLine, ...]:
    """The last lines of a server's log, oldest first; none if its file is not known here."""
    return () if path is None else tuple(last_lines(path, name, LOG_LINES))
