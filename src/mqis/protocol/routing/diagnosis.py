"""Diagnosis: the objects that cause a missing gate or a missing path."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.routing.breakage import Breakage, RouteFault
from mqis.protocol.routing.graph import Graph
from mqis.protocol.routing.model import LinkFault
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

_LINK_FAULTS = {
    LinkFault.UNKNOWN_SITE: RouteFault.LINK_UNKNOWN_SITE,
    LinkFault.SELF_LINK: RouteFault.LINK_SELF,
    LinkFault.COST: RouteFault.LINK_COST,
}


def no_gate(snapshot: Snapshot, site: Guid) -> Breakage:
    """The breakage of a site without a gate, caused by the machines that are unfit as gates."""
    candidates = snapshot.gate_candidates(site) if site in snapshot.sites else ()
    found = ((gate, _gate_fault(snapshot, gate, site)) for gate in candidates)
    causes = tuple(Breakage(fault, gate) for gate, fault in found if fault is not None)
    return Breakage(RouteFault.NO_GATE, site, causes)


def _gate_fault(snapshot: Snapshot, gate: Guid, site: Guid) -> RouteFault | None:
    """The fault of a named gate; a link also names gates of its other site, which is none."""
    machine = snapshot.machines.get(gate)
    if machine is None:
        return RouteFault.GATE_UNKNOWN
    if site not in machine.sites:
        return RouteFault.GATE_ELSEWHERE if gate in snapshot.sites[site].gates else None
    return None if machine.routing_server else RouteFault.GATE_NO_ROUTER


def no_path(snapshot: Snapshot, own: Iterable[Guid], destination: Guid) -> Breakage:
    """The breakage of an unreachable site, caused by unusable links on both sides of the gap."""
    sides = _component(snapshot.graph, own) | _component(snapshot.graph, (destination,))
    causes = []
    for link in sorted(snapshot.links.values(), key=lambda link: link.id):
        fault = link.fault(snapshot.sites)
        if fault is not None and (link.site1 in sides or link.site2 in sides):
            causes.append(Breakage(_LINK_FAULTS[fault], link.id))
    return Breakage(RouteFault.NO_PATH, destination, tuple(causes))


def _component(graph: Graph, sites: Iterable[Guid]) -> set[Guid]:
    pending = [graph.index[site] for site in sites if site in graph.index]
    seen = set(pending)
    while pending:
        fresh = graph.costs[pending.pop()].keys() - seen
        seen |= fresh
        pending += fresh
    return {graph.sites[vertex] for vertex in seen}
