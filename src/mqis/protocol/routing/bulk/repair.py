"""Routes after edges became more expensive or were removed, from the routes before.

Towards a destination ``d`` the next hops form a tree. A pair (s, d) changes its route exactly if
its path uses a changed edge, that is, if it lies in the subtree above that edge in the tree of
``d``; all others keep distance and next hop. So these pairs are found (``above``), get the best
distance over neighbours that did not change, and then improve each other's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqis.protocol.routing.bulk.allpairs import AllPairsRoutes
from mqis.protocol.routing.bulk.sitegraph import AdjacencyRows, Ints, Vertices
from mqis.protocol.routing.routing_table import UNREACHABLE

_NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """The pairs of sites whose route has changed, with the old and new routes."""

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
        """The positions of the pairs that have no route any more."""
        return np.flatnonzero(self.new_distance == UNREACHABLE)

    @property
    def dearer_by(self) -> Ints:
        """The additional cost of each pair that has a route before and after."""
        kept = (self.new_distance != UNREACHABLE) & (self.old_distance != UNREACHABLE)
        more: Ints = self.new_distance[kept] - self.old_distance[kept]
        return more


@dataclass(frozen=True, slots=True)
class EdgeCosts:
    """New costs of some pairs of sites, none below the old one; 0 removes the edge."""

    first: Vertices
    second: Vertices
    cost: Ints


class Repair:
    """Computes many what-ifs over the same routes, with shared arrays."""

    def __init__(self, routes: AllPairsRoutes) -> None:
        self.routes = routes
        self._rows = routes.graph.rows
        self._count = routes.graph.count
        self._neighbour = self._rows.neighbour.astype(np.int64)
        # A pair (s, d) is the number s * count + d from here on; flat arrays are faster to index.
        self._distance = routes.distance.reshape(-1)
        self._next_hop = routes.next_hop.reshape(-1)
        # The position of an affected pair plus one; all zeros between two repairs.
        self._position = np.zeros_like(self._next_hop)

    def after(self, edges: EdgeCosts) -> RouteChanges:
        here = np.concatenate((edges.first, edges.second))
        there = np.concatenate((edges.second, edges.first))
        edge, towards = np.nonzero(self.routes.next_hop[here] == there[:, np.newaxis])
        starts = np.unique(here[edge].astype(np.int64) * self._count + towards)
        pair = above(starts, self._rows, self._next_hop, self._position)
        try:
            self._position[pair] = np.arange(1, len(pair) + 1)
            return self._settle(pair, self._changed_rows(here, there, edges.cost))
        finally:
            self._position[pair] = 0

    def _changed_rows(self, here: Vertices, there: Vertices, cost: Ints) -> AdjacencyRows:
        """The rows with the new costs; a removed edge costs ``_NEVER``."""
        costs = self._rows.cost.copy()
        both = np.concatenate((cost, cost))
        for vertex, neighbour, new in zip(here, there, both, strict=True):
            begin, end = self._rows.start[vertex], self._rows.start[vertex + 1]
            slot = begin + np.searchsorted(self._rows.neighbour[begin:end], neighbour)
            costs[slot] = new or _NEVER
        return AdjacencyRows(self._rows.start, self._rows.neighbour, costs)

    def _settle(self, pair: Ints, rows: AdjacencyRows) -> RouteChanges:
        source, destination = pair // self._count, pair % self._count
        owner, edge = rows.spread(source)
        near, cost = self._neighbour[edge], rows.cost[edge]
        onwards = near * self._count + destination[owner]
        among = self._position[onwards].astype(np.int64) - 1
        far = self._distance[onwards]
        offer = np.minimum(far + cost, _NEVER)
        offer[(among >= 0) | (far == UNREACHABLE)] = _NEVER
        begin = np.searchsorted(owner, np.arange(len(source)))
        best = _least(offer, begin)
        inner = np.flatnonzero(among >= 0)
        _relax(best, among[inner], owner[inner], cost[inner])
        offer[inner] = np.minimum(best[among[inner]] + cost[inner], _NEVER)
        tight = (offer == best[owner]) & (offer < _NEVER)
        hop = _least(np.where(tight, near, len(rows.start)), begin)
        gone = best >= _NEVER
        return RouteChanges(
            source.astype(np.int32),
            destination.astype(np.int32),
            self._distance[pair],
            np.where(gone, UNREACHABLE, best),
            self._next_hop[pair],
            np.where(gone, UNREACHABLE, hop).astype(np.int32),
        )


def above(pair: Ints, rows: AdjacencyRows, next_hop: Vertices, position: Vertices) -> Ints:
    """Finds these pairs and all whose paths lead through them; marks them in ``position``.

    ``rows`` lists for each site at least all sites that may have it as next hop.
    """
    count = len(rows.start) - 1
    found = [pair]
    position[pair] = 1
    while len(pair):
        source, destination = pair // count, pair % count
        owner, edge = rows.spread(source)
        before = rows.neighbour[edge] * np.int64(count) + destination[owner]
        pair = before[(next_hop[before] == source[owner]) & (position[before] == 0)]
        position[pair] = 1
        found.append(pair)
    return np.concatenate(found)


def _relax(best: Ints, giver: Ints, taker: Ints, cost: Ints) -> None:
    """Propagates distances among the affected pairs until none improves."""
    pairs = np.arange(len(giver))
    while len(pairs):
        offer = best[giver[pairs]] + cost[pairs]
        gains = offer < best[taker[pairs]]
        winner = taker[pairs][gains]
        np.minimum.at(best, winner, offer[gains])
        improved = np.zeros(len(best), dtype=bool)
        improved[winner] = True
        pairs = np.flatnonzero(improved[giver])


def _least(offers: Ints, begin: Ints) -> Ints:
    """The minimum of each run. No run is empty: an affected site had a route by a neighbour."""
    return np.minimum.reduceat(offers, begin) if len(begin) else offers
