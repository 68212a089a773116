"""The map: the layout of sites and links, a route, and the effect of switching links off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mqis.protocol.routing.breakage import Breakage
from mqis.protocol.routing.explain import Explanation
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.table import UNREACHABLE
from mqis.protocol.routing.wording import ObjectNames
from mqis.views.routes.finding import RouteError, compared, find_end
from mqis.views.routes.map import Box, draw_links, lay_out
from mqis.views.routes.text import heading, reasons, title
from mqis.wire.guid import Guid

#: The most links that can be off at a time, and changed pairs that are listed.
MOST_OFF = 64
MOST_PAIRS = 200
#: The most sites of which all pairs are compared, which takes about a second.
MOST_SITES = 1_500
_DETAILED = 80
_MARGIN = 24.0


@dataclass(frozen=True, slots=True)
class SiteOnMap:
    id: str
    name: str
    x: float
    y: float
    width: float
    height: float
    #: Directory servers and gates, a line each.
    lines: tuple[str, ...]
    has_gate: bool
    on_route: bool


@dataclass(frozen=True, slots=True)
class LinkOnMap:
    id: str
    name: str
    cost: int
    source: str
    target: str
    path: str
    x: float
    y: float
    #: True if the route crosses it, from ``source`` to ``target``.
    on_route: bool
    off: bool
    #: The reason why it is not an edge.
    fault: str | None = None


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
class ChangedPair:
    """Two sites whose route changes, or is cut off, without the links that are off."""

    source: str
    destination: str
    both_ways: bool
    old_cost: int
    #: None: cut off.
    new_cost: int | None


@dataclass(frozen=True, slots=True)
class WhatIfShown:
    rerouted: int
    cut_off: int
    pairs: tuple[ChangedPair, ...]
    more: int
    #: True if there are too many sites to compare all pairs.
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class TopologyPage:
    sites: tuple[SiteOnMap, ...]
    links: tuple[LinkOnMap, ...]
    #: Links that are not edges, with the reason.
    unusable: tuple[LinkOnMap, ...]
    machines: tuple[tuple[str, str], ...]
    width: float
    height: float
    route: RouteShown | None
    what_if: WhatIfShown | None
    off: tuple[str, ...] = ()
    problem: str | None = None
    summary: str = field(default="")


def topology(
    snapshot: Snapshot,
    roles: Mapping[Guid, str],
    source: str = "",
    destination: str = "",
    off: Sequence[str] = (),
) -> TopologyPage:
    """Makes the page of the map; an unknown name in the request becomes its ``problem``.

    ``roles``: the roles of the machines that are directory servers.
    """
    case = _Case(snapshot, snapshot)
    try:
        case.switch_off(_links_of(snapshot, off))
        if source and destination:
            case.find_route(find_end(snapshot, source), find_end(snapshot, destination))
    except RouteError as error:
        case.problem = str(error)
    return _page(case, roles)


@dataclass(slots=True)
class _Case:
    """The request for a map: links that are off, and a route."""

    snapshot: Snapshot
    #: The snapshot without the links that are off.
    left: Snapshot
    removed: tuple[Guid, ...] = ()
    found: Explanation | None = None
    #: The same route with all links.
    before: Explanation | None = None
    problem: str | None = None

    def switch_off(self, links: Sequence[Guid]) -> None:
        if links:
            self.removed = tuple(links)
            self.left = self.snapshot.without_links(links)

    def find_route(self, source: Guid, destination: Guid) -> None:
        self.found = explain_between(self.left, source, destination)
        if self.removed:
            self.before = explain_between(self.snapshot, source, destination)


def _links_of(snapshot: Snapshot, off: Sequence[str]) -> list[Guid]:
    if len(off) > MOST_OFF:
        raise RouteError(f"at most {MOST_OFF} links can be off at a time")
    known = {str(link): link for link in snapshot.links}
    for text in off:
        if text.lower() not in known:
            raise RouteError(f"there is no link {text!r}")
    return [known[text] for text in dict.fromkeys(text.lower() for text in off)]


def _page(case: _Case, roles: Mapping[Guid, str]) -> TopologyPage:
    snapshot, found = case.snapshot, case.found
    names = ObjectNames(snapshot)
    boxes = _boxes(snapshot, roles)
    crossed = _crossings(found)
    on_route = {site for ends in crossed.values() for site in ends}
    sites = tuple(_site(site, box, case.left, names, on_route) for site, box in boxes.items())
    machines = sorted((names.machine(m), str(m)) for m in snapshot.machines)
    links = _links(case, boxes, crossed, names)
    return TopologyPage(
        sites,
        links,
        _unusable(snapshot, names),
        tuple(machines),
        max((s.x + s.width for s in sites), default=0) + _MARGIN,
        max((s.y + s.height for s in sites), default=0) + _MARGIN,
        None if found is None else _route(found, case.before, case.left),
        _what_if(snapshot, case.removed) if case.removed else None,
        tuple(map(str, case.removed)),
        case.problem,
        f"{len(sites)} sites, {len(links)} links, {len(machines)} machines",
    )


def _links(
    case: _Case,
    boxes: Mapping[Guid, Box],
    crossed: Mapping[Guid, tuple[Guid, Guid]],
    names: ObjectNames,
) -> tuple[LinkOnMap, ...]:
    sites = case.snapshot.sites
    edges = [link for link in case.snapshot.links.values() if link.fault(sites) is None]
    found = []
    for drawn in draw_links(edges, boxes, crossed):
        link = drawn.link
        first, second = crossed.get(link.id, (link.site1, link.site2))
        made = LinkOnMap(
            str(link.id),
            names.link(link.id),
            link.cost,
            str(first),
            str(second),
            drawn.path,
            round(drawn.middle[0], 1),
            round(drawn.middle[1], 1),
            link.id in crossed,
            link.id in case.removed,
        )
        found.append(made)
    return tuple(found)


def _crossings(found: Explanation | None) -> dict[Guid, tuple[Guid, Guid]]:
    steps = () if found is None else found.steps
    return {
        step.crossing.link: (step.crossing.from_site, step.crossing.to_site)
        for step in steps
        if step.crossing is not None
    }


#: A cache of layouts, which take longest to compute, by all that determines them.
_layouts: dict[tuple[object, ...], dict[Guid, Box]] = {}
_KEPT = 8


def _boxes(snapshot: Snapshot, roles: Mapping[Guid, str]) -> Mapping[Guid, Box]:
    captions = _captions(snapshot, roles)
    pairs = tuple(sorted((k.site1, k.site2) for k in snapshot.links.values()))
    key = tuple(captions.items()), pairs
    found = _layouts.get(key)
    if found is None:
        found = lay_out(snapshot, captions)
        if len(_layouts) >= _KEPT:
            _layouts.clear()
        _layouts[key] = found
    return found


def _captions(snapshot: Snapshot, roles: Mapping[Guid, str]) -> dict[Guid, tuple[str, ...]]:
    """The captions of sites: the name and, if there is room, gates and directory servers."""
    names = ObjectNames(snapshot)
    lives: dict[Guid, list[Guid]] = {}
    for server in sorted(roles, key=names.machine):
        for site in snapshot.machines[server].sites if server in snapshot.machines else ():
            lives.setdefault(site, []).append(server)
    found = {}
    for site in snapshot.sites:
        gates = snapshot.gates.get(site, ())
        listed = [*gates, *(s for s in lives.get(site, ()) if s not in gates)]
        lines = [_resident(machine, machine in gates, roles, names) for machine in listed]
        if not gates:
            lines.append("no gate")
        few = len(snapshot.sites) <= _DETAILED
        found[site] = (names.site(site), *(lines if few else ()))
    return found


def _resident(machine: Guid, gate: bool, roles: Mapping[Guid, str], names: ObjectNames) -> str:
    role = roles.get(machine)
    return f"{'◆ ' if gate else ''}{names.machine(machine)}{f' {role}' if role else ''}"


def _site(
    site: Guid, box: Box, left: Snapshot, names: ObjectNames, on_route: set[Guid]
) -> SiteOnMap:
    return SiteOnMap(
        str(site),
        names.site(site),
        round(box.middle[0] - box.width / 2, 1),
        round(box.middle[1] - box.height / 2, 1),
        round(box.width, 1),
        round(box.height, 1),
        box.lines[1:],
        site in left.gates,
        site in on_route,
    )


def _unusable(snapshot: Snapshot, names: ObjectNames) -> tuple[LinkOnMap, ...]:
    found = []
    for link in sorted(snapshot.links.values(), key=lambda link: link.id):
        fault = link.fault(snapshot.sites)
        if fault is not None:
            ends = names.site(link.site1), names.site(link.site2)
            values = str(link.id), names.link(link.id), link.cost, *ends, "", 0.0, 0.0
            found.append(LinkOnMap(*values, False, False, fault.value))
    return tuple(found)


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


# --- all routes -----------------------------------------------------------------------------------


def _what_if(snapshot: Snapshot, removed: tuple[Guid, ...]) -> WhatIfShown:
    """The pairs of sites that change, by the functions of the pipeline."""
    if len(snapshot.sites) > MOST_SITES:
        return WhatIfShown(0, 0, (), 0, skipped=True)
    from mqis.protocol.routing.bulk.allpairs import all_pairs  # noqa: PLC0415 -- loads SciPy
    from mqis.protocol.routing.bulk.gates import Gates  # noqa: PLC0415
    from mqis.protocol.routing.bulk.sitegraph import site_graph  # noqa: PLC0415
    from mqis.protocol.routing.bulk.whatif import WhatIf  # noqa: PLC0415

    graph, sites, links = site_graph(snapshot)
    numbers = [number for number, link in enumerate(links) if link in removed]
    gates, _ = Gates.of_snapshot(snapshot)
    changes = WhatIf(all_pairs(graph), gates).without(links=numbers)
    costs = {
        (int(a), int(b)): (int(old), int(new))
        for a, b, old, new in zip(
            changes.source,
            changes.destination,
            changes.old_distance,
            changes.new_distance,
            strict=True,
        )
    }
    pairs = _pairs(costs, sites, ObjectNames(snapshot))
    cut = sum(new == UNREACHABLE for _, new in costs.values())
    shown = tuple(pairs[:MOST_PAIRS])
    return WhatIfShown(len(costs) - cut, cut, shown, len(pairs) - len(shown))


def _pairs(
    costs: Mapping[tuple[int, int], tuple[int, int]], sites: Sequence[Guid], names: ObjectNames
) -> list[ChangedPair]:
    """Sorts pairs: cut off first, then by added cost; both directions are one if they agree."""
    found = []
    for (a, b), (old, new) in costs.items():
        both = costs.get((b, a)) == (old, new)
        if both and a > b:
            continue
        cost = None if new == UNREACHABLE else new
        found.append(ChangedPair(names.site(sites[a]), names.site(sites[b]), both, old, cost))
    worst = len(sites) * 10**6
    return sorted(
        found,
        key=lambda p: (
            -((worst if p.new_cost is None else p.new_cost) - p.old_cost),
            p.source,
            p.destination,
        ),
    )
