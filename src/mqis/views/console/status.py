"""The status of the servers that the console shows, and their counters side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqis.enterprise.collected_status import Collector
from mqis.enterprise.status import EnterpriseStatus, MemberStatus, sequence_text
from mqis.views.console.open_stores import OpenStores
from mqis.views.console.replication import MOST_COLUMNS
from mqis.views.console.server_places import Places
from mqis.views.console.tones import Tone, tone_of_counter

__all__ = [
    "Collector",
    "CounterTable",
    "EnterpriseStatus",
    "collector_of",
    "counters",
    "sequence_text",
]


def collector_of(places: Places, stores: OpenStores) -> Collector:
    """Returns a collector that reads stores through those that are open already."""
    return Collector(places.roster, stores.view)


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    #: Text and colour, by column; empty for a server without it.
    values: tuple[tuple[str, Tone], ...]
    #: Of many servers, the one with the highest value; empty if it is 0 everywhere.
    highest_at: str = ""


@dataclass(frozen=True, slots=True)
class CounterTable:
    """Counters of servers: a column for each if they are few, else sums and the highest values."""

    #: The servers with a column each; empty if there are too many.
    columns: tuple[str, ...]
    #: The number of all servers.
    servers: int
    rows: tuple[Counter, ...]


def counters(servers: Sequence[MemberStatus]) -> CounterTable:
    """Returns every counter that any server has."""
    names = sorted({name for server in servers for name in server.counters})
    few = len(servers) <= MOST_COLUMNS
    make = _by_server if few else _summed
    columns = tuple(server.name for server in servers) if few else ()
    return CounterTable(columns, len(servers), tuple(make(name, servers) for name in names))


def _by_server(name: str, servers: Sequence[MemberStatus]) -> Counter:
    return Counter(name, tuple(_shown(name, server.counters.get(name)) for server in servers))


def _summed(name: str, servers: Sequence[MemberStatus]) -> Counter:
    values = {server.name: server.counters.get(name, 0) for server in servers}
    at = max(values, key=lambda server: values[server])
    pair = _shown(name, sum(values.values())), _shown(name, values[at])
    return Counter(name, pair, at if values[at] else "")


def _shown(name: str, value: float | None) -> tuple[str, Tone]:
    if value is None:
        return "", Tone.PLAIN
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
    return text, tone_of_counter(name, value)
