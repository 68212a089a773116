"""The page of the map: the map, a route, links switched off, and tables of sites and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mqis.enterprise.status import EnterpriseStatus
from mqis.protocol.directory.objects import name_key
from mqis.protocol.routing.breakage import Breakage
from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.console.paging import PagedRows, paged
from mqis.views.console.tones import Tone, tone_of_member
from mqis.views.routes.looking_up import RouteError, compared, find_end
from mqis.views.routes.rerouting import WhatIfShown, what_if
from mqis.views.routes.route_text import heading, reasons, title
from mqis.views.sitemap.charting import Chart
from mqis.views.sitemap.model import LinkOnMap, SiteMap, SiteOnMap
from mqis.views.sitemap.picture import RouteCase, map_of
from mqis.wire.guid import Guid

#: The most links that can be off at a time.
MOST_OFF = 64


@dataclass(frozen=True, slots=True)
class StepShown:
    """One decision on the route."""

    heading: str
    #: (kind, text); the kinds are those of ``routetext.Reason``.
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RouteShown:
    source: str
    destination: str
    title: str
    reachable: bool
    cost: int
    machines: tuple[str, ...]
    steps: tuple[StepShown, ...]
    #: The reason why there is no route, and its causes.
    blame: tuple[str, ...]
    #: The effect of the links that are off.
    difference: str | None


@dataclass(frozen=True, slots=True)
class MapQuestion:
    """The query of a visitor: two machines, links that are off, a search, and pages of tables."""

    source: str = ""
    destination: str = ""
    off: tuple[str, ...] = ()
    search: str = ""
    links_page: int = 1
    sites_page: int = 1


@dataclass(frozen=True, slots=True)
class RowsOfLinks(PagedRows[LinkOnMap]):
    #: Links that are off and on other pages.
    off_elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyPage:
    map: SiteMap
    links: RowsOfLinks
    sites: PagedRows[SiteOnMap]
    machines: tuple[str, ...]
    off: tuple[LinkOnMap, ...]
    route: RouteShown | None
    what_if: WhatIfShown | None
    problem: str | None
    #: True if ``sites`` are the result of a search.
    searched: bool = False

    def state(self) -> dict[str, object]:
        """The part of the picture that changes with the question, for the browser."""
        return {
            "off": [link.id for link in self.off],
            "route": [(link.id, link.route) for link in self.map.links if link.route],
            "sites": [site.id for site in self.map.sites if site.on_route],
            "found": [site.id for site in self.sites.rows if self.searched],
        }


def case_of(snapshot: Snapshot, question: MapQuestion) -> RouteCase:
    """Computes the route; ``RouteError`` if it names what the visitor cannot see."""
    off = _links_of(snapshot, question.off)
    ends = None
    if question.source and question.destination:
        ends = find_end(snapshot, question.source), find_end(snapshot, question.destination)
    return RouteCase.of(snapshot, off, ends)


def site_states(status: EnterpriseStatus) -> dict[str, str]:
    """The gravest state of each site's servers, by the key of the site's name."""
    found: dict[str, list[Tone]] = {}
    for server in status.servers:
        if server.site:
            found.setdefault(name_key(server.site), []).append(tone_of_member(server))
    order = (Tone.BAD, Tone.LATE, Tone.GOOD)
    return {site: min(tones, key=order.index).value for site, tones in found.items()}


def topology(
    chart: Chart,
    question: MapQuestion,
    loads: Mapping[Guid, float] | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> TopologyPage:
    """Makes the page; an unknown name in the question becomes its ``problem``."""
    snapshot = chart.snapshot
    problem = None
    try:
        case = case_of(snapshot, question)
    except RouteError as error:
        problem = str(error)
        case = RouteCase.of(snapshot)
    found = map_of(case, chart.roles, loads, states)
    names = ObjectNames(snapshot)
    return TopologyPage(
        found,
        _rows_of_links(found, question),
        _rows_of_sites(found, question),
        tuple(sorted(names.machine(machine) for machine in snapshot.machines)),
        tuple(link for link in found.links if link.off),
        None if case.route is None else _route(case.route, case.before, case.left),
        what_if(snapshot, tuple(sorted(case.off))) if case.off else None,
        problem,
        bool(question.search),
    )


def _links_of(snapshot: Snapshot, off: Sequence[str]) -> list[Guid]:
    if len(off) > MOST_OFF:
        raise RouteError(f"at most {MOST_OFF} links can be off at a time")
    known = {str(link): link for link in snapshot.links}
    for text in off:
        if text.lower() not in known:
            raise RouteError(f"there is no link {text!r}")
    return [known[text] for text in dict.fromkeys(text.lower() for text in off)]


# --- tables ---------------------------------------------------------------------------------------


def _rows_of_links(found: SiteMap, question: MapQuestion) -> RowsOfLinks:
    key = name_key(question.search)
    kept = [link for link in found.links if not key or key in name_key(link.name) or key == link.id]
    # Links that are off come first, so the first page has them all.
    kept.sort(key=lambda link: (not link.off, not link.route, name_key(link.name), link.id))
    part = paged(kept, question.links_page)
    shown = {link.id for link in part.rows}
    elsewhere = (link.id for link in found.links if link.off and link.id not in shown)
    return RowsOfLinks(part.rows, part.total, part.page, part.pages, tuple(elsewhere))


def _rows_of_sites(found: SiteMap, question: MapQuestion) -> PagedRows[SiteOnMap]:
    key = name_key(question.search)
    kept = [site for site in found.sites if not key or _mentions(site, key)]
    kept.sort(key=lambda site: (not site.on_route, _rank(site), name_key(site.name), site.id))
    return paged(kept, question.sites_page)


def _rank(site: SiteOnMap) -> int:
    """Sites whose servers need help or a look come first."""
    return {Tone.BAD.value: 0, Tone.LATE.value: 1}.get(site.state, 2)


def _mentions(site: SiteOnMap, key: str) -> bool:
    texts = (site.name, *site.lines)
    return key == site.id or any(key in name_key(text) for text in texts)


# --- a route --------------------------------------------------------------------------------------


def _route(found: Explanation, before: Explanation | None, snapshot: Snapshot) -> RouteShown:
    names = ObjectNames(snapshot)
    steps = tuple(
        StepShown(heading(step, names), tuple((r.value, text) for r, text in reasons(step, names)))
        for step in found.steps
    )
    return RouteShown(
        names.machine(found.source),
        names.machine(found.destination),
        title(found, names),
        found.breakage is None,
        found.cost,
        tuple(map(names.machine, found.machines)),
        steps,
        () if found.breakage is None else tuple(_blame(found.breakage, names)),
        None if before is None else compared(before, found),
    )


def _blame(breakage: Breakage, names: ObjectNames) -> Iterable[str]:
    yield names.sentence(breakage)
    for cause in breakage.causes:
        yield names.sentence(cause)
