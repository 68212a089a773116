"""Draws the enterprise as SVG: sites, links with their costs, gates, and a route.

The SVG is self-contained and follows the reader's light or dark theme. networkx places the sites
(Kamada-Kawai, for many sites its force-directed layout); this module scales the result up until
boxes do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import Any

from mqis.protocol.routing.explain import Explanation
from mqis.protocol.routing.model import Link
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.wording import ObjectNames
from mqis.wire.guid import Guid

Point = tuple[float, float]

#: The most sites for Kamada-Kawai, which is slow for more, and for boxes that show gates.
_DETAILED = 80
_CHARACTER, _LINE, _MARGIN = 7.4, 17.0, 30.0
#: Characters per line below the picture.
_NOTE = 100

_STYLE = """
svg{background:#fff;color:#1a1a1a;font:13px system-ui,sans-serif}
.box{fill:#eef3fb;stroke:#5b7db1}.name{font-weight:600}.gate,.note{fill:#51607a;font-size:11px}
.link{stroke:#9aa7ba;stroke-width:1.5;fill:none}.cost{font-size:11px;text-anchor:middle}
.plate{fill:#fff}.mid{text-anchor:middle}text{fill:currentColor}
.on .box{fill:#fff1dc;stroke:#d9730d;stroke-width:2}.on.link{stroke:#d9730d;stroke-width:3.5}
.head{fill:#d9730d}.shut .box{stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){svg{background:#14171c;color:#e8eaed}
.box{fill:#1f2a3c;stroke:#7d9bd0}.gate,.note{fill:#a5b2c8}.link{stroke:#5d6a80}.plate{fill:#14171c}
.on .box{fill:#3b2a14;stroke:#ff9d3d}.on.link{stroke:#ff9d3d}.head{fill:#ff9d3d}}
""".replace("\n", "")

_ARROW = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="5" '
    'markerHeight="5" orient="auto"><path class="head" d="M0 0 10 5 0 10z"/></marker>'
    "</defs>"
)


@dataclass(frozen=True, slots=True)
class Box:
    """The box of one site: its centre and its text."""

    middle: Point
    lines: tuple[str, ...]

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * _CHARACTER + 18

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 10

    def overlaps(self, other: Box) -> bool:
        across, down = (abs(a - b) for a, b in zip(self.middle, other.middle, strict=True))
        gap = 26
        return (
            across < (self.width + other.width) / 2 + gap
            and down < (self.height + other.height) / 2 + gap
        )

    def border_towards(self, point: Point) -> Point:
        """The point where a line from the middle to ``point`` leaves the box."""
        x, y = point[0] - self.middle[0], point[1] - self.middle[1]
        reach = max(abs(x) / (self.width / 2 + 3), abs(y) / (self.height / 2 + 3), 1e-9)
        return self.middle[0] + x / max(reach, 1), self.middle[1] + y / max(reach, 1)


@dataclass(slots=True)
class _Route:
    """The crossings of an explanation, (link, from, to), and the sites on the route."""

    crossings: list[tuple[Guid, Guid, Guid]] = field(default_factory=list)
    sites: set[Guid] = field(default_factory=set)

    @classmethod
    def of(cls, explanation: Explanation | None) -> _Route:
        made = cls()
        for step in explanation.steps if explanation is not None else ():
            if step.crossing is not None:
                ends = step.crossing.from_site, step.crossing.to_site
                made.crossings.append((step.crossing.link, *ends))
                made.sites.update(ends)
        return made


def draw(snapshot: Snapshot, explanation: Explanation | None = None) -> str:
    """Draws the enterprise, with the route of ``explanation`` if given."""
    names = ObjectNames(snapshot)
    route = _Route.of(explanation)
    boxes = lay_out(snapshot, _captions(snapshot, names))
    right = max((box.middle[0] + box.width / 2 for box in boxes.values()), default=0) + _MARGIN
    bottom = max((box.middle[1] + box.height / 2 for box in boxes.values()), default=0) + _MARGIN
    usable = [k for k in snapshot.links.values() if k.fault(snapshot.sites) is None]
    notes = _notes(snapshot, explanation, names, len(snapshot.links) - len(usable))
    longest = max(map(len, notes)) * 6.6 + 2 * _MARGIN
    width, height = max(right, longest), bottom + _LINE * len(notes) + 10
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} '
            f'{height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        ),
        f"<title>{_text(notes[0])}</title><style>{_STYLE}</style>",
        _ARROW,
        *_links(usable, boxes, route),
        *(_site(site, box, route, snapshot) for site, box in boxes.items()),
        *(
            f'<text class="note" x="{_MARGIN:.0f}" y="{bottom + _LINE * (n + 0.5):.0f}">'
            f"{_text(note)}</text>"
            for n, note in enumerate(notes)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


# --- layout ---------------------------------------------------------------------------------------


def lay_out(snapshot: Snapshot, captions: Mapping[Guid, tuple[str, ...]]) -> dict[Guid, Box]:
    """Places a box with the caption for each site, without overlaps."""
    return _spread(_places(snapshot), captions)


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A curve between two boxes as an SVG path, and the position of its cost."""

    link: Link
    path: str
    middle: Point


def draw_links(
    links: Iterable[Link],
    boxes: Mapping[Guid, Box],
    crossed: Mapping[Guid, Sequence[Guid]] = MappingProxyType({}),
) -> Iterator[DrawnLink]:
    """Draws links: parallel ones are bent apart, ``crossed`` ones run along the route."""
    seen: dict[frozenset[Guid], int] = {}
    for link in sorted(links, key=lambda link: (link.cost, link.id)):
        pair = frozenset((link.site1, link.site2))
        bend = seen.setdefault(pair, 0)
        seen[pair] += 1
        first, second = crossed.get(link.id, [link.site1, link.site2])
        yield DrawnLink(link, *_line(boxes[first], boxes[second], bend))


def _places(snapshot: Snapshot) -> dict[Guid, Point]:
    """Places each connected part by itself, side by side; one unit is about one link."""
    import networkx as nx  # noqa: PLC0415 -- slow to load, and only pictures need it

    whole = nx.Graph()
    whole.add_nodes_from(snapshot.graph.sites)
    whole.add_edges_from(
        (snapshot.graph.sites[a], snapshot.graph.sites[b]) for a, b in snapshot.graph.links
    )
    found: dict[Guid, Point] = {}
    left = 0.0
    for part in sorted(nx.connected_components(whole), key=len, reverse=True):
        places = _layout(nx, whole.subgraph(sorted(part)))
        lowest = min(x for x, _ in places.values())
        found |= {site: (x - lowest + left, y) for site, (x, y) in places.items()}
        left += max(x for x, _ in places.values()) - lowest + 1
    top = min((y for _, y in found.values()), default=0)
    return {site: (x, y - top) for site, (x, y) in found.items()}


def _layout(nx: Any, part: Any) -> Mapping[Guid, Point]:
    number = part.number_of_nodes()
    if number == 1:
        return dict.fromkeys(part, (0.0, 0.0))
    size = max(1.0, math.sqrt(number))
    if number <= _DETAILED:
        placed = nx.kamada_kawai_layout(part, scale=size, weight=None)
    else:
        placed = nx.spring_layout(part, seed=1, scale=size)
    return {site: (float(x), float(y)) for site, (x, y) in placed.items()}


def _captions(snapshot: Snapshot, names: ObjectNames) -> dict[Guid, tuple[str, ...]]:
    """The captions of sites: the name and, if there is room, the gates."""
    found = {}
    for site in snapshot.sites:
        gates = snapshot.gates.get(site, ())
        gate_lines = [f"◆ {names.machine(gate)}" for gate in gates] or ["no gate"]
        if len(snapshot.sites) > _DETAILED:
            gate_lines = []
        found[site] = (names.site(site), *gate_lines)
    return found


def _spread(
    places: Mapping[Guid, Point], captions: Mapping[Guid, tuple[str, ...]]
) -> dict[Guid, Box]:
    """Scales the layout up until no boxes overlap, with a limit for very many."""
    scale = 130.0
    for _ in range(24 if len(places) <= _DETAILED else 8):
        boxes = _boxes(places, captions, scale)
        if not _any_overlap(list(boxes.values())):
            break
        scale *= 1.15
    return _boxes(places, captions, scale)


def _boxes(
    places: Mapping[Guid, Point], captions: Mapping[Guid, tuple[str, ...]], scale: float
) -> dict[Guid, Box]:
    half = max((Box((0, 0), lines).width for lines in captions.values()), default=0) / 2
    high = max((Box((0, 0), lines).height for lines in captions.values()), default=0) / 2
    return {
        site: Box((x * scale + half + _MARGIN, y * scale + high + _MARGIN), captions[site])
        for site, (x, y) in places.items()
    }


def _any_overlap(boxes: Sequence[Box]) -> bool:
    ordered = sorted(boxes, key=lambda box: box.middle)
    return any(
        box.overlaps(other) for n, box in enumerate(ordered) for other in ordered[n + 1 : n + 60]
    )


# --- drawing --------------------------------------------------------------------------------------


def _links(links: Iterable[Link], boxes: Mapping[Guid, Box], route: _Route) -> list[str]:
    """Draws the lines, then the costs on top of them."""
    lines, costs = [], []
    crossed = {link: ends for link, *ends in route.crossings}
    for drawn in draw_links(links, boxes, crossed):
        on = drawn.link.id in crossed
        kind = ' class="link on" marker-end="url(#head)"' if on else ' class="link"'
        hint = _text(_hint(drawn.link))
        lines.append(f'<path{kind} d="{drawn.path}"><title>{hint}</title></path>')
        costs.append(_cost(drawn.link.cost, drawn.middle))
    return lines + costs


def _hint(link: Link) -> str:
    return f"{link.description or 'link'} {link.id}"


def _line(first: Box, second: Box, bend: int) -> tuple[str, Point]:
    """The path of a curve from border to border, and its middle, for the cost."""
    (x1, y1), (x2, y2) = first.middle, second.middle
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    away = 0 if bend == 0 else (34 * ((bend + 1) // 2)) * (1 if bend % 2 else -1)
    over = (x1 + x2) / 2 - (y2 - y1) / length * away, (y1 + y2) / 2 + (x2 - x1) / length * away
    start, end = first.border_towards(over), second.border_towards(over)
    middle = (start[0] + 2 * over[0] + end[0]) / 4, (start[1] + 2 * over[1] + end[1]) / 4
    path = f"M{start[0]:.1f} {start[1]:.1f}Q{over[0]:.1f} {over[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    return path, middle


def _cost(cost: int, middle: Point) -> str:
    width = len(str(cost)) * 6.5 + 8
    x, y = middle
    return (
        f'<rect class="plate" x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" '
        f'height="16" rx="4"/><text class="cost" x="{x:.1f}" y="{y + 4:.1f}">{cost}</text>'
    )


def _site(site: Guid, box: Box, route: _Route, snapshot: Snapshot) -> str:
    kind = "on" if site in route.sites else "off"
    if site not in snapshot.gates:
        kind += " shut"
    x, y = box.middle[0] - box.width / 2, box.middle[1] - box.height / 2
    lines = [
        f'<text class="mid {"gate" if n else "name"}" x="{box.middle[0]:.1f}" '
        f'y="{y + 18 + n * _LINE:.1f}">{_text(line)}</text>'
        for n, line in enumerate(box.lines)
    ]
    return (
        f'<g class="{kind}"><rect class="box" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="7"/>{"".join(lines)}</g>'
    )


def _notes(
    snapshot: Snapshot, explanation: Explanation | None, names: ObjectNames, unusable: int
) -> list[str]:
    notes = [f"{len(snapshot.sites)} sites, {len(snapshot.links)} links; ◆ a site gate"]
    if explanation is not None:
        ends = (names.machine(end) for end in (explanation.source, explanation.destination))
        way = " → ".join(names.machine(machine) for machine in explanation.machines)
        route = [f"{' to '.join(ends)}, cost {explanation.cost}", *wrap(way, _NOTE)]
        if explanation.breakage is not None:
            route += wrap(f"no further: {names.sentence(explanation.breakage)}", _NOTE)
        notes = route + notes
    if unusable:
        notes.append(f"{unusable} links cannot be used and are not drawn")
    return notes


def _text(text: str) -> str:
    """Escapes text for XML, which allows neither most control characters nor lone surrogates."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
