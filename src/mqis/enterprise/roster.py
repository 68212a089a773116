"""The servers whose status is collected, with the facts that are known without asking them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mqis.config.nodes import NodePlace, Nodes, load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from mqis.enterprise.states import ProcessState, Supervised, load_states

_LASTING = (ProcessState.STOPPED, ProcessState.FAILED)


@dataclass(frozen=True, slots=True)
class RosterEntry:
    """One server; unknown facts are None."""

    name: str
    role: str = ""
    site: str = ""
    address: str = ""
    #: The URL under which it answers ``/status``.
    monitor: str | None = None
    #: The URL of its store, for ``config.stores.open_store``.
    store: str | None = None
    pid: int | None = None
    restarts: int = 0
    supervised: Supervised | None = None


@dataclass(frozen=True, slots=True)
class Roster:
    enterprise: str
    #: The process of ``mqis up``, None if there is none.
    supervisor: int | None
    servers: tuple[RosterEntry, ...]
    #: The run directory; empty if there is none.
    run: str = ""


def roster_of_nodes(nodes: Nodes, supervised: Mapping[str, Supervised] | None = None) -> Roster:
    known = supervised or {}
    entries = tuple(_entry(node, known.get(node.name)) for node in nodes)
    return Roster(nodes.enterprise, nodes.supervisor, entries)


def roster_of_run(run: Path) -> Roster:
    """Reads a run directory; ``NodesError`` if there is none."""
    alive = holder(run / LOCK)
    states = load_states(run)
    known = {} if states is None else states.servers
    if alive is None:  # the file is old: only states that last without a supervisor still hold
        known = {name: s for name, s in known.items() if s.state in _LASTING}
    nodes = load_nodes(run)
    return Roster(nodes.enterprise, alive, roster_of_nodes(nodes, known).servers, str(run))


def _entry(node: NodePlace, supervised: Supervised | None) -> RosterEntry:
    return RosterEntry(
        node.name,
        node.role,
        node.site,
        node.address,
        node.monitor_url,
        node.store or None,
        node.pid,
        node.restarts,
        supervised,
    )
