"""The status of the servers that the console shows, and their counters side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqis.enterprise.collect import Collector
from mqis.enterprise.status import EnterpriseStatus, MemberStatus
from mqis.server.monitoring.verdict import Grade
from mqis.views.console.places import Places
from mqis.views.console.reading import OpenStores

__all__ = ["Collector", "Counter", "EnterpriseStatus", "Grade", "collector_of", "counters"]


def collector_of(places: Places, stores: OpenStores) -> Collector:
    """Returns a collector that reads stores through those that are open already."""
    return Collector(places.roster, stores.view)


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    #: As text, by server in their order; empty for a server without it.
    values: tuple[str, ...]


def counters(servers: Sequence[MemberStatus]) -> list[Counter]:
    """Returns every counter that any server has."""
    by_server = [server.counters for server in servers]
    names = sorted({name for each in by_server for name in each})
    return [
        Counter(name, tuple(_shown(each[name]) if name in each else "" for each in by_server))
        for name in names
    ]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
