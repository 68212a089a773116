"""Pairs of sites, and machines, that cannot reach each other, grouped by the reason.

Pairs come from the routes of all sites at once (``bulk.columns``). The reason of a pair is that of
the site where its messages stop, so it is explained once for many pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from mqis.protocol.routing.breakage import Breakage, RouteFault
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import site_graph
from mqis.protocol.routing.bulk.some_destinations import GateColumns, gate_columns
from mqis.protocol.routing.diagnosis import no_gate, no_path
from mqis.protocol.routing.model import RoutingQueueManager
from mqis.protocol.routing.nexthops import decide, is_site_gate
from mqis.protocol.routing.route_trace import HOP_LIMIT, trace
from mqis.protocol.routing.routing_table import EMPTY, UNREACHABLE, RoutingTable
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

#: Destinations that are computed at once, which bounds the memory.
_BLOCK = 128

_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StuckSites:
    """The pairs (from, to) of sites without a route for one reason."""

    breakage: Breakage
    pairs: tuple[tuple[Guid, Guid], ...]


@dataclass(frozen=True, slots=True)
class StuckMachines:
    """The machines that cannot send to other sites, or get messages from them."""

    breakage: Breakage
    #: True if they cannot send, False if messages do not reach them.
    sending: bool
    machines: tuple[Guid, ...]


def stuck_sites(snapshot: Snapshot) -> list[StuckSites]:
    """The pairs of different sites without a route, the reason with most pairs first."""
    return _Search(snapshot).sites()


def stuck_machines(snapshot: Snapshot) -> list[StuckMachines]:
    """The machines that are stuck although messages leave and enter their site."""
    return _Search(snapshot).machines()


class _Search:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._graph, self._sites, _ = site_graph(snapshot)
        self._gates, _ = Gates.of_snapshot(snapshot)
        self._roots = self._gates.roots()
        _, labels = connected_components(self._graph.rows.matrix, directed=False)
        self._part: list[int] = labels.tolist()
        #: By machines that are alike: the breakage, and the machine it was found with.
        self._results: dict[_Key, tuple[Breakage | None, Guid]] = {}

    # --- sites ------------------------------------------------------------------------------------

    def sites(self) -> list[StuckSites]:
        grouped: dict[_Key, tuple[Breakage, list[tuple[Guid, Guid]]]] = {}
        for found in self._columns():
            for source, destination, end, wanted in _lost(found):
                key = self._reason(destination, end, wanted)
                if key not in grouped:
                    grouped[key] = self._breakage(key, end, destination), []
                grouped[key][1].append((self._sites[source], self._sites[destination]))
        made = (StuckSites(breakage, tuple(pairs)) for breakage, pairs in grouped.values())
        return sorted(made, key=lambda one: (-len(one.pairs), one.pairs[0]))

    def _reason(self, destination: int, end: int, wanted: int) -> _Key:
        """The reason that messages stop at a site; they stop where they arrive if it is too far."""
        if not self._roots[end]:
            return RouteFault.NO_GATE, end
        if wanted == UNREACHABLE:
            return RouteFault.NO_PATH, *sorted((self._part[end], self._part[destination]))
        if wanted != end and not self._roots[wanted]:
            return RouteFault.NO_GATE, wanted
        return (RouteFault.HOP_LIMIT,)

    def _breakage(self, key: _Key, end: int, destination: int) -> Breakage:
        if key[0] is RouteFault.NO_GATE:
            return no_gate(self._snapshot, self._sites[key[1]])
        if key[0] is RouteFault.NO_PATH:
            own = [self._sites[root] for root in self._roots[end]]
            return no_path(self._snapshot, own, self._sites[destination])
        return Breakage(RouteFault.HOP_LIMIT, self._snapshot.gates[self._sites[end]][0])

    def _columns(self) -> Iterator[GateColumns]:
        for begin in range(0, self._graph.count, _BLOCK):
            block = np.arange(begin, min(begin + _BLOCK, self._graph.count))
            yield gate_columns(self._graph, self._roots, block)

    # --- machines ---------------------------------------------------------------------------------

    def machines(self) -> list[StuckMachines]:
        peers = self._peers()
        grouped: dict[_Key, tuple[Breakage, bool, list[Guid]]] = {}
        for machine in self._snapshot.machines.values():
            for sending, found in self._of_machine(machine, peers):
                own = found.subject == machine.id
                key = found.fault, sending, None if own else found.subject
                grouped.setdefault(key, (found, sending, []))[2].append(machine.id)
        made = (
            StuckMachines(breakage, sending, tuple(sorted(ids)))
            for breakage, sending, ids in grouped.values()
        )
        return sorted(made, key=lambda one: (-len(one.machines), one.machines[0], one.sending))

    def _peers(self) -> dict[Guid, Guid]:
        """For each site another one to which it has a route, and from which."""
        count = self._graph.count
        arrives = np.zeros((count, count), dtype=bool)
        for found in self._columns():
            arrives[:, found.destinations] = found.arrives
        both = arrives & arrives.T & ~np.eye(count, dtype=bool)
        chosen = both.argmax(axis=1).tolist() if count else []
        pairs = ((here, there) for here, there in enumerate(chosen) if both[here, there])
        return {self._sites[here]: self._sites[there] for here, there in pairs}

    def _of_machine(
        self, machine: RoutingQueueManager, peers: dict[Guid, Guid]
    ) -> Iterator[tuple[bool, Breakage]]:
        peer = self._peer(machine, peers)
        if peer is None:
            return
        alike = _alike(machine)
        for sending in (True, False):
            key = *alike, sending
            if key not in self._results:
                found = self._sends(machine, peer) if sending else self._receives(machine)
                self._results[key] = found, machine.id
            found, example = self._results[key]
            if found is not None:
                own = found.subject == example
                yield sending, replace(found, subject=machine.id) if own else found

    def _sends(self, machine: RoutingQueueManager, peer: Guid) -> Breakage | None:
        """The reason that messages for another site do not get from the machine to a gate."""
        probe = RoutingQueueManager(peer, "", (peer,))
        snapshot, here = self._snapshot.with_machine(probe), machine.id
        for _ in range(HOP_LIMIT):
            if is_site_gate(snapshot, here):
                return None
            decision = decide(snapshot, EMPTY, here, peer)
            known = [hop for hop in decision.hops if hop in snapshot.machines]
            if decision.breakage is not None or not known:
                return decision.breakage or Breakage(RouteFault.NO_HOP, decision.hops[0])
            here = known[0]
            if here == peer:
                return None
        return Breakage(RouteFault.HOP_LIMIT, here)

    def _receives(self, machine: RoutingQueueManager) -> Breakage | None:
        """The reason that messages do not get from the gate of its site to the machine."""
        gates = (self._snapshot.gates.get(site, ()) for site in machine.sites)
        gate = next((found[0] for found in gates if found), None)
        if gate is None:
            return Breakage(RouteFault.NO_SITE, machine.id)
        return trace(self._snapshot, gate, machine.id, _no_table).breakage

    def _peer(self, machine: RoutingQueueManager, peers: dict[Guid, Guid]) -> Guid | None:
        """A site that the machine is not in; None if its own sites are stuck already."""
        known = [site for site in machine.sites if site in self._snapshot.sites]
        found = (peers[site] for site in known if site in peers)
        away = next((peer for peer in found if peer not in machine.sites), None)
        return next(iter(peers), None) if not known else away


def _no_table(_machine: Guid) -> RoutingTable:
    """Routes within a site need no table."""
    return EMPTY


def _alike(machine: RoutingQueueManager) -> _Key:
    """Machines with equal keys have equal routes, except that each is its own end."""
    lists = machine.in_routing_servers, machine.out_routing_servers
    own = tuple(machine.id in listed for listed in lists)
    gate = machine.id if machine.routing_server else None
    return machine.sites, gate, *lists, *own


def _lost(found: GateColumns) -> Iterator[tuple[int, int, int, int]]:
    """The pairs that do not arrive: (from, to, the site where it stops, the next in its table)."""
    source, column = np.nonzero(~found.arrives)
    end = found.end[source, column]
    rows = (source, found.destinations[column], end, found.wanted[end, column])
    listed = zip(*(row.tolist() for row in rows), strict=True)
    return (row for row in listed if row[0] != row[1])
