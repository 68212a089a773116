"""Places sites on the map. The same sites and links get the same places in every process.

Few sites, and the discs of regions, are placed by their distances in the graph (``stress``).
networkx finds regions, and places the sites in each (its force-directed layout with a fixed seed):
that is the extra ``graphs``. This is done here and not by the library of the console, so that
``mqis map`` draws the same picture without a browser.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from mqis.views.sitemap.model import Point
from mqis.views.sitemap.stress import stress_layout

#: The least usual distance of two neighbours in a region, and of two regions.
SPACING, _GAP = 64.0, 60.0
#: Sites of a region for the force-directed layout, which takes seconds for more.
_MOST_FORCED = 250
#: The most by which a layout is stretched to keep captions apart.
_MOST_STRETCH = 4.0
_ROUNDS = 100
#: The radius of the spiral's n-th seed is this times the spacing and the root of n.
_SEED = 0.62

Size = tuple[float, float]
Places = dict[int, Point]


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    members: Members
    centre: int
    middle: Point
    radius: float


@dataclass(frozen=True, slots=True)
class PlacedSites:
    places: Places
    #: Empty if there are too few sites for regions.
    regions: tuple[PlacedRegion, ...]


def place_sites(sizes: Sequence[Size], edges: Iterable[tuple[int, int]]) -> PlacedSites:
    """Places sites with captions of these sizes; ``edges`` are pairs of their numbers."""
    if len(sizes) <= MOST_WITHOUT:
        drawn = stress_layout(range(len(sizes)), dict.fromkeys(edges, 1.0), 1.6)
        return PlacedSites(_stretched(_lying(drawn), sizes), ())
    import networkx as nx  # noqa: PLC0415 -- slow to load, and only large maps need it

    graph = nx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(sorted(edges))
    parts = find_regions(graph)
    found = _place_regions(graph, parts)
    return found if len(parts) > 1 else PlacedSites(found.places, ())


def _lying(places: Places) -> Places:
    """Turns a layout that is higher than wide, as screens and pages of text are wide."""
    spans = [max(side) - min(side) for side in zip(*places.values(), strict=True)] or [0.0, 0.0]
    return {site: (y, x) for site, (x, y) in places.items()} if spans[1] > spans[0] else places


def _stretched(places: Places, sizes: Sequence[Size]) -> Places:
    """Stretches a layout until no captions overlap, or by the most that is allowed."""
    needs = [
        min(
            (sizes[a][0] + sizes[b][0]) / 2 / max(abs(places[a][0] - places[b][0]), 1e-6),
            (sizes[a][1] + sizes[b][1]) / 2 / max(abs(places[a][1] - places[b][1]), 1e-6),
        )
        for a, b in combinations(places, 2)
    ]
    factor = max(130.0, min(max(needs, default=0), 130.0 * _MOST_STRETCH))
    return {site: (x * factor, y * factor) for site, (x, y) in places.items()}


# --- regions --------------------------------------------------------------------------------------


def _place_regions(graph: Any, parts: Sequence[Members]) -> PlacedSites:
    inside = [_inside(graph, members) for members in parts]
    radii = [max(math.hypot(x, y) for x, y in places.values()) + SPACING / 2 for places in inside]
    middles = _middles(graph, parts, radii)
    found: Places = {}
    for (left, top), places in zip(middles, inside, strict=True):
        found |= {site: (x + left, y + top) for site, (x, y) in places.items()}
    regions = (
        PlacedRegion(members, centre_of(members, graph), middle, radius)
        for members, middle, radius in zip(parts, middles, radii, strict=True)
    )
    return PlacedSites(found, tuple(regions))


def _inside(graph: Any, members: Members) -> Places:
    """Places the sites of one region around (0, 0)."""
    import networkx as nx  # noqa: PLC0415

    part = graph.subgraph(members)
    if not nx.is_connected(part):
        return _spiral(members)
    spiral = _spiral(_from_the_centre(part, members))
    if not 3 <= len(members) <= _MOST_FORCED:
        return spiral
    ordered = nx.Graph()  # a subgraph has the order of a set
    ordered.add_nodes_from(members)
    ordered.add_edges_from(sorted((min(edge), max(edge)) for edge in part.edges))
    drawn = nx.spring_layout(ordered, pos=spiral, seed=1, iterations=_ROUNDS, method="force")
    return _snapped(drawn, list(spiral.values()))


def _from_the_centre(part: Any, members: Members) -> list[int]:
    """The sites by their distance from the one with the most links."""
    import networkx as nx  # noqa: PLC0415

    hops: Mapping[int, int] = nx.single_source_shortest_path_length(part, centre_of(members, part))
    return sorted(members, key=lambda site: (hops[site], site))


def _spiral(sites: Sequence[int]) -> Places:
    """Places sites on a spiral with equal distances, like the seeds of a sunflower."""
    turn = math.pi * (3 - math.sqrt(5))
    far = [SPACING * _SEED * math.sqrt(n) for n in range(len(sites))]
    return {
        site: (far[n] * math.cos(n * turn), far[n] * math.sin(n * turn))
        for n, site in enumerate(sites)
    }


def _snapped(drawn: Mapping[int, Any], free: Sequence[Point]) -> Places:
    """Moves each site to one of the free places, all together by the least squares.

    A force-directed layout puts sites with the same neighbours on top of each other; the free
    places have a distance.
    """
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415
    from scipy.spatial.distance import cdist  # noqa: PLC0415

    sites = list(drawn)
    found = np.array([drawn[site] for site in sites])
    found -= found.mean(axis=0)
    # The ranks of the distances from the middle, so that one far site does not press the others.
    ranks = np.hypot(*found.T).argsort().argsort()
    angles = np.arctan2(found[:, 1], found[:, 0])
    radii = SPACING * _SEED * np.sqrt(ranks)
    wanted = np.column_stack((radii * np.cos(angles), radii * np.sin(angles)))
    rows, columns = linear_sum_assignment(cdist(wanted, np.array(free), "sqeuclidean"))
    return {sites[row]: free[column] for row, column in zip(rows, columns, strict=True)}


def _middles(graph: Any, parts: Sequence[Members], radii: Sequence[float]) -> list[Point]:
    """Places the discs of regions: linked ones side by side, none on another."""
    region_of = {site: number for number, members in enumerate(parts) for site in members}
    between = {
        (a, b): radii[a] + radii[b] + _GAP
        for a, b in sorted({(region_of[a], region_of[b]) for a, b in graph.edges})
        if a != b
    }
    places = _lying(stress_layout(range(len(parts)), between, 2 * max(radii) + _GAP))
    factor = max(
        (
            (radii[a] + radii[b] + _GAP / 2) / max(math.dist(places[a], places[b]), 1e-6)
            for a, b in combinations(range(len(parts)), 2)
        ),
        default=1.0,
    )
    stretch = min(max(factor, 0.1), 3 * _MOST_STRETCH)
    return [(places[n][0] * stretch, places[n][1] * stretch) for n in range(len(parts))]


#: The most sites of a map without regions.
MOST_WITHOUT = 60
#: The most regions; the sites of smaller ones make up one last region.
MOST_REGIONS = 60
#: Fewer linked sites than this, without a link to others, are no region of their own.
_FEW = 6

Members = tuple[int, ...]


def find_regions(graph: Any) -> list[Members]:
    """The regions of a networkx graph, the largest first; few sites apart from all are the last."""
    import networkx as nx  # noqa: PLC0415 -- slow to load, and only pictures need it

    pieces = sorted(nx.connected_components(graph), key=lambda piece: (-len(piece), min(piece)))
    apart = [piece for piece in pieces if len(piece) < _FEW]
    linked = graph.subgraph(site for piece in pieces if len(piece) >= _FEW for site in piece)
    parts: list[Members] = []
    for community in nx.community.louvain_communities(linked, seed=1) if len(linked) else ():
        found = nx.connected_components(graph.subgraph(community))
        parts += [tuple(sorted(part)) for part in found]
    return _limited(parts, [site for piece in apart for site in sorted(piece)])


def _limited(parts: Iterable[Members], apart: Sequence[int]) -> list[Members]:
    """Sorts the regions, and gathers the smallest ones with the sites that are apart."""
    ordered = sorted(parts, key=lambda part: (-len(part), part))
    last = [*(site for part in ordered[MOST_REGIONS - 1 :] for site in part), *apart]
    return [*ordered[: MOST_REGIONS - 1], *([tuple(last)] if last else [])]


def centre_of(members: Sequence[int], graph: Any) -> int:
    """The site with the most links, which gives the region its name."""
    return max(members, key=lambda site: (graph.degree[site], -site))
