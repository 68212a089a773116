"""The servers that the console shows, with the store, journal and addresses of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, load_nodes
from mqis.config.stores import file_of
from mqis.enterprise.roster import Roster, RosterEntry, roster_of_run
from mqis.enterprise.states import Supervised, load_states
from mqis.wire.errors import MqisError

__all__ = ["NodesError", "NotShownError", "Places", "ServerPlace"]


class NotShownError(MqisError):
    """There is nothing to show, or the requested thing does not exist."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One server; unknown facts are None."""

    name: str
    role: str = ""
    site: str = ""
    #: The URL of its store, for ``config.stores.open_store``.
    store: str | None = None
    journal: Path | None = None
    #: Its monitoring URL, which answers ``GET /status``.
    monitor: str | None = None
    #: HOST[:PORT] of its RPC, and the port of its endpoint mapper.
    rpc: str | None = None
    mapper_port: int = 135
    #: Its configuration, which names its administrators and its accounts file.
    config: Path | None = None
    #: The file with its log lines.
    log: Path | None = None
    #: The supervisor's state of a server of ``mqis up``, such as "ready" or "failed".
    state: str = ""


class Places:
    """The servers of a run directory, which is reread each time, and further servers."""

    def __init__(
        self,
        run: Path | None = None,
        *,
        stores: tuple[str, ...] = (),
        servers: tuple[str, ...] = (),
        journals: tuple[Path, ...] = (),
        monitors: tuple[str, ...] = (),
        configs: tuple[Path, ...] = (),
        mapper_port: int = 135,
    ) -> None:
        """The first entries of all lists belong to one server, and so on."""
        self._run = run
        lists = zip_longest(stores, servers, journals, monitors, configs)
        self._given = _distinct([_given(*each, mapper_port=mapper_port) for each in lists])
        if run is None and not self._given:
            raise NotShownError("nothing to show: name a run directory, a store or a server")
        self.all()

    @property
    def run(self) -> Path | None:
        return self._run

    @property
    def take_calls(self) -> bool:
        """True if there is a server to log in to; a run directory always has one."""
        return self._run is not None or any(place.rpc for place in self._given)

    def all(self) -> tuple[ServerPlace, ...]:
        """All servers; raises ``NodesError`` if the run directory cannot be read."""
        if self._run is None:
            return self._given
        known = load_states(self._run)
        servers = known.servers if known is not None else {}
        nodes = (_of_node(node, servers.get(node.name)) for node in load_nodes(self._run))
        return (*nodes, *self._given)

    def roster(self) -> Roster:
        """The servers whose status is collected; ``NodesError`` as for ``all``."""
        given = tuple(_entry(place) for place in self._given)
        if self._run is None:
            return Roster("", None, given)
        known = roster_of_run(self._run)
        return replace(known, servers=known.servers + given)

    def named(self, name: str) -> ServerPlace:
        for place in self.all():
            if place.name.lower() == name.lower():
                return place
        raise NotShownError(f"there is no server {name!r}")


def _of_node(node: NodePlace, known: Supervised | None) -> ServerPlace:
    store = node.store or None
    journal = Path(node.journal) if node.journal else None
    return ServerPlace(
        node.name,
        node.role,
        node.site,
        store,
        journal,
        node.monitor_url,
        node.rpc_address,
        node.mapper_port,
        Path(node.config) if node.config else None,
        Path(node.log) if node.log else None,
        "" if known is None else known.state.value,
    )


def _entry(place: ServerPlace) -> RosterEntry:
    return RosterEntry(place.name, monitor=place.monitor, store=place.store)


def _given(
    store: str | None,
    server: str | None,
    journal: Path | None,
    monitor: str | None,
    config: Path | None,
    *,
    mapper_port: int,
) -> ServerPlace:
    file = None if store is None else file_of(store)
    name = server or (file.stem if file is not None else None)
    if name is None:
        name = journal.name if journal is not None else store or monitor or str(config)
    return ServerPlace(
        name,
        store=store,
        journal=journal,
        monitor=None if monitor is None else monitor.rstrip("/"),
        rpc=server,
        mapper_port=mapper_port,
        config=config,
    )


def _distinct(places: list[ServerPlace]) -> tuple[ServerPlace, ...]:
    """Makes names unique by a number, because pages select servers by name."""
    seen: dict[str, int] = {}
    made = []
    for place in places:
        key = place.name.lower()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            made.append(replace(place, name=f"{place.name}-{seen[key]}"))
        else:
            made.append(place)
    return tuple(made)
