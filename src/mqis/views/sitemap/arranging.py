"""Arranges the map: places, sizes and the zooms of captions, kept for the next request."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from mqis.texts import counted
from mqis.views.sitemap.captions import LINE, CaptionBox, size_of, zooms_of
from mqis.views.sitemap.layout import PlacedRegion, PlacedSites, place_sites
from mqis.views.sitemap.model import Point

_MARGIN = 40.0
#: Room around a caption, with its dot.
_ROOM = (24.0, 40.0)

Caption = tuple[str, ...]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The places of sites by their numbers, and the zooms from which captions are shown."""

    places: tuple[Point, ...] = ()
    radii: tuple[float, ...] = ()
    names_from: tuple[float, ...] = ()
    lines_from: tuple[float, ...] = ()
    regions: tuple[PlacedRegion, ...] = ()
    region_names_from: tuple[float, ...] = ()
    region_lines_from: tuple[float, ...] = ()
    width: float = 0.0
    height: float = 0.0


def arrange(captions: Sequence[Caption], pairs: Sequence[Pair]) -> Arrangement:
    """Arranges sites with these captions; ``pairs`` of their numbers are linked."""
    sizes = [size_of(lines) for lines in captions]
    placed = _moved(place_sites([(w + _ROOM[0], h + _ROOM[1]) for w, h in sizes], pairs))
    degree = Counter(end for pair in pairs for end in pair)
    places = tuple(placed.places[number] for number in range(len(captions)))
    radii = tuple(
        round(7.0 + min(6.0, 1.2 * math.sqrt(degree[n])), 1) for n in range(len(captions))
    )
    # Sites with many links, gates and directory servers get their names first.
    weights = [degree[n] + 2.0 * (len(lines) - 1) for n, lines in enumerate(captions)]
    names, wholes = zooms_of(
        _boxes([lines[:1] for lines in captions], places, radii, weights),
        _boxes(captions, places, radii, weights),
    )
    return Arrangement(
        places,
        radii,
        _rounded(names),
        _rounded(wholes),
        placed.regions,
        *_region_rooms(captions, placed.regions),
        *_extent(places, placed.regions),
    )


def _boxes(
    captions: Sequence[Caption],
    places: Sequence[Point],
    radii: Sequence[float],
    weights: Sequence[float],
) -> list[CaptionBox]:
    return [
        CaptionBox(place, *size_of(lines), radius + 3, weight)
        for lines, place, radius, weight in zip(captions, places, radii, weights, strict=True)
    ]


def _rounded(zooms: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(zoom, 4) for zoom in zooms)


def _region_rooms(
    captions: Sequence[Caption], regions: Sequence[PlacedRegion]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The zooms of the names of regions, which stand in the middle of their discs."""
    lines = [(captions[each.centre][0], counted(len(each.members), "site")) for each in regions]
    places = [each.middle for each in regions]
    weights = [float(len(each.members)) for each in regions]
    names, wholes = zooms_of(
        _boxes([each[:1] for each in lines], places, [-LINE / 2 - 3] * len(lines), weights),
        _boxes(lines, places, [-LINE - 3] * len(lines), weights),
    )
    return _rounded(names), _rounded(wholes)


def _moved(placed: PlacedSites) -> PlacedSites:
    """Moves the layout so that all of it has positive, short numbers."""
    corners = [(x - 2 * _MARGIN, y - _MARGIN) for x, y in placed.places.values()]
    corners += [(r.middle[0] - r.radius, r.middle[1] - r.radius) for r in placed.regions]
    left, top = (min(values) for values in zip(*corners, strict=True)) if corners else (0.0, 0.0)

    def moved(place: Point) -> Point:
        return round(place[0] - left + _MARGIN / 2, 1), round(place[1] - top + _MARGIN / 2, 1)

    return PlacedSites(
        {site: moved(place) for site, place in placed.places.items()},
        tuple(
            replace(each, middle=moved(each.middle), radius=round(each.radius, 1))
            for each in placed.regions
        ),
    )


def _extent(places: Sequence[Point], regions: Sequence[PlacedRegion]) -> tuple[float, float]:
    corners = [(x + 2 * _MARGIN, y + 2 * _MARGIN) for x, y in places]
    corners += [(r.middle[0] + r.radius, r.middle[1] + r.radius) for r in regions]
    if not corners:
        return 0.0, 0.0
    right, bottom = (max(values) for values in zip(*corners, strict=True))
    return round(right + _MARGIN / 2, 1), round(bottom + _MARGIN / 2, 1)


class _Arrangements:
    """A cache, as an arrangement of many sites takes seconds. One is computed at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[object, Arrangement] = OrderedDict()
        self._lock = Lock()

    def get(self, captions: tuple[Caption, ...], pairs: tuple[Pair, ...]) -> Arrangement:
        key = captions, pairs
        with self._lock:
            if key not in self._known:
                self._known[key] = arrange(captions, pairs)
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
            return self._known[key]


arrangements = _Arrangements(8)
