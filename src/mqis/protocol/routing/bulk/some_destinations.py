"""Routes from gate to gate for some destinations, without the tables of all others.

The same routes as ``walks.GateWalks``, column by column, so that tasks can share the work. The cost
of a hop is the difference of two distances, because the hop lies on a cheapest path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mqis.protocol.routing.bulk.allpairs import routes_to
from mqis.protocol.routing.bulk.gates import Roots
from mqis.protocol.routing.bulk.sitegraph import Ints, SiteGraph, Vertices
from mqis.protocol.routing.route_trace import HOP_LIMIT
from mqis.protocol.routing.routing_table import UNREACHABLE

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class GateColumns:
    """Routes to some destinations: a row per source, a column per destination.

    ``hop`` is the site that the gate of a source sends to; the source itself if its gate belongs to
    the destination; ``UNREACHABLE`` if it sends to nobody. ``cost`` is that of the whole route, and
    ``UNREACHABLE`` if it does not arrive. ``end`` is the last site on the route. ``wanted`` is the
    hop that the table names, even if that site has no gate.
    """

    destinations: Ints
    hop: Vertices
    cost: Ints
    end: Ints
    wanted: Vertices

    @property
    def arrives(self) -> npt.NDArray[np.bool_]:
        return np.not_equal(self.cost, UNREACHABLE)

    def next_site(self) -> Vertices:
        """The next site of each path: the destination itself where the gate belongs to it."""
        source = np.arange(len(self.hop))[:, np.newaxis]
        there = np.broadcast_to(self.destinations, self.hop.shape)
        return np.where(self.hop == source, there, self.hop).astype(np.int32)


def gate_columns(graph: SiteGraph, roots: Sequence[Roots], wanted: npt.ArrayLike) -> GateColumns:
    """The routes between sites; ``roots`` are the sites of the gate in charge of each site."""
    destinations = np.atleast_1d(np.asarray(wanted, dtype=np.int64))
    far, plain = routes_to(graph, destinations)
    nearest, hop = far.copy(), plain.astype(np.int64)
    for site, own in enumerate(roots):
        if own != (site,):
            nearest[site], hop[site] = _row(far, plain, own, site, destinations)
    source = np.arange(graph.count)[:, np.newaxis]
    closed = np.array([not own for own in roots], dtype=bool)
    tabled = hop.astype(np.int32)
    hop[(hop != UNREACHABLE) & (hop != source) & closed[np.maximum(hop, 0)]] = UNREACHABLE
    moves = (hop != UNREACHABLE) & (hop != source)
    onwards = np.where(moves, hop, source)
    step = np.where(moves, nearest - np.take_along_axis(far, onwards, axis=0), 0)
    cost, crossings, end = _followed(onwards, step, moves)
    arrived = np.take_along_axis(hop, end, axis=0) == end
    arrived &= crossings <= HOP_LIMIT
    cost = np.where(arrived, cost, UNREACHABLE)
    return GateColumns(destinations, hop.astype(np.int32), cost, end, tabled)


def _row(far: Ints, hop: Vertices, own: Roots, site: int, destinations: Ints) -> tuple[Ints, Ints]:
    """Distances and hops of a site whose gate has other sites too, or that has no gate."""
    if not own:
        here = destinations == site
        return np.where(here, 0, UNREACHABLE), np.where(here, site, UNREACHABLE)
    rows = list(own)
    offered = np.where(far[rows] == UNREACHABLE, _NEVER, far[rows])
    nearest = offered.min(axis=0)
    hops = np.where(offered == nearest, hop[rows], len(far)).min(axis=0).astype(np.int64)
    reached = nearest != _NEVER
    chosen = np.where(reached, hops, UNREACHABLE)
    chosen[np.isin(destinations, rows)] = site
    return np.where(reached, nearest, UNREACHABLE), chosen


def _followed(onwards: Ints, step: Ints, moves: npt.NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Costs, links crossed and last sites of all routes, by pointer doubling."""
    at, cost, crossings = onwards, step, moves.astype(np.int64)
    while True:
        further = np.take_along_axis(at, at, axis=0)
        if np.array_equal(further, at):
            return cost, crossings, at
        cost = cost + np.take_along_axis(cost, at, axis=0)
        crossings = crossings + np.take_along_axis(crossings, at, axis=0)
        at = further
