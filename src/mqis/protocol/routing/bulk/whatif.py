"""The impact of losing links or gates: pairs of sites rerouted, more expensive or cut off.

The route of a pair of sites is the one from gate to gate: the first gate of the source's site
consults its table, sends to the first gate of the next site, and so on. A site without a gate can
neither send nor forward nor receive, and the tables do not avoid it (MS-MQBR 3.1.5.3). Where
every site has a gate and no gate belongs to two, that is the least-cost path of ``allpairs``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mqis.protocol.routing.bulk.allpairs import AllPairsRoutes
from mqis.protocol.routing.bulk.gate_routes import GateWalks, entries, walk_on
from mqis.protocol.routing.bulk.gates import Gates, Roots
from mqis.protocol.routing.bulk.repair import EdgeCosts, Repair, RouteChanges, above
from mqis.protocol.routing.bulk.sitegraph import Ints, SiteGraph, Vertices
from mqis.protocol.routing.routing_table import UNREACHABLE


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of losing one link or gate."""

    #: The number of the link, or of the machine.
    number: int
    changed: int
    unreachable: int
    #: The additional cost of all pairs with a route before and after, and of the worst of them.
    dearer_by: int
    worst: int

    @classmethod
    def of(cls, number: int, changes: RouteChanges) -> Impact:
        more = changes.dearer_by
        worst = int(more.max(initial=0))
        return cls(number, len(changes), len(changes.unreachable), int(more.sum()), worst)


class WhatIf:
    """What-ifs over one set of routes. Without ``gates`` every site has one of its own."""

    def __init__(self, routes: AllPairsRoutes, gates: Gates | None = None) -> None:
        self._routes = routes
        self._graph = routes.graph
        self._repair = Repair(routes)
        own: list[Roots] = [(site,) for site in range(self._graph.count)]
        self._gates = gates
        self._roots = own if gates is None else gates.roots()
        self._plain = self._roots == own

    def without(self, links: npt.ArrayLike = (), gates: Collection[int] = ()) -> RouteChanges:
        """The pairs whose route changes without these links (by number) and gates."""
        given = np.atleast_1d(np.asarray(links, dtype=np.int64))
        repaired = self._repair.after(edges_without(self._graph, given))
        moved: dict[int, Roots] = {}
        if self._gates is not None:  # gates that only the lost links name are lost too
            moved = self._gates.roots_without(frozenset(gates), frozenset(given.tolist()))
        elif gates:
            raise ValueError("gates to leave out, but none known: pass gates to WhatIf")
        return repaired if self._plain and not moved else self._walked(repaired, moved)

    def each_link(self) -> Iterator[Impact]:
        """The impact of losing each usable link, by its number."""
        for link in np.sort(self._graph.link):
            yield Impact.of(int(link), self.without([link]))

    def each_gate(self) -> Iterator[Impact]:
        """The impact of losing each gate, by the number of the machine."""
        of_site = self._gates.of_site if self._gates is not None else ()
        for gate in sorted({gate for gates in of_site for gate in gates}):
            yield Impact.of(gate, self.without(gates=[gate]))

    # --- from gate to gate ------------------------------------------------------------------------

    @cached_property
    def _walks(self) -> GateWalks:
        return GateWalks.of(self._routes, self._roots)

    @cached_property
    def _scratch(self) -> tuple[Ints, Vertices, Vertices]:
        routes = self._routes
        return routes.distance.copy(), routes.next_hop.copy(), np.zeros_like(routes.next_hop)

    def _walked(self, repaired: RouteChanges, moved: Mapping[int, Roots]) -> RouteChanges:
        roots = [moved.get(site, own) for site, own in enumerate(self._roots)]
        distance, next_hop, position = self._scratch
        changed = repaired.source, repaired.destination
        distance[changed], next_hop[changed] = repaired.new_distance, repaired.new_next
        try:
            pair = self._candidates(repaired, moved)
            new = AllPairsRoutes(self._graph, distance, next_hop)
            hop, step = entries(new, roots, pair)
            known_hop, known_step = self._walks.hop[pair], self._walks.step(pair)
            starts = pair[(hop != known_hop) | (step != known_step)]
            affected = above(starts, self._walks.before, self._walks.hop, position.reshape(-1))
            try:
                return self._changes(affected, new, roots, position.reshape(-1))
            finally:
                position.reshape(-1)[affected] = 0
        finally:
            distance[changed], next_hop[changed] = repaired.old_distance, repaired.old_next

    def _candidates(self, repaired: RouteChanges, moved: Mapping[int, Roots]) -> Ints:
        """The pairs whose next hop may have changed, because tables or gates did."""
        count = self._graph.count
        found = [np.zeros(0, dtype=np.int64)]
        holders = _holders(self._roots)
        for site in np.unique(repaired.source):
            towards = repaired.destination[repaired.source == site].astype(np.int64)
            found += [holder * count + towards for holder in holders[site]]
        hop = self._walks.hop.reshape(count, count)
        for site, own in moved.items():
            found.append(site * count + np.arange(count))
            if not own:
                source, towards = np.nonzero(hop == site)
                found.append(source * count + towards)
        return np.unique(np.concatenate(found))

    def _changes(
        self, pair: Ints, new: AllPairsRoutes, roots: Sequence[Roots], position: Vertices
    ) -> RouteChanges:
        count = self._graph.count
        position[pair] = np.arange(1, len(pair) + 1)
        hop, step = entries(new, roots, pair)
        cost = walk_on(pair, hop, step, position, self._walks.cost)
        known = self._walks.cost[pair]
        reachable = np.flatnonzero((cost != UNREACHABLE) | (known != UNREACHABLE))
        pair, hop, cost, known = pair[reachable], hop[reachable], cost[reachable], known[reachable]
        return RouteChanges(
            (pair // count).astype(np.int32),
            (pair % count).astype(np.int32),
            known,
            cost,
            self._walks.hop[pair],
            np.where(cost == UNREACHABLE, UNREACHABLE, hop).astype(np.int32),
        )


def _holders(roots: Sequence[Roots]) -> list[list[int]]:
    """The sites, by site, whose gate's table is rooted at it."""
    found: list[list[int]] = [[] for _ in roots]
    for holder, own in enumerate(roots):
        for site in own:
            found[site].append(holder)
    return found


def edges_without(graph: SiteGraph, links: Ints) -> EdgeCosts:
    """The new costs of the pairs of sites that the loss of these links affects."""
    gone = np.isin(graph.link, links)
    starts = np.flatnonzero(graph.is_edge)
    group = np.cumsum(graph.is_edge) - 1
    touched = starts[np.unique(group[gone & graph.is_edge])]
    left = np.where(gone, 0, graph.cost)
    bounds = np.append(starts, len(graph.link))
    after = bounds[group[touched] + 1]
    cost = np.array(
        [next((c for c in left[a:b] if c), 0) for a, b in zip(touched, after, strict=True)],
        dtype=np.int64,
    )
    dearer = cost != graph.cost[touched]
    return EdgeCosts(graph.first[touched][dearer], graph.second[touched][dearer], cost[dearer])
