"""Makes the model of the map from a routing snapshot."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mqis.extras import GRAPHS
from mqis.protocol.directory.objects import name_key
from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.model import Link
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import and_more, shortened
from mqis.views.sitemap.arranging import Arrangement, arrangements
from mqis.views.sitemap.layout import MOST_WITHOUT, SPACING
from mqis.views.sitemap.model import (
    LinkOnMap,
    RegionLinkOnMap,
    RegionOnMap,
    SiteMap,
    SiteOnMap,
    UnusableLink,
)
from mqis.wire.guid import Guid

#: The most sites that are placed; of more there is no picture.
MOST_DRAWN = 5_000
#: The least distance of neighbours on the screen for which sites are drawn, and not their regions.
_LEGIBLE = 20.0


@dataclass(frozen=True, slots=True)
class MapRequest:
    """The parts of a map besides sites and links: a route, links that are off, and loads."""

    #: The roles of the machines that are directory servers.
    roles: Mapping[Guid, str] = field(default_factory=dict)
    route: Explanation | None = None
    off: frozenset[Guid] = frozenset()
    #: Messages by link; None: unknown.
    loads: Mapping[Guid, float] | None = None
    #: The states of sites (``SiteOnMap.state``) by the keys of their names.
    states: Mapping[str, str] = field(default_factory=dict)


def site_map(snapshot: Snapshot, wanted: MapRequest | None = None) -> SiteMap:
    """Makes the map; ``snapshot`` also has the links that are off, so that sites keep places."""
    return _Builder(snapshot, wanted or MapRequest()).build()


class _Builder:
    def __init__(self, snapshot: Snapshot, wanted: MapRequest) -> None:
        self._snapshot = snapshot
        self._wanted = wanted
        self._names = ObjectNames(snapshot)
        every = sorted(snapshot.links.values(), key=lambda link: (link.cost, link.id))
        self._links = [link for link in every if link.fault(snapshot.sites) is None]
        self._captions = captions_of(snapshot, wanted.roles)
        self._undrawn = _undrawn(len(snapshot.sites))
        self._drawn = not self._undrawn
        self._arranged = self._arrange() if self._drawn else Arrangement()

    def _arrange(self) -> Arrangement:
        index = {site: number for number, site in enumerate(self._captions)}
        ends = ((index[link.site1], index[link.site2]) for link in self._links)
        pairs = sorted({(min(pair), max(pair)) for pair in ends})
        return arrangements.get(tuple(self._captions.values()), tuple(pairs))

    def build(self) -> SiteMap:
        sites, links = tuple(self._sites()), tuple(self._links_on_map())
        unusable = tuple(self._unusable())
        loads = self._wanted.loads
        counts = len(sites), len(links) + len(unusable), len(self._snapshot.machines)
        return SiteMap(
            sites,
            links,
            tuple(self._regions()),
            region_links(sites, links),
            unusable,
            self._drawn,
            self._arranged.width,
            self._arranged.height,
            round(_LEGIBLE / SPACING, 4) if self._arranged.regions else 0.0,
            None if loads is None else max(loads.values(), default=0.0),
            "{:,} sites, {:,} links, {:,} machines".format(*counts),
            self._undrawn,
        )

    def _sites(self) -> Iterable[SiteOnMap]:
        placed = self._arranged
        off = self._wanted.off
        gates = (self._snapshot.without_links(off) if off else self._snapshot).gates
        degree = Counter(end for link in self._links for end in (link.site1, link.site2))
        region_of = {n: f"r{r}" for r, each in enumerate(placed.regions) for n in each.members}
        on_route = {site for ends in crossings(self._wanted.route).values() for site in ends}
        for n, (site, lines) in enumerate(self._captions.items()):
            yield SiteOnMap(
                str(site),
                self._names.site(site),
                lines[0],
                *(placed.places[n] if self._drawn else (0.0, 0.0)),
                placed.radii[n] if self._drawn else 0.0,
                region_of.get(n, ""),
                lines[1:],
                degree[site],
                site in gates,
                site in on_route,
                placed.names_from[n] if self._drawn else 0.0,
                placed.lines_from[n] if self._drawn else 0.0,
                self._wanted.states.get(name_key(self._names.site(site)), ""),
            )

    def _links_on_map(self) -> Iterable[LinkOnMap]:
        crossed = crossings(self._wanted.route)
        loads = self._wanted.loads
        most = max((loads or {}).values(), default=0.0)
        for link, bend in bends(self._links):
            load = None if loads is None else loads.get(link.id, 0.0)
            yield LinkOnMap(
                str(link.id),
                self._names.link(link.id),
                link.cost,
                str(link.site1),
                str(link.site2),
                bend,
                width_of(load, most),
                load,
                _direction(link, crossed.get(link.id)),
                link.id in self._wanted.off,
            )

    def _unusable(self) -> Iterable[UnusableLink]:
        for link in sorted(self._snapshot.links.values(), key=lambda link: link.id):
            fault = link.fault(self._snapshot.sites)
            if fault is not None:
                name = self._names.link(link.id)
                yield UnusableLink(str(link.id), name, link.cost, fault.value)

    def _regions(self) -> Iterable[RegionOnMap]:
        captions = list(self._captions.values())
        for n, region in enumerate(self._arranged.regions):
            yield RegionOnMap(
                f"r{n}",
                captions[region.centre][0],
                *region.middle,
                region.radius,
                len(region.members),
                self._arranged.region_names_from[n],
                self._arranged.region_lines_from[n],
            )


def _undrawn(sites: int) -> str:
    """The reason why so many sites are not drawn; empty if they are."""
    if sites > MOST_DRAWN:
        return "there are too many sites to draw"
    if sites > MOST_WITHOUT and not GRAPHS.installed:
        return f"a map of more than {MOST_WITHOUT} sites needs mqis[graphs]: {GRAPHS.command}"
    return ""


def crossings(route: Explanation | None) -> dict[Guid, tuple[Guid, Guid]]:
    """The links that a route crosses, with the sites before and after."""
    return {
        step.crossing.link: (step.crossing.from_site, step.crossing.to_site)
        for step in (() if route is None else route.steps)
        if step.crossing is not None
    }


def _direction(link: Link, ends: tuple[Guid, Guid] | None) -> str:
    if ends is None:
        return ""
    return "forward" if ends[0] == link.site1 else "back"


#: The most characters of a name in the picture, and the most machines of a site.
_MOST, _MOST_LINES = 32, 6


def captions_of(snapshot: Snapshot, roles: Mapping[Guid, str]) -> dict[Guid, tuple[str, ...]]:
    """The captions of sites: the name, then a line for each gate and directory server."""
    names = ObjectNames(snapshot)
    lives: dict[Guid, list[Guid]] = {}
    for server in sorted(roles, key=names.machine):
        for site in snapshot.machines[server].sites if server in snapshot.machines else ():
            lives.setdefault(site, []).append(server)
    found = {}
    for site in sorted(snapshot.sites):
        gates = snapshot.gates.get(site, ())
        listed = [*gates, *(s for s in lives.get(site, ()) if s not in gates)]
        lines = [_resident(machine, machine in gates, roles, names) for machine in listed]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [and_more(len(lines) - _MOST_LINES)]
        found[site] = (caption_of(names.site(site)), *(lines if gates else [*lines, "no gate"]))
    return found


def _resident(machine: Guid, gate: bool, roles: Mapping[Guid, str], names: ObjectNames) -> str:
    role = roles.get(machine)
    name = caption_of(names.machine(machine))
    return f"{'◆ ' if gate else ''}{name}{f' {role}' if role else ''}"


def caption_of(name: str) -> str:
    """A name as the picture shows it: printable, and not too long."""
    return shortened(plain(name[: _MOST + 1]), _MOST)


def plain(text: str) -> str:
    """Replaces control characters and lone surrogates, which XML does not allow either."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


#: Widths of lines: without a load, and what the highest load adds.
_THIN, _THICK = 1.6, 8.0
#: The same for the number of links between two regions.
_MANY = 2.0
#: The distance between parallel links.
_APART = 34.0


def width_of(load: float | None, most: float, thick: float = _THICK) -> float:
    """The width of a line: its square grows with the load."""
    return _THIN if not load or most <= 0 else round(_THIN + thick * math.sqrt(load / most), 2)


def bends(links: Iterable[Link]) -> Iterator[tuple[Link, float]]:
    """Each link with its bend: parallel links get 0, 1, -1, 2, -2 steps."""
    seen: Counter[tuple[Guid, Guid]] = Counter()
    for link in links:
        pair = min(link.site1, link.site2), max(link.site1, link.site2)
        before = seen[pair]
        seen[pair] += 1
        steps = (before + 1) // 2 * (1 if before % 2 else -1)
        yield link, _APART * steps * (1 if pair[0] == link.site1 else -1) if before else 0.0


def region_links(
    sites: Iterable[SiteOnMap], links: Iterable[LinkOnMap]
) -> tuple[RegionLinkOnMap, ...]:
    """Sums the links between each pair of regions."""
    region_of = {site.id: site.region for site in sites if site.region}
    between: dict[tuple[str, str], list[LinkOnMap]] = defaultdict(list)
    for link in links if region_of else ():
        ends = region_of[link.source], region_of[link.target]
        if ends[0] != ends[1]:
            between[min(ends), max(ends)].append(link)
    loads = {pair: _sum(each) for pair, each in between.items()}
    weights = {pair: len(between[pair]) if load is None else load for pair, load in loads.items()}
    most = max(weights.values(), default=0.0)
    return tuple(
        RegionLinkOnMap(
            f"{a}-{b}",
            a,
            b,
            len(between[a, b]),
            width_of(weights[a, b], most, _MANY if load is None else _THICK),
            load,
        )
        for (a, b), load in sorted(loads.items())
    )


def _sum(links: Iterable[LinkOnMap]) -> float | None:
    loads = [link.load for link in links if link.load is not None]
    return sum(loads) if loads else None
