"""Incremental update of a routing table after a few links changed.

The result always equals that of ``build_table``. Only the vertices that the changed edges can
affect are recomputed:

1. Edges that became more expensive or were removed: vertices all of whose cheapest paths used them
   lose their distance, and so on outwards.
2. These vertices, and those at edges that became cheaper, take the best distance that their
   neighbours offer; improvements are propagated, cheapest first.
3. Where distances or cheapest paths changed, next hops are chosen again, outwards as far as they
   differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from mqis.protocol.routing.graph import Graph, Pair
from mqis.protocol.routing.table import UNREACHABLE, RoutingTable, build_table

#: Up to one changed edge in this many, an update is faster than a rebuild.
_WORTH_IT = 16


def changed_pairs(old: Graph, new: Graph) -> list[Pair]:
    """The pairs of vertices between which the cost differs; both graphs have the same sites."""
    return [
        (here, there)
        for here, (before, after) in enumerate(zip(old.costs, new.costs, strict=True))
        if before is not after and before != after
        for there in before.keys() | after.keys()
        if here < there and before.get(there) != after.get(there)
    ]


def update_table(table: RoutingTable, graph: Graph, roots: tuple[int, ...]) -> RoutingTable:
    """The table of these roots in ``graph``, updated from an earlier table if that is faster."""
    if table.graph.sites != graph.sites or table.roots != roots:
        return build_table(graph, roots)
    pairs = changed_pairs(table.graph, graph)
    if len(pairs) * _WORTH_IT > len(graph.links):
        return build_table(graph, roots)
    return _Update(table, graph).after(pairs)


class _Update:
    def __init__(self, table: RoutingTable, graph: Graph) -> None:
        self._old = table
        self._graph = graph
        self._roots = frozenset(table.roots)
        self._distance = list(table.distance)
        self._next_hop = list(table.next_hop)

    def after(self, pairs: Iterable[Pair]) -> RoutingTable:
        directed = [*pairs, *((there, here) for here, there in pairs)]
        lost = self._lose(directed)
        moved = self._settle(lost, directed)
        self._choose({there for _, there in directed} | moved)
        return RoutingTable(self._graph, self._old.roots, self._next_hop, self._distance)

    def _lose(self, directed: Iterable[Pair]) -> set[int]:
        """The vertices to which no old cheapest path leads any more."""
        distance, old_costs = self._old.distance, self._old.graph.costs
        lost: set[int] = set()
        heap = [
            (distance[there], there)
            for here, there in directed
            if there in old_costs[here]
            and distance[here] + old_costs[here][there] == distance[there]
        ]
        heapify(heap)
        while heap:
            far, here = heappop(heap)
            if here in lost or far == UNREACHABLE or self._is_held(here, lost):
                continue
            lost.add(here)
            self._distance[here] = UNREACHABLE
            for there, cost in old_costs[here].items():
                if far + cost == distance[there]:
                    heappush(heap, (distance[there], there))
        return lost

    def _is_held(self, vertex: int, lost: set[int]) -> bool:
        """True if a path of the old cost still leads to the vertex."""
        distance = self._old.distance
        return vertex in self._roots or any(
            near not in lost and distance[near] + cost == distance[vertex]
            for near, cost in self._graph.costs[vertex].items()
            if distance[near] != UNREACHABLE
        )

    def _settle(self, lost: set[int], directed: Iterable[Pair]) -> set[int]:
        """Computes new distances; returns the vertices whose distance has changed or was lost."""
        heap: list[tuple[int, int]] = []
        for vertex in lost | {there for _, there in directed}:
            for near, cost in self._graph.costs[vertex].items():
                if self._distance[near] != UNREACHABLE:
                    heap.append((self._distance[near] + cost, vertex))
        heapify(heap)
        while heap:
            far, here = heappop(heap)
            known = self._distance[here]
            if known != UNREACHABLE and far >= known:
                continue
            self._distance[here] = far
            lost.add(here)
            for there, cost in self._graph.costs[here].items():
                heappush(heap, (far + cost, there))
        return lost

    def _choose(self, touched: set[int]) -> None:
        """Chooses next hops again, by distance: each depends on nearer vertices only."""
        distance, costs = self._distance, self._graph.costs
        near_moved = {near for vertex in touched for near in costs[vertex]}
        heap = [(distance[vertex], vertex) for vertex in touched | near_moved]
        heapify(heap)
        done: set[int] = set()
        while heap:
            far, here = heappop(heap)
            if here in done or here in self._roots:
                continue
            done.add(here)
            hop = self._hop_of(here)
            if hop == self._next_hop[here]:
                continue
            self._next_hop[here] = hop
            for there, cost in costs[here].items():
                if far != UNREACHABLE and far + cost == distance[there]:
                    heappush(heap, (distance[there], there))

    def _hop_of(self, vertex: int) -> int:
        far = self._distance[vertex]
        if far == UNREACHABLE:
            return UNREACHABLE
        return min(
            vertex if near in self._roots else self._next_hop[near]
            for near, cost in self._graph.costs[vertex].items()
            if self._distance[near] != UNREACHABLE and self._distance[near] + cost == far
        )
