"""All routes between sites, and the pairs without one, as values, text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mqis.protocol.routing.breakage import Breakage, RouteFault
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import site_graph
from mqis.protocol.routing.bulk.some_destinations import gate_columns
from mqis.protocol.routing.explain import ObjectNames
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.stuck import StuckMachines, StuckSites
from mqis.texts import some
from mqis.wire.guid import Guid

_BLOCK = 128

_ADVICE = {
    RouteFault.NO_GATE: "name a routing server of the site as its gate: "
    "mqis set site {name} gates=MACHINE",
    RouteFault.NO_PATH: "join the two groups: mqis create link neighbor1=SITE neighbor2=SITE "
    "cost=N",
    RouteFault.HOP_LIMIT: "join sites that are far apart: a message crosses at most 29 links",
    RouteFault.NO_ROUTING_SERVER: "make a machine of the site a routing server",
    RouteFault.NO_SITE: "mqis set machine {name} site_ids=SITE",
    RouteFault.NO_HOP: "name only servers that exist: mqis set machine MACHINE infrs=... "
    "outfrs=...",
    RouteFault.OUT_SELF: "name another server: mqis set machine {name} outfrs=MACHINE",
}


@dataclass(frozen=True, slots=True)
class SiteRoute:
    """The route between two sites; without a cost there is none."""

    source: str
    destination: str
    cost: int | None
    next_hop: str | None


def site_routes(snapshot: Snapshot) -> Iterator[SiteRoute]:
    """Yields the routes of all pairs of different sites, as the pipeline's table ``routes``."""
    graph, sites, _ = site_graph(snapshot)
    roots = Gates.of_snapshot(snapshot)[0].roots()
    names = [snapshot.sites[site].name or str(site) for site in sites]
    for begin in range(0, graph.count, _BLOCK):
        block = np.arange(begin, min(begin + _BLOCK, graph.count))
        found = gate_columns(graph, roots, block)
        costs, hops = found.cost.tolist(), found.next_site().tolist()
        for column, there in enumerate(block.tolist()):
            for here, name in enumerate(names):
                if here != there:
                    cost = costs[here][column]
                    known = cost >= 0
                    hop = names[hops[here][column]] if known else None
                    yield SiteRoute(name, names[there], cost if known else None, hop)


def untold(snapshot: Snapshot) -> list[str]:
    """The names of sites without a gate that may have one which only links name.

    Links' gates are not replicated. If no link names any, the copy may be that of a replica.
    """
    if any(link.gates for link in snapshot.links.values()):
        return []
    possible = (
        site.name or str(site.id)
        for site in snapshot.sites.values()
        if site.id not in snapshot.gates
        and snapshot.links_at.get(site.id)
        and snapshot.routers.get(site.id)
    )
    return sorted(possible)


# --- pairs without a route ------------------------------------------------------------------------


class StuckText:
    """Reasons, ends and repairs in words."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._names = ObjectNames(snapshot)

    def reason(self, breakage: Breakage) -> str:
        """The object that breaks the routes, and the causes."""
        if breakage.fault is RouteFault.NO_PATH:
            said = "no usable link joins the two groups of sites"
        elif breakage.fault is RouteFault.HOP_LIMIT:
            said = "the way is too long: the hop count of a message is exhausted"
        else:
            said = self._names.sentence(breakage)
        causes = some([*map(self._names.sentence, breakage.causes)], 5, "; ")
        return f"{said}: {causes}" if causes else said

    def advice(self, breakage: Breakage) -> str:
        name = self._names.of(breakage.kind, breakage.subject)
        return _ADVICE.get(breakage.fault, "").format(name=name)

    def pairs(self, pairs: Sequence[tuple[Guid, Guid]]) -> list[str]:
        """Pairs by name, those of both directions as one."""
        known = set(pairs)
        found = []
        for source, destination in pairs:
            both = (destination, source) in known
            if not both or source < destination:
                ends = self._names.site(source), self._names.site(destination)
                found.append((" <-> " if both else " -> ").join(ends))
        return found

    def machines(self, machines: Sequence[Guid]) -> list[str]:
        return [self._names.machine(machine) for machine in machines]

    def sites_json(self, group: StuckSites) -> dict[str, object]:
        site = self._names.site
        pairs = [{"source": site(s), "destination": site(d)} for s, d in group.pairs]
        return {**self._breakage(group.breakage), "pairs": pairs}

    def machines_json(self, group: StuckMachines) -> dict[str, object]:
        direction = "send" if group.sending else "receive"
        machines = self.machines(group.machines)
        return {**self._breakage(group.breakage), "direction": direction, "machines": machines}

    def _breakage(self, breakage: Breakage) -> dict[str, object]:
        return {
            "fault": breakage.fault.name.lower(),
            "reason": self.reason(breakage),
            "advice": self.advice(breakage),
        }
