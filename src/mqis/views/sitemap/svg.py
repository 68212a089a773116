"""Draws the map as a self-contained SVG that follows the reader's light or dark theme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from mqis.views.sitemap.captions import LINE, CaptionRoom, Rectangle, width_of_text
from mqis.views.sitemap.model import (
    LinkOnMap,
    Point,
    RegionOnMap,
    SiteMap,
    SiteOnMap,
)
from mqis.views.sitemap.wording import plain

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

_STYLE = """
svg{background:#fff;color:#1a1a1a;font:12px system-ui,sans-serif}
text{fill:currentColor;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px;
stroke-linejoin:round}.name{font-weight:600}.gate,.note{fill:#51607a;font-size:11px}
.note{text-anchor:start}.disc{fill:#f1f5fa;stroke:#dbe4ef}.region{fill:#7c8ca5;font-size:17px}
.dot{fill:#d5e3f4;stroke:#4a6fa5;stroke-width:1.4}.link{stroke:#8d9bb0;fill:none}
.good .dot{fill:#cfe9d8;stroke:#1d6b3c}.late .dot{fill:#fbdfae;stroke:#8a4b00}
.bad .dot{fill:#f6c0c0;stroke:#a3202c;stroke-width:2}.cost{font-size:11px}
.on .dot{fill:#ffe0b8;stroke:#c85f00;stroke-width:2.4}
.on.link{stroke:#d9730d}.head{fill:#d9730d}.off.link{stroke-dasharray:3 6}
.shut .dot{stroke-dasharray:3 2;fill:#fff}
@media (prefers-color-scheme:dark){svg{background:#14171c;color:#e8eaed}text{stroke:#14171c}
.gate,.note{fill:#a5b2c8}.disc{fill:#1a2029;stroke:#2a3442}.region{fill:#8797b1}
.dot{fill:#26405f;stroke:#86a8dd}.good .dot{fill:#1d4a30;stroke:#84d6a3}
.late .dot{fill:#5a3f10;stroke:#f3bd73}.bad .dot{fill:#63262a;stroke:#ff9d9d}.link{stroke:#66748b}
.on .dot{fill:#5a3510;stroke:#ff9d3d}
.on.link{stroke:#ff9d3d}.head{fill:#ff9d3d}.shut .dot{fill:#14171c}}
""".replace("\n", "")

_ARROW = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="4" '
    'markerHeight="4" orient="auto"><path class="head" d="M0 0 10 5 0 10z"/></marker></defs>'
)


def draw(found: SiteMap, notes: Sequence[str]) -> str:
    """Draws a map at zoom 1, with lines of text below it; the first is also the title."""
    longest = max(map(len, notes)) * _CHARACTER + 2 * _MARGIN
    width, height = max(found.width, longest), found.height + LINE * len(notes) + 20
    places = {site.id: site for site in found.sites}
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} '
            f'{height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        ),
        f"<title>{_text(notes[0])}</title><style>{_STYLE}</style>",
        _ARROW,
        *map(_disc, found.regions),
        *(_link(link, places) for link in found.links if found.drawn),
        *(map(_site, found.sites) if found.drawn else ()),
        *_captions(found, places),
        *_notes(notes, found.height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def notes_of(found: SiteMap) -> list[str]:
    """The lines below a map without a route."""
    notes = [f"{found.summary}; ◆ a site gate"]
    if found.most_load is not None:
        notes.append(f"thickness: messages in the table traffic, at most {found.most_load:,.0f}")
    if not found.drawn:
        notes.append(found.undrawn)
    off = sum(link.off for link in found.links)
    if off:
        notes.append(f"{off} links are switched off (dashed)")
    if found.unusable:
        notes.append(f"{len(found.unusable)} links cannot be used and are not drawn")
    return notes


def _disc(region: RegionOnMap) -> str:
    return (
        f'<circle class="disc" cx="{region.x}" cy="{region.y}" r="{region.radius}">'
        f"<title>{_text(region.caption)}, {region.sites} sites</title></circle>"
    )


def _name(region: RegionOnMap) -> _Text:
    return _Text("region", region.x, region.y - region.radius + 22, region.caption)


# --- links ----------------------------------------------------------------------------------------


def _link(link: LinkOnMap, places: dict[str, SiteOnMap]) -> str:
    start, over, end = curve(link, places)
    if link.route == "back":
        start, end = end, start
    kinds = ["link", *(["on"] if link.route else []), *(["off"] if link.off else [])]
    width = link.width + (2 if link.route else 0)
    arrow = ' marker-end="url(#head)"' if link.route else ""
    middle = f"Q{over[0]:.1f} {over[1]:.1f} " if link.bend else "L"
    path = f"M{start[0]:.1f} {start[1]:.1f}{middle}{end[0]:.1f} {end[1]:.1f}"
    load = "" if link.load is None else f", {link.load:,.0f} messages"
    title = _text(f"{link.name}, cost {link.cost}{load}{', switched off' if link.off else ''}")
    return (
        f'<path class="{" ".join(kinds)}" stroke-width="{width:.1f}" d="{path}"{arrow}>'
        f"<title>{title}</title></path>"
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


def _site(site: SiteOnMap) -> str:
    kind = f"{'on' if site.on_route else 'by'}{'' if site.has_gate else ' shut'}"
    words = [site.name, *site.lines, *([STATES[site.state]] if site.state else [])]
    state = f" {site.state}" if site.state else ""
    return (
        f'<g class="{kind}{state}">{_shape(site)}<title>{_text(", ".join(words))}</title>'
        f"</{'path' if site.state in _CORNERS else 'circle'}></g>"
    )


def _shape(site: SiteOnMap) -> str:
    """A disc; a triangle if its servers need a look, a square if they need help."""
    corners = _CORNERS.get(site.state)
    if corners is None:
        return f'<circle class="dot" cx="{site.x}" cy="{site.y}" r="{site.radius}">'
    size = site.radius * 1.25
    points = " ".join(f"{site.x + x * size:.1f} {site.y + y * size:.1f}" for x, y in corners)
    return f'<path class="dot" d="M{points}Z">'


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

    def __str__(self) -> str:
        place = f'x="{self.x:.1f}" y="{self.y:.1f}"'
        return f'<text class="{self.kind}" {place}>{_text(self.text)}</text>'


def _captions(found: SiteMap, places: dict[str, SiteOnMap]) -> Iterator[str]:
    """The captions for which there is room: the route's first, then sites, regions and costs."""
    if not found.drawn:
        return
    room = CaptionRoom()
    sites = sorted(found.sites, key=lambda site: not site.on_route)
    shown = [s for s in sites if s.on_route or s.name_from <= 1]
    named = [site for site in shown if room.take(_lines(site)[0].box)]
    yield from (str(_lines(site)[0]) for site in named)
    costs = sorted(found.links, key=lambda link: not link.route)
    rest = [_costs(link, places) for link in costs if link.route]
    rest += ([_name(region)] for region in found.regions)
    rest += ([line] for site in named if site.lines_from <= 1 for line in _lines(site)[1:])
    rest += (_costs(link, places) for link in costs if not (link.route or found.regions))
    for choices in rest:
        placed = next((each for each in choices if room.take(each.box)), None)
        if placed is not None:
            yield str(placed)


def _lines(site: SiteOnMap) -> list[_Text]:
    top = site.y + site.radius + 14
    return [
        _Text("gate" if n else "name", site.x, top + n * LINE, line)
        for n, line in enumerate((site.caption, *site.lines))
    ]


def _notes(notes: Sequence[str], top: float) -> Iterator[str]:
    for number, note in enumerate(notes):
        y = top + LINE * (number + 1)
        yield f'<text class="note" x="{_MARGIN:.0f}" y="{y:.0f}">{_text(note)}</text>'


def _text(text: str) -> str:
    return escape(plain(text))
