"""Routes from gate to gate, for gates of several sites and sites without a gate.

``hop[s, d]`` is the site to which the gate of ``s`` sends messages for ``d``; ``s`` itself if the
gate belongs to ``d``; ``UNREACHABLE`` if it has no route, or if the next site has no gate.
Pairs are numbered ``s * count + d``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mqis.protocol.routing.bulk.allpairs import AllPairsRoutes, from_roots
from mqis.protocol.routing.bulk.gates import Roots
from mqis.protocol.routing.bulk.sitegraph import AdjacencyRows, Ints, Vertices
from mqis.protocol.routing.routing_table import UNREACHABLE

#: Destinations per block, which bounds the memory.
_BLOCK = 128


@dataclass(frozen=True, slots=True)
class GateWalks:
    """All routes from gate to gate, by pair."""

    routes: AllPairsRoutes
    roots: Sequence[Roots]
    hop: Vertices
    #: The cost of all links on the route; UNREACHABLE if it does not arrive.
    cost: Ints
    #: For each site, the sites that may send to it.
    before: AdjacencyRows

    @classmethod
    def of(cls, routes: AllPairsRoutes, roots: Sequence[Roots]) -> GateWalks:
        count = routes.graph.count
        hop = np.empty((count, count), dtype=np.int32)
        cost = np.empty((count, count), dtype=np.int64)
        for begin in range(0, count, _BLOCK):
            block = np.arange(begin, min(begin + _BLOCK, count))
            pair = np.add.outer(np.arange(count) * count, block).reshape(-1)
            hops, steps = entries(routes, roots, pair)
            shape = count, len(block)
            hop[:, block] = hops.reshape(shape)
            cost[:, block] = _walk(hop[:, block], steps.reshape(shape))
        return cls(routes, roots, hop.reshape(-1), cost.reshape(-1), _before(routes, roots))

    def step(self, pair: Ints) -> Ints:
        """The costs of the first hops."""
        return entries(self.routes, self.roots, pair)[1]


def entries(routes: AllPairsRoutes, roots: Sequence[Roots], pair: Ints) -> tuple[Vertices, Ints]:
    """The hops of these pairs, and the costs of these hops."""
    count = routes.graph.count
    source, destination = pair // count, pair % count
    hop = routes.next_hop[source, destination].astype(np.int64)
    near = routes.distance[source, np.maximum(hop, 0)]
    step = np.where(hop == UNREACHABLE, UNREACHABLE, near)
    for site, mine in _groups(source, np.array([own != (s,) for s, own in enumerate(roots)])):
        hop[mine], step[mine] = _special(routes, roots[site], site, destination[mine])
    closed = np.array([not own for own in roots])
    lost = (hop != UNREACHABLE) & (hop != source) & closed[np.maximum(hop, 0)]
    hop[lost] = step[lost] = UNREACHABLE
    return hop.astype(np.int32), step


def _groups(source: Ints, special: npt.NDArray[np.bool_]) -> Iterator[tuple[int, Ints]]:
    """Each special site, with its positions among the sources."""
    picked = np.flatnonzero(special[source])
    picked = picked[np.argsort(source[picked], kind="stable")]
    sites, begin = np.unique(source[picked], return_index=True)
    for site, first, last in zip(sites, begin, [*begin[1:], len(picked)], strict=False):
        yield int(site), picked[first:last]


def _special(routes: AllPairsRoutes, own: Roots, site: int, destination: Ints) -> tuple[Ints, Ints]:
    """Hops and costs of a site whose gate has other sites too, or that has no gate."""
    if not own:
        here = destination == site
        return np.where(here, site, UNREACHABLE), np.where(here, 0, UNREACHABLE)
    far, hops = from_roots(routes, own)
    hop = hops[destination].astype(np.int64)
    hop[np.isin(destination, own)] = site
    step = np.where(hop == UNREACHABLE, UNREACHABLE, far[np.maximum(hop, 0)])
    return hop, step


def _walk(hop: Vertices, step: Ints) -> Ints:
    """The costs of the routes of whole columns, by pointer doubling."""
    count, width = hop.shape
    source = np.arange(count)[:, np.newaxis]
    end = (hop == source) | (hop == UNREACHABLE)
    bottom = np.zeros((1, width), dtype=np.int64)
    at = np.vstack((np.where(end, count, hop), bottom + count))
    cost = np.vstack((np.where(end, 0, step), bottom))
    lost = np.vstack((hop == UNREACHABLE, bottom != 0))
    while (at != count).any():
        cost += np.take_along_axis(cost, at, axis=0)
        lost |= np.take_along_axis(lost, at, axis=0)
        at = np.take_along_axis(at, at, axis=0)
    return np.where(lost, UNREACHABLE, cost)[:count]


def walk_on(pair: Ints, hop: Vertices, step: Ints, position: Vertices, known: Ints) -> Ints:
    """The costs of some pairs' routes. ``position`` of a hop's pair is 0 if its cost is
    ``known``, else one more than its place among these pairs."""
    count, number = math.isqrt(len(position)), len(pair)
    arrived, gone = hop == pair // count, hop == UNREACHABLE
    onwards = np.where(gone, 0, hop).astype(np.int64) * count + pair % count
    place = position[onwards].astype(np.int64) - 1
    outside = (place < 0) & ~arrived & ~gone
    rest = np.where(outside, known[onwards], 0)
    end = arrived | gone | outside
    at = np.append(np.where(end, number, place), number)
    cost = np.append(np.where(arrived | gone, 0, step + rest), 0)
    lost = np.append(gone | (rest == UNREACHABLE), False)
    while (at != number).any():
        cost += cost[at]
        lost |= lost[at]
        at = at[at]
    return np.where(lost, UNREACHABLE, cost)[:number]


def _before(routes: AllPairsRoutes, roots: Sequence[Roots]) -> AdjacencyRows:
    rows, count = routes.graph.rows, routes.graph.count
    found: list[set[int]] = [set() for _ in range(count)]
    for holder, own in enumerate(roots):
        for site in own:
            for near in rows.neighbour[rows.start[site] : rows.start[site + 1]]:
                found[near].add(holder)
    start = np.cumsum([0, *map(len, found)])
    flat = np.array([s for holders in found for s in sorted(holders)], dtype=np.int32)
    return AdjacencyRows(start, flat, np.zeros(len(flat), dtype=np.int64))
