"""The status of the servers that the console shows, and their counters side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mqis.enterprise.collect import Collector
from mqis.enterprise.status import EnterpriseStatus, MemberStatus
from mqis.views.console.places import Places
from mqis.views.console.reading import OpenStores
from mqis.views.console.tones import Tone, tone_of_counter

__all__ = ["Collector", "Counter", "EnterpriseStatus", "collector_of", "counters"]


def collector_of(places: Places, stores: OpenStores) -> Collector:
    """Returns a collector that reads stores through those that are open already."""
    return Collector(places.roster, stores.view)


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    #: Text and colour, by server in their order; empty for a server without it.
    values: tuple[tuple[str, Tone], ...]


def counters(servers: Sequence[MemberStatus]) -> list[Counter]:
    """Returns every counter that any server has."""
    by_server = [server.counters for server in servers]
    names = sorted({name for each in by_server for name in each})
    return [Counter(name, tuple(_shown(name, each) for each in by_server)) for name in names]


def _shown(name: str, counted: Mapping[str, float]) -> tuple[str, Tone]:
    if name not in counted:
        return "", Tone.PLAIN
    value = counted[name]
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
    return text, tone_of_counter(name, value)
