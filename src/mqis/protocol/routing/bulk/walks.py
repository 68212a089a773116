"""Routes from gate to gate, where gates belong to several sites or sites have none.

``hop[s, d]`` is where the gate of ``s`` sends what is for ``d``: a site; ``s`` itself if the gate
belongs to ``d`` and delivers; ``UNREACHABLE`` if it knows no way, or if nobody is there to take it.
Pairs are numbered ``s * count + d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mqis.protocol.routing.bulk.allpairs import Routes, from_roots
from mqis.protocol.routing.bulk.gates import Roots
from mqis.protocol.routing.bulk.sitegraph import Ints, Rows, Vertices
from mqis.protocol.routing.table import UNREACHABLE


@dataclass(frozen=True, slots=True)
class Walks:
    """All routes from gate to gate, by pair."""

    routes: Routes
    roots: Sequence[Roots]
    hop: Vertices
    #: Of all links on the way; UNREACHABLE if it does not arrive.
    cost: Ints
    #: Of each site those that may send to it.
    before: Rows

    @classmethod
    def of(cls, routes: Routes, roots: Sequence[Roots]) -> Walks:
        count = routes.graph.count
        pair = np.arange(count * count)
        hop, step = entries(routes, roots, pair)
        position = np.arange(1, len(pair) + 1)
        cost = walk_on(pair, hop, step, position, np.zeros(0, dtype=np.int64))
        return cls(routes, roots, hop, cost, _before(routes, roots))

    def step(self, pair: Ints) -> Ints:
        """What the first hop costs."""
        return entries(self.routes, self.roots, pair)[1]


def entries(routes: Routes, roots: Sequence[Roots], pair: Ints) -> tuple[Vertices, Ints]:
    """(hop, cost of that hop) of these pairs."""
    count = routes.graph.count
    source, destination = pair // count, pair % count
    hop = routes.next_hop[source, destination].astype(np.int64)
    special = [s for s, own in enumerate(roots) if own != (s,)]
    is_special = np.zeros(count, dtype=bool)
    is_special[special] = True
    near = routes.distance
    step = np.where(hop == UNREACHABLE, UNREACHABLE, near[source, np.maximum(hop, 0)])
    for site in np.unique(source[is_special[source]]):
        mine = np.flatnonzero(source == site)
        hop[mine], step[mine] = _special(routes, roots[site], int(site), destination[mine])
    closed = np.array([not own for own in roots])
    lost = (hop != UNREACHABLE) & (hop != source) & closed[np.maximum(hop, 0)]
    hop[lost] = step[lost] = UNREACHABLE
    return hop.astype(np.int32), step


def _special(routes: Routes, own: Roots, site: int, destination: Ints) -> tuple[Ints, Ints]:
    """Of a site whose gate has other sites too, or that has no gate."""
    if not own:
        here = destination == site
        return np.where(here, site, UNREACHABLE), np.where(here, 0, UNREACHABLE)
    far, hops = from_roots(routes, own)
    hop = hops[destination].astype(np.int64)
    hop[np.isin(destination, own)] = site
    step = np.where(hop == UNREACHABLE, UNREACHABLE, far[np.maximum(hop, 0)])
    return hop, step


def walk_on(pair: Ints, hop: Vertices, step: Ints, position: Ints | Vertices, known: Ints) -> Ints:
    """What the ways of these pairs cost. ``position`` tells which hops lead to one of them (its
    place among them plus one) and which (0) to a pair whose cost is ``known``."""
    count = int(np.sqrt(len(position)))
    source, destination = pair // count, pair % count
    arrived, lost = hop == source, hop == UNREACHABLE
    onwards = np.where(lost, 0, hop).astype(np.int64) * count + destination
    place = position[onwards].astype(np.int64) - 1
    ends = arrived | lost | (place < 0)
    cost = np.where(arrived, 0, step)
    outside = (place < 0) & ~arrived & ~lost
    cost[outside] += known[onwards[outside]]
    lost[outside] |= known[onwards[outside]] == UNREACHABLE
    at = np.where(ends, np.arange(len(pair)), place)
    cost = np.where(ends & lost, 0, cost)
    while not ends[at].all():  # each round doubles how far everybody looks ahead
        cost = np.where(at == np.arange(len(pair)), cost, cost + cost[at])
        at = at[at]
    last = ends & (at == np.arange(len(pair)))
    total = np.where(last, cost, cost + cost[at])
    return np.where(lost[at], UNREACHABLE, total)


def _before(routes: Routes, roots: Sequence[Roots]) -> Rows:
    rows, count = routes.graph.rows, routes.graph.count
    found: list[set[int]] = [set() for _ in range(count)]
    for holder, own in enumerate(roots):
        for site in own:
            for near in rows.neighbour[rows.start[site] : rows.start[site + 1]]:
                found[near].add(holder)
    start = np.cumsum([0, *map(len, found)])
    flat = np.array([s for holders in found for s in sorted(holders)], dtype=np.int32)
    return Rows(start, flat, np.zeros(len(flat), dtype=np.int64))
