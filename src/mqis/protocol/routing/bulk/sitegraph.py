"""The graph as arrays: usable links, and the cheapest of each pair as compressed sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mqis.protocol.directory.types.link import MAX_LINK_COST
from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.protocol.routing.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Vertices = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SiteGraph:
    """``count`` sites and the links between them.

    ``link`` numbers the links as they were given; those that cannot be used (an end outside the
    range, both ends the same, a cost outside 1 to 999,999) are left out. Links stand ascending by
    pair of sites, then cost, then number: the first of each pair is its edge.
    """

    count: int
    link: Ints
    first: Vertices
    second: Vertices
    cost: Ints

    @classmethod
    def of(
        cls, count: int, first: npt.ArrayLike, second: npt.ArrayLike, cost: npt.ArrayLike
    ) -> SiteGraph:
        """A graph from the ends and costs of all links, by site number."""
        a, b, c = (np.asarray(given, dtype=np.int64) for given in (first, second, cost))
        low, high = np.minimum(a, b), np.maximum(a, b)
        usable = (low >= 0) & (high < count) & (low != high) & (c >= 1) & (c <= MAX_LINK_COST)
        link = np.flatnonzero(usable)
        low, high, c = low[link], high[link], c[link]
        order = np.lexsort((link, c, high, low))
        ends = low[order].astype(np.int32), high[order].astype(np.int32)
        return cls(count, link[order], *ends, c[order])

    @cached_property
    def is_edge(self) -> npt.NDArray[np.bool_]:
        """The mask of the links that are the cheapest of their pair."""
        fresh = np.ones(len(self.link), dtype=bool)
        fresh[1:] = (np.diff(self.first) != 0) | (np.diff(self.second) != 0)
        return fresh

    @cached_property
    def rows(self) -> AdjacencyRows:
        edge = self.is_edge
        return AdjacencyRows.of(self.count, self.first[edge], self.second[edge], self.cost[edge])


@dataclass(frozen=True)
class AdjacencyRows:
    """The neighbours of ``v``, ascending, are ``neighbour[start[v]:start[v + 1]]``."""

    start: Ints
    neighbour: Vertices
    cost: Ints

    @classmethod
    def of(cls, count: int, first: Vertices, second: Vertices, cost: Ints) -> AdjacencyRows:
        here, there = np.concatenate((first, second)), np.concatenate((second, first))
        order = np.lexsort((there, here))
        start = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(here, minlength=count), out=start[1:])
        return cls(start, there[order], np.concatenate((cost, cost))[order])

    @cached_property
    def matrix(self) -> Any:
        """The sparse matrix for SciPy's algorithms."""
        count = len(self.start) - 1
        parts = self.cost.astype(np.float64), self.neighbour, self.start.astype(np.int32)
        return csr_array(parts, shape=(count, count))

    @cached_property
    def ranked(self) -> Ints:
        """All vertices, those with the most neighbours first."""
        return np.argsort(-np.diff(self.start), kind="stable")

    @cached_property
    def slots(self) -> list[Ints]:
        """One edge of each vertex, by rank, from every vertex's last neighbour to its first.

        A slot ends before the vertices that have fewer neighbours.
        """
        degree, start = np.diff(self.start)[self.ranked], self.start[self.ranked]
        slots = range(int(degree.max(initial=0)) - 1, -1, -1)
        return [start[: np.count_nonzero(degree > slot)] + slot for slot in slots]

    def spread(self, vertices: Ints) -> tuple[Ints, Ints]:
        """All edges of these vertices as (position among ``vertices``, edge), in order."""
        begin = self.start[vertices]
        degree = self.start[vertices + 1] - begin
        owner = np.repeat(np.arange(len(vertices)), degree)
        before = np.cumsum(degree) - degree
        return owner, (begin - before)[owner] + np.arange(len(owner))


def site_graph(snapshot: Snapshot) -> tuple[SiteGraph, tuple[Guid, ...], Sequence[Guid]]:
    """The graph of a snapshot, and its sites and links by number."""
    index = snapshot.graph.index
    links = sorted(snapshot.links.values(), key=lambda link: link.id.big_endian)
    first = [index.get(link.site1, -1) for link in links]
    second = [index.get(link.site2, -1) for link in links]
    graph = SiteGraph.of(len(index), first, second, [link.cost for link in links])
    return graph, snapshot.graph.sites, [link.id for link in links]
