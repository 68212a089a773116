"""Draws the map as a self-contained SVG that follows the reader's light or dark theme.

What stands where is computed here; the template ``pages/templates/map.svg`` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mqis.pages import rendered
from mqis.texts import agreeing, counted
from mqis.views.sitemap.build import plain
from mqis.views.sitemap.captions import LINE, CaptionRoom, Rectangle, width_of_text
from mqis.views.sitemap.model import (
    LinkOnMap,
    Point,
    RegionOnMap,
    SiteMap,
    SiteOnMap,
)

_MARGIN = 30.0
#: Where a cost may stand on its link: in the middle, or a bit away where that has no room.
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7)
#: Pixels of a character of the notes.
_CHARACTER = 7.6
#: The sizes of texts.
_SIZES = {"name": 12, "gate": 11, "cost": 11, "region": 17}
#: The corners of the shapes of states, around 0 with the radius 1; others are discs.
_CORNERS = {
    "late": ((0.0, -1.1), (1.0, 0.8), (-1.0, 0.8)),
    "bad": ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
}
#: The words for states.
STATES = {
    "good": "its servers are in order",
    "late": "its servers need a look",
    "bad": "its servers need help",
}


def draw(found: SiteMap, notes: Sequence[str]) -> str:
    """Draws a map at zoom 1, with lines of text below it; the first is also the title."""
    longest = max(map(len, notes)) * _CHARACTER + 2 * _MARGIN
    places = {site.id: site for site in found.sites}
    return rendered(
        "map.svg",
        width=max(found.width, longest),
        height=found.height + LINE * len(notes) + 20,
        regions=found.regions,
        links=[_link(link, places) for link in found.links if found.drawn],
        sites=[_site(site) for site in found.sites if found.drawn],
        captions=_captions(found, places),
        notes=[(found.height + LINE * line, note) for line, note in enumerate(notes, 1)],
        margin=_MARGIN,
        plain=plain,
    )


def notes_of(found: SiteMap) -> list[str]:
    """The lines below a map without a route."""
    notes = [f"{found.summary}; ◆ a site gate"]
    if found.most_load is not None:
        notes.append(f"thickness: messages in the table traffic, at most {found.most_load:,.0f}")
    if not found.drawn:
        notes.append(found.undrawn)
    off = sum(link.off for link in found.links)
    if off:
        notes.append(f"{counted(off, 'link')} {agreeing(off, 'is', 'are')} switched off (dashed)")
    if found.unusable:
        notes.append(
            f"{counted(len(found.unusable), 'link')} cannot be used and "
            f"{agreeing(len(found.unusable), 'is', 'are')} not drawn"
        )
    return notes


def _name(region: RegionOnMap) -> _Text:
    return _Text("region", region.x, region.y - region.radius + 22, region.caption)


# --- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DrawnLink:
    kinds: str
    width: float
    path: str
    has_arrow: bool
    title: str


def _link(link: LinkOnMap, places: dict[str, SiteOnMap]) -> _DrawnLink:
    start, over, end = curve(link, places)
    if link.route == "back":
        start, end = end, start
    kinds = ["link", *(["on"] if link.route else []), *(["off"] if link.off else [])]
    middle = f"Q{over[0]:.1f} {over[1]:.1f} " if link.bend else "L"
    load = "" if link.load is None else f", {counted(round(link.load), 'message')}"
    return _DrawnLink(
        " ".join(kinds),
        link.width + (2 if link.route else 0),
        f"M{start[0]:.1f} {start[1]:.1f}{middle}{end[0]:.1f} {end[1]:.1f}",
        bool(link.route),
        f"{link.name}, cost {link.cost}{load}{', switched off' if link.off else ''}",
    )


def curve(link: LinkOnMap, places: dict[str, SiteOnMap]) -> tuple[Point, Point, Point]:
    """The start, control point and end of a link, from border to border of its sites' dots."""
    first, second = places[link.source], places[link.target]
    across, down = second.x - first.x, second.y - first.y
    length = math.hypot(across, down) or 1.0
    over = (
        (first.x + second.x) / 2 - down / length * link.bend,
        (first.y + second.y) / 2 + across / length * link.bend,
    )
    return _border(first, over), over, _border(second, over)


def _border(site: SiteOnMap, towards: Point) -> Point:
    across, down = towards[0] - site.x, towards[1] - site.y
    share = (site.radius + 2) / max(math.hypot(across, down), site.radius + 2)
    return site.x + across * share, site.y + down * share


def _costs(link: LinkOnMap, places: dict[str, SiteOnMap]) -> list[_Text]:
    """The cost of a link at places along it, the best first."""
    start, over, end = curve(link, places)

    def at(part: float) -> _Text:
        weights = (1 - part) ** 2, 2 * part * (1 - part), part**2
        x, y = (
            sum(
                weight * point[axis]
                for weight, point in zip(weights, (start, over, end), strict=True)
            )
            for axis in (0, 1)
        )
        return _Text("cost", x, y + 4, str(link.cost))

    return [at(part) for part in _ALONG]


# --- sites ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DrawnSite:
    kinds: str
    title: str
    x: float
    y: float
    radius: float
    #: The path of a triangle if its servers need a look, a square if they need help, else empty.
    corners: str


def _site(site: SiteOnMap) -> _DrawnSite:
    kinds = ["on" if site.on_route else "by"]
    kinds += ["shut"] * (not site.has_gate) + [site.state] * bool(site.state)
    words = [site.name, *site.lines, *([STATES[site.state]] if site.state else [])]
    size = site.radius * 1.25
    corners = [(site.x + x * size, site.y + y * size) for x, y in _CORNERS.get(site.state, ())]
    path = f"M{' '.join(f'{x:.1f} {y:.1f}' for x, y in corners)}Z" if corners else ""
    return _DrawnSite(" ".join(kinds), ", ".join(words), site.x, site.y, site.radius, path)


# --- captions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    """A text around ``x``, on the line ``y``."""

    kind: str
    x: float
    y: float
    text: str

    @property
    def box(self) -> Rectangle:
        half = width_of_text(self.text) * _SIZES[self.kind] / 24
        top = self.y - _SIZES[self.kind]
        return self.x - half, top, self.x + half, self.y + _SIZES[self.kind] / 3


def _captions(found: SiteMap, places: dict[str, SiteOnMap]) -> Iterator[_Text]:
    """The captions for which there is room: the route's first, then sites, regions and costs."""
    if not found.drawn:
        return
    room = CaptionRoom()
    sites = sorted(found.sites, key=lambda site: not site.on_route)
    shown = [s for s in sites if s.on_route or s.name_from <= 1]
    named = [site for site in shown if room.take(_lines(site)[0].box)]
    yield from (_lines(site)[0] for site in named)
    costs = sorted(found.links, key=lambda link: not link.route)
    rest = [_costs(link, places) for link in costs if link.route]
    rest += ([_name(region)] for region in found.regions)
    rest += ([line] for site in named if site.lines_from <= 1 for line in _lines(site)[1:])
    rest += (_costs(link, places) for link in costs if not (link.route or found.regions))
    for choices in rest:
        placed = next((each for each in choices if room.take(each.box)), None)
        if placed is not None:
            yield placed


def _lines(site: SiteOnMap) -> list[_Text]:
    top = site.y + site.radius + 14
    return [
        _Text("gate" if n else "name", site.x, top + n * LINE, line)
        for n, line in enumerate((site.caption, *site.lines))
    ]
