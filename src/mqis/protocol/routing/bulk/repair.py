"""Routes after edges became dearer or went, from the routes before.

Towards a destination ``d`` the next hops form a tree. A pair (s, d) changes its route exactly if
its way uses a changed edge, that is, if it lies in the subtree above that edge in the tree of
``d``; all others keep distance and next hop. So these pairs are found (``_above``), get the best
offer of the neighbours that did not change, and settle the rest among themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqis.protocol.routing.bulk.allpairs import Routes
from mqis.protocol.routing.bulk.sitegraph import Ints, Rows, Vertices
from mqis.protocol.routing.table import UNREACHABLE

_NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True, slots=True)
class Changes:
    """The pairs of sites whose route is another one now, and the routes."""

    source: Vertices
    destination: Vertices
    old_distance: Ints
    new_distance: Ints
    old_next: Vertices
    new_next: Vertices

    def __len__(self) -> int:
        return len(self.source)

    @property
    def unreachable(self) -> Ints:
        """The positions of those that have no route any more."""
        return np.flatnonzero(self.new_distance == UNREACHABLE)

    @property
    def dearer_by(self) -> Ints:
        """What each costs more; ``UNREACHABLE`` where there is no route."""
        gone = self.new_distance == UNREACHABLE
        return np.where(gone, UNREACHABLE, self.new_distance - self.old_distance)


@dataclass(frozen=True, slots=True)
class EdgeCosts:
    """New costs of some pairs of sites, none below the old one; 0 takes the edge away."""

    first: Vertices
    second: Vertices
    cost: Ints


class Repair:
    """Many what-ifs over the same routes; keeps what they share."""

    def __init__(self, routes: Routes) -> None:
        self.routes = routes
        self._rows = routes.graph.rows
        # Of an affected pair its position plus one; nothing but zeros between two repairs.
        self._position = np.zeros_like(routes.next_hop)

    def after(self, edges: EdgeCosts) -> Changes:
        here = np.concatenate((edges.first, edges.second))
        there = np.concatenate((edges.second, edges.first))
        edge, destination = np.nonzero(self.routes.next_hop[here] == there[:, np.newaxis])
        uses = here[edge] != destination  # a site's way to itself uses no edge
        pairs = _unique(here[edge][uses], destination[uses], self.routes.graph.count)
        source, destination = self._above(*pairs)
        try:
            self._position[source, destination] = np.arange(1, len(source) + 1)
            return self._settle(source, destination, self._changed_rows(here, there, edges.cost))
        finally:
            self._position[source, destination] = 0

    def _above(self, source: Vertices, destination: Vertices) -> tuple[Vertices, Vertices]:
        """These pairs and all whose way leads through them."""
        found = [(source, destination)]
        self._position[source, destination] = 1
        while len(source):
            owner, edge = self._rows.spread(source)
            before, towards = self._rows.neighbour[edge], destination[owner]
            through = self.routes.next_hop[before, towards] == source[owner]
            through &= (self._position[before, towards] == 0) & (before != towards)
            source, destination = before[through], towards[through]
            self._position[source, destination] = 1
            found.append((source, destination))
        return (
            np.concatenate([pair[0] for pair in found]),
            np.concatenate([pair[1] for pair in found]),
        )

    def _changed_rows(self, here: Vertices, there: Vertices, cost: Ints) -> Rows:
        """The costs with the changes; an edge that went is never worth it."""
        costs = self._rows.cost.copy()
        both = np.concatenate((cost, cost))
        for vertex, neighbour, new in zip(here, there, both, strict=True):
            begin, end = self._rows.start[vertex], self._rows.start[vertex + 1]
            slot = begin + np.searchsorted(self._rows.neighbour[begin:end], neighbour)
            costs[slot] = new or _NEVER
        return Rows(self._rows.start, self._rows.neighbour, costs)

    def _settle(self, source: Vertices, destination: Vertices, rows: Rows) -> Changes:
        distance, next_hop = self.routes.distance, self.routes.next_hop
        owner, edge = rows.spread(source)
        near, cost, towards = rows.neighbour[edge], rows.cost[edge], destination[owner]
        among = self._position[near, towards].astype(np.int64) - 1
        far = distance[near, towards]
        offer = np.where((among >= 0) | (far == UNREACHABLE), _NEVER, far + cost)
        begin = np.searchsorted(owner, np.arange(len(source)))
        best = _least(offer, begin)
        inner = np.flatnonzero(among >= 0)
        while len(inner):
            offer[inner] = best[among[inner]] + cost[inner]
            known, best = best, _least(offer, begin)
            if np.array_equal(known, best):
                break
        best = np.minimum(best, _NEVER)
        tight = (offer == best[owner]) & (offer < _NEVER)
        hop = _least(np.where(tight, near, len(rows.start)), begin)
        gone = best >= _NEVER
        return Changes(
            source,
            destination,
            distance[source, destination],
            np.where(gone, UNREACHABLE, best),
            next_hop[source, destination],
            np.where(gone, UNREACHABLE, hop).astype(np.int32),
        )


def _least(offers: Ints, begin: Ints) -> Ints:
    """The least of each run. Every affected site has a neighbour: it had a way to use."""
    return np.minimum.reduceat(offers, begin) if len(begin) else offers


def _unique(source: Vertices, destination: Vertices, count: int) -> tuple[Vertices, Vertices]:
    flat = np.unique(source.astype(np.int64) * count + destination)
    return (flat // count).astype(np.int32), (flat % count).astype(np.int32)
