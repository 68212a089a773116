"""RoutingTable (MS-MQBR 3.1.1.2, 3.1.3.1): for each site the next one on a least-cost path.

A gate that belongs to several sites has all of them at distance 0 (E-MQBR-05). Of equally cheap
routes the one with the smallest next-hop GUID is taken, so that a rebuild does not change routes
needlessly (E-MQBR-07). Rows keep the distance, which the choice among a destination's sites needs
(E-MQBR-06). Sites that cannot be reached have no row (E-MQBR-04).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from mqis.protocol.routing.graph import Graph
from mqis.wire.guid import Guid

UNREACHABLE = -1


@dataclass(frozen=True, slots=True)
class TableRow:
    destination: Guid
    next_hop: Guid
    distance: int


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The rows, by vertex of the graph. The next hop of an own site is itself (E-MQBR-03)."""

    graph: Graph
    roots: tuple[int, ...]
    next_hop: Sequence[int]
    distance: Sequence[int]

    def __len__(self) -> int:
        return sum(hop != UNREACHABLE for hop in self.next_hop)

    def __iter__(self) -> Iterator[TableRow]:
        return (self._row(v) for v, hop in enumerate(self.next_hop) if hop != UNREACHABLE)

    def same_rows(self, other: RoutingTable) -> bool:
        if self.graph.sites == other.graph.sites:
            mine, theirs = (self.next_hop, self.distance), (other.next_hop, other.distance)
            return mine == theirs
        return list(self) == list(other)

    def get(self, site: Guid) -> TableRow | None:
        vertex = self.graph.index.get(site)
        if vertex is None or not self.next_hop or self.next_hop[vertex] == UNREACHABLE:
            return None
        return self._row(vertex)

    def nearest(self, sites: Iterable[Guid]) -> TableRow | None:
        """The row of the closest of these sites; of equally close ones, the smallest GUID.

        Two gates that choose differently among a destination's sites could send a message
        back and forth (E-MQBR-06).
        """
        rows = [row for row in map(self.get, sites) if row is not None]
        return min(rows, key=lambda row: (row.distance, row.destination), default=None)

    def _row(self, vertex: int) -> TableRow:
        sites = self.graph.sites
        return TableRow(sites[vertex], sites[self.next_hop[vertex]], self.distance[vertex])


EMPTY = RoutingTable(Graph((), {}, (), {}), (), (), ())


def roots_of(graph: Graph, sites: Iterable[Guid]) -> tuple[int, ...]:
    """The vertices of those sites that are in the graph."""
    return tuple(sorted({graph.index[site] for site in sites if site in graph.index}))


def build_table(graph: Graph, roots: Sequence[int]) -> RoutingTable:
    """Dijkstra's algorithm. All costs are positive, so when a vertex leaves the heap, all vertices
    before it on cheapest paths are done, and its next hop is the smallest of theirs."""
    distance = [UNREACHABLE] * len(graph.sites)
    next_hop = [UNREACHABLE] * len(graph.sites)
    heap: list[tuple[int, int]] = []
    for root in roots:
        distance[root], next_hop[root] = 0, root
        heap.append((0, root))
    while heap:
        so_far, here = heappop(heap)
        if so_far > distance[here]:
            continue
        for there, cost in graph.costs[here].items():
            far, known = so_far + cost, distance[there]
            if known != UNREACHABLE and far > known:
                continue
            hop = next_hop[here] if so_far else there
            if far != known:
                distance[there], next_hop[there] = far, hop
                heappush(heap, (far, there))
            elif hop < next_hop[there]:
                next_hop[there] = hop
    return RoutingTable(graph, tuple(roots), next_hop, distance)
