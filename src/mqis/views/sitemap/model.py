"""The model of the map: sites, links and regions with their places, sizes and captions.

Lengths are pixels at zoom 1. Captions, dots and lines keep their size on the screen at any zoom, so
that zooming in makes room for more captions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SiteOnMap:
    id: str
    name: str
    #: The name in the picture, which is cut off if it is long.
    caption: str
    x: float
    y: float
    radius: float
    #: The id of its region; empty if the map has no regions.
    region: str
    #: Gates and directory servers, a line each.
    lines: tuple[str, ...]
    #: The number of usable links.
    links: int
    has_gate: bool
    on_route: bool
    #: The smallest zoom with room for the name, and with room for name and lines.
    name_from: float
    lines_from: float
    #: The state of its servers: good, late or bad; empty if it is not known.
    state: str = ""


@dataclass(frozen=True, slots=True)
class LinkOnMap:
    id: str
    name: str
    cost: int
    source: str
    target: str
    #: The distance of the curve's control point from the straight line: parallel links differ.
    bend: float
    width: float
    #: Messages in the pipeline's table ``traffic``; None: there is no such table.
    load: float | None
    #: "forward": the route crosses it from ``source`` to ``target``; "back"; or empty.
    route: str
    off: bool


@dataclass(frozen=True, slots=True)
class RegionOnMap:
    """A disc around sites with many links between them; one bubble when the map is small."""

    id: str
    caption: str
    x: float
    y: float
    radius: float
    sites: int
    #: The smallest zoom with room for the name, and with room for the number of sites below it.
    name_from: float
    lines_from: float


@dataclass(frozen=True, slots=True)
class RegionLinkOnMap:
    """All links between two regions."""

    id: str
    source: str
    target: str
    links: int
    width: float
    load: float | None


@dataclass(frozen=True, slots=True)
class UnusableLink:
    id: str
    name: str
    cost: int
    #: The reason why no route uses it.
    fault: str


@dataclass(frozen=True, slots=True)
class SiteMap:
    sites: tuple[SiteOnMap, ...]
    links: tuple[LinkOnMap, ...]
    regions: tuple[RegionOnMap, ...]
    region_links: tuple[RegionLinkOnMap, ...]
    unusable: tuple[UnusableLink, ...]
    #: False if there are too many sites for a picture; ``undrawn`` says why.
    drawn: bool
    width: float
    height: float
    #: Below this zoom the map shows regions instead of sites; 0: always sites.
    sites_from: float
    #: The highest load of a link; None: loads are unknown.
    most_load: float | None
    summary: str
    undrawn: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
