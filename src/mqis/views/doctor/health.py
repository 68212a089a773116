"""The verdict about health as findings: the same as of 'mqis status', /health and the console."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mqis.config.sections import Config
from mqis.enterprise.collect import Collector, collect
from mqis.enterprise.roster import Roster, RosterEntry
from mqis.enterprise.status import MemberState
from mqis.findings import Area, Finding
from mqis.server.identity import server_name
from mqis.server.monitoring.verdict import HealthVerdict

_HEALTH = Area("health")
_GENERAL = "see its log"


def check_run(run: Path) -> list[Finding]:
    """The verdict about all servers of a run directory."""
    return findings_of(Collector.of_run(run).collect().verdict)


def check_server(config: Config) -> list[Finding]:
    """The verdict about one server, by its monitoring endpoint; nothing if that does not answer.

    The other checks say whether the server runs, so silence is no finding here.
    """
    section = config.monitoring
    if not section.enabled or not section.port:
        return []
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(section.listen, section.listen)
    host = f"[{host}]" if ":" in host else host
    entry = RosterEntry(server_name(config), monitor=f"http://{host}:{section.port}")
    found = collect(Roster("", None, (entry,)), read=None)
    if found.servers[0].state is MemberState.DOWN:
        return []
    return findings_of(found.verdict.about(entry.name))


def findings_of(verdict: HealthVerdict) -> list[Finding]:
    found = [replace(f, check="health", todo=f.todo or _GENERAL) for f in verdict.findings]
    return found or [_HEALTH.ok(verdict.summary)]
