"""Places the vertices of a small graph so that distances on the plane are like those in the graph.

Each round moves every vertex to where all others want it (stress majorisation: Gansner, Koren and
North, 2004). This is plain Python, which takes half a second for sixty vertices, and the same
result everywhere: it begins with a circle, and nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from statistics import median

from mqis.views.sitemap.model import Point

#: Rounds at most, and the largest move of a round, in parts of the whole, that ends them sooner.
_ROUNDS, _STILL = 200, 3e-4

Pair = tuple[int, int]
Neighbours = dict[int, dict[int, float]]


def stress_layout(
    vertices: Sequence[int], lengths: Mapping[Pair, float], apart: float
) -> dict[int, Point]:
    """The places; pieces without an edge between them are ``apart`` from the largest one."""
    near: Neighbours = {vertex: {} for vertex in vertices}
    for (a, b), length in sorted(lengths.items()):
        near[a][b] = near[b][a] = length
    _connect(near, apart)
    if len(near) < 3:
        far = sum(length for there in near.values() for length in there.values()) / 2
        return {vertex: (number * far, 0.0) for number, vertex in enumerate(near)}
    distances = {vertex: _distances(near, vertex) for vertex in near}
    places = _settled(distances)
    # Stress allows short edges to shrink; the median edge gets its length back.
    factor = median(
        length / max(math.dist(places[a], places[b]), 1e-6)
        for a, there in near.items()
        for b, length in there.items()
    )
    return {vertex: (x * factor, y * factor) for vertex, (x, y) in places.items()}


def _connect(near: Neighbours, apart: float) -> None:
    """Joins every piece to the largest one, by their vertices with the most edges."""
    left, pieces = set(near), []
    for vertex in sorted(near):
        if vertex in left:
            pieces.append(sorted(_distances(near, vertex)))
            left -= set(pieces[-1])
    pieces.sort(key=lambda piece: (-len(piece), piece[0]))
    ends = [max(piece, key=lambda vertex: (len(near[vertex]), -vertex)) for piece in pieces]
    for end in ends[1:]:
        near[ends[0]][end] = near[end][ends[0]] = apart


def _distances(near: Neighbours, begin: int) -> dict[int, float]:
    """The distances in the graph from one vertex to all that it reaches."""
    found: dict[int, float] = {}
    heap = [(0.0, begin)]
    while heap:
        far, here = heappop(heap)
        if here not in found:
            found[here] = far
            for there, length in near[here].items():
                heappush(heap, (far + length, there))
    return found


def _settled(distances: Mapping[int, Mapping[int, float]]) -> dict[int, Point]:
    vertices = sorted(distances)
    span = max(max(row.values()) for row in distances.values())
    turn = 2 * math.pi / len(vertices)
    places = {
        vertex: (span / 2 * math.cos(n * turn), span / 2 * math.sin(n * turn))
        for n, vertex in enumerate(vertices)
    }
    for _ in range(_ROUNDS):
        moved = 0.0
        for vertex in vertices:
            wanted = _wanted(vertex, places, distances[vertex])
            moved = max(moved, math.dist(places[vertex], wanted))
            places[vertex] = wanted
        if moved < _STILL * span:
            break
    return places


def _wanted(vertex: int, places: Mapping[int, Point], far: Mapping[int, float]) -> Point:
    """The mean of the places that the others want for a vertex; near ones weigh more."""
    here_x, here_y = places[vertex]
    total = sum_x = sum_y = 0.0
    for other, distance in far.items():
        if other == vertex:
            continue
        x, y = places[other]
        dx, dy = here_x - x, here_y - y
        stretch = distance / (math.hypot(dx, dy) or 1e-9)
        weight = 1 / (distance * distance)
        total += weight
        sum_x += weight * (x + dx * stretch)
        sum_y += weight * (y + dy * stretch)
    return sum_x / total, sum_y / total
