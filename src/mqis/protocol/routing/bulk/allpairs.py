"""All-pairs next hops: SciPy's Dijkstra for the distances, one pass over the edges for the hops.

For a fixed destination the next hop can be chosen locally: it is the smallest neighbour ``w`` of
``s`` with ``cost(s, w) + distance(w, d) == distance(s, d)``. That is the smallest first hop of all
cheapest paths, so ties need no second search, and blocks of destinations are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from mqis.protocol.routing.bulk.sitegraph import Ints, SiteGraph, Vertices
from mqis.protocol.routing.routing_table import UNREACHABLE

#: Destinations per block: their rows stay in the processor's caches.
_BLOCK = 128


@dataclass(frozen=True, slots=True)
class AllPairsRoutes:
    """``distance[s, d]`` and ``next_hop[s, d]``; both ``UNREACHABLE`` if there is no route."""

    graph: SiteGraph
    distance: Ints
    next_hop: Vertices


def all_pairs(graph: SiteGraph) -> AllPairsRoutes:
    distance = np.empty((graph.count, graph.count), dtype=np.int64)
    next_hop = np.empty((graph.count, graph.count), dtype=np.int32)
    for begin in range(0, graph.count, _BLOCK):
        end = min(begin + _BLOCK, graph.count)
        found = routes_to(graph, np.arange(begin, end))
        distance[:, begin:end], next_hop[:, begin:end] = found
    return AllPairsRoutes(graph, distance, next_hop)


def routes_to(graph: SiteGraph, destinations: npt.ArrayLike) -> tuple[Ints, Vertices]:
    """(distance, next hop), a row per source and a column per destination."""
    wanted = np.atleast_1d(np.asarray(destinations, dtype=np.int64))
    # Links work both ways: both directions cost the same.
    far = _whole(np.ascontiguousarray(dijkstra(graph.rows.matrix, indices=wanted).T))
    ranked = far[graph.rows.ranked]
    chosen = np.full(far.shape, UNREACHABLE, dtype=np.int32)
    for edge in graph.rows.slots:
        there, cost = graph.rows.neighbour[edge], graph.rows.cost[edge]
        through = far[there]
        through += cost[:, np.newaxis]
        tight = through == ranked[: len(edge)]
        np.copyto(chosen[: len(edge)], there[:, np.newaxis], where=tight)
    hop = np.empty_like(chosen)
    hop[graph.rows.ranked] = chosen
    hop[wanted, np.arange(len(wanted))] = wanted
    return far, hop


def routes_from(graph: SiteGraph, roots: npt.ArrayLike) -> tuple[Ints, Vertices]:
    """(distance, next hop) of one table by destination; it may be rooted at several sites."""
    own = np.atleast_1d(np.asarray(roots, dtype=np.int64))
    rows = graph.rows
    far = _whole(dijkstra(rows.matrix, indices=own, min_only=True))
    here = np.repeat(np.arange(graph.count), np.diff(rows.start))
    tight = (far[here] + rows.cost == far[rows.neighbour]) & (far[here] != UNREACHABLE)
    before, after = here[tight], rows.neighbour[tight]
    hop = np.full(graph.count, graph.count, dtype=np.int32)
    first = far[before] == 0
    np.minimum.at(hop, after[first], after[first])
    before, after = before[~first], after[~first]
    while True:  # once per site of the longest path
        known = hop.copy()
        np.minimum.at(hop, after, hop[before])
        if np.array_equal(known, hop):
            break
    hop[hop == graph.count] = UNREACHABLE
    hop[own] = own
    return far, hop


def from_roots(routes: AllPairsRoutes, roots: npt.ArrayLike) -> tuple[Ints, Vertices]:
    """The result of ``routes_from`` taken from all pairs: the smallest hop of nearest roots."""
    own = np.atleast_1d(np.asarray(roots, dtype=np.int64))
    never = np.iinfo(np.int64).max
    far = np.where(routes.distance[own] == UNREACHABLE, never, routes.distance[own])
    nearest = far.min(axis=0)
    hops = np.where(far == nearest, routes.next_hop[own], routes.graph.count).min(axis=0)
    reached = nearest != never
    found = np.where(reached, nearest, UNREACHABLE)
    return found, np.where(reached, hops, UNREACHABLE).astype(np.int32)


def _whole(far: npt.NDArray[np.float64]) -> Ints:
    """Distances as integers; SciPy's floats are exact up to 2**53, 9,000 million links."""
    far[np.isinf(far)] = UNREACHABLE
    return far.astype(np.int64)
