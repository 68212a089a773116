"""The enterprise as a graph (MS-MQBR 3.1.3.1): sites are vertices, links edges of both directions.

A vertex is the rank of its site among the identifiers, so that the smaller of two vertices is the
one with the smaller GUID, which is how ties are broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from mqis.protocol.routing.model import Link
from mqis.wire.guid import Guid

#: The sort key of identifiers in the order of their text, faster than comparing them.
by_text = attrgetter("big_endian")

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Graph:
    """The cheapest link of each pair of sites."""

    sites: tuple[Guid, ...]
    index: Mapping[Guid, int]
    #: For each vertex: neighbour -> cost.
    costs: tuple[Mapping[int, int], ...]
    #: (smaller, larger vertex) -> the link that the edge stands for.
    links: Mapping[Pair, Guid]

    @classmethod
    def of(cls, sites: Iterable[Guid], links: Iterable[Link]) -> Graph:
        ordered = tuple(sorted(sites, key=by_text))
        index = {site: rank for rank, site in enumerate(ordered)}
        costs: list[dict[int, int]] = [{} for _ in ordered]
        chosen: dict[Pair, Guid] = {}
        for pair, link in cheapest(links, index).items():
            first, second = pair
            costs[first][second] = costs[second][first] = link.cost
            chosen[pair] = link.id
        return cls(ordered, index, tuple(costs), chosen)

    def link_between(self, first: int, second: int) -> Guid:
        return self.links[pair_of(first, second)]


def pair_of(first: int, second: int) -> Pair:
    return (first, second) if first < second else (second, first)


def cheapest(links: Iterable[Link], index: Mapping[Guid, int]) -> dict[Pair, Link]:
    """The cheapest of parallel links; with equal costs, that with the smallest identifier."""
    best: dict[Pair, Link] = {}
    for link in links:
        if link.fault(index) is not None:
            continue
        pair = pair_of(index[link.site1], index[link.site2])
        known = best.get(pair)
        if known is None or (link.cost, link.id) < (known.cost, known.id):
            best[pair] = link
    return best
