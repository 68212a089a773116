"""One queue manager's routing table, kept up to date (MS-MQBR 3.1.2, 3.1.3, 3.1.6).

It is built at the start, again every hour, and at once when the directory changes something that it
depends on. If the directory cannot be read, the table stays and the read is retried soon
(E-MQBR-09). A finished table replaces the old one as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from mqis.protocol.routing.directorydata import READ_ERRORS
from mqis.protocol.routing.graph import Graph, Pair
from mqis.protocol.routing.nexthops import Decision, is_site_gate, next_hops
from mqis.protocol.routing.routing_table import (
    EMPTY,
    UNREACHABLE,
    RoutingTable,
    build_table,
    roots_of,
)
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

#: QueueManager Query Timer (3.1.3).
QUERY_PERIOD_S = 3600.0
#: Seconds until a failed read of the directory is retried.
RETRY_S = 60.0


def routing_table(
    snapshot: Snapshot, machine: Guid, previous: RoutingTable = EMPTY
) -> RoutingTable:
    """RoutingTable Initialization (3.1.3.1), updating an earlier table where that is faster."""
    if not is_site_gate(snapshot, machine) or not snapshot.sites or not snapshot.links:
        return EMPTY
    graph = snapshot.graph
    roots = roots_of(graph, snapshot.machines[machine].sites)
    return update_table(previous, graph, roots)


class RoutingTableKeeper:
    """Keeps the table of ``machine``. ``read`` takes a snapshot of the directory, or raises."""

    def __init__(self, machine: Guid, read: Callable[[], Snapshot], now: float) -> None:
        self._machine = machine
        self._read = read
        self._due = now
        self.snapshot = Snapshot({}, {}, {})
        self.table = EMPTY
        #: The error of the last read of the directory; None if it succeeded.
        self.error: MqisError | None = None
        #: Tables computed since the start, and failed reads of the directory.
        self.builds = 0
        self.failures = 0
        self.handle_timer(now)

    def next_timer(self) -> float:
        return self._due

    def handle_timer(self, now: float) -> bool:
        """Rebuilds the table if that is due; returns whether it has changed."""
        if now < self._due:
            return False
        try:
            snapshot = self._read()
        except READ_ERRORS as error:
            self.failed(error, now)
            return False
        return self.refreshed(snapshot, now)

    def refreshed(self, snapshot: Snapshot, now: float) -> bool:
        """Rebuilds the table from a snapshot read elsewhere; returns whether it has changed."""
        self.error = None
        self._due = now + QUERY_PERIOD_S
        return self._swap(snapshot, routing_table(snapshot, self._machine, self.table))

    def failed(self, error: MqisError, now: float) -> None:
        """Notes a failed read: keeps the table and schedules a retry."""
        self.error = error
        self.failures += 1
        self._due = now + RETRY_S

    def next_hops(self, destination: Guid) -> Decision:
        """The next hops of a message from this queue manager; ``NoRouteError`` if there is none."""
        return next_hops(self.snapshot, self.table, self._machine, destination)

    def _swap(self, snapshot: Snapshot, table: RoutingTable) -> bool:
        different = not table.same_rows(self.table)
        self.builds += 1
        self.snapshot, self.table = snapshot, table
        return different


# --- Incremental update of a routing table after a few links changed ------------------------------
# The result always equals that of ``build_table``. Only the vertices that the changed edges can
# affect are recomputed:
#
# 1. Edges that became more expensive or were removed: vertices all of whose cheapest paths used
#    them lose their distance, and so on outwards.
# 2. These vertices, and those at edges that became cheaper, take the best distance that their
#    neighbours offer; improvements are propagated, cheapest first.
# 3. Where distances or cheapest paths changed, next hops are chosen again, outwards as far as they
#    differ.

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
