"""Explanations of routes: every decision, its cost, and the alternatives not taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from mqis.protocol.routing.breakage import Breakage, SubjectKind
from mqis.protocol.routing.graph import Graph
from mqis.protocol.routing.nexthops import Decision, NextHopRule
from mqis.protocol.routing.route_trace import Hop, RoutingTables, TableOf, trace
from mqis.protocol.routing.routing_table import UNREACHABLE, RoutingTable, build_table, roots_of
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


class Contest(Enum):
    """The kind of an alternative: what would have been chosen instead."""

    ROUTE = "another next site"
    LINK = "another link between the two sites"
    SITE = "another site of the destination"
    MACHINE = "another machine"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice that was not taken. Of two with equal cost, the smaller GUID is taken."""

    contest: Contest
    #: The site, link or machine that was not taken.
    subject: Guid
    lost_by: int
    #: The cost to the destination (of a link: its own); machines have none.
    cost: int | None = None
    #: The sites from here to the destination, for routes.
    path: tuple[Guid, ...] = ()

    @property
    def tied(self) -> bool:
        return self.lost_by == 0


@dataclass(frozen=True, slots=True)
class Crossing:
    """The step from one site to the next, over a link."""

    from_site: Guid
    to_site: Guid
    link: Guid
    cost: int


@dataclass(frozen=True, slots=True)
class ExplainStep:
    machine: Guid
    decision: Decision
    next: Guid | None
    crossing: Crossing | None = None
    #: The smallest difference in cost first.
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    source: Guid
    destination: Guid
    steps: tuple[ExplainStep, ...]
    breakage: Breakage | None

    @property
    def cost(self) -> int:
        """The sum over all links that are crossed."""
        return sum(step.crossing.cost for step in self.steps if step.crossing is not None)

    @property
    def machines(self) -> tuple[Guid, ...]:
        return tuple(step.machine for step in self.steps)


def explain(
    snapshot: Snapshot, source: Guid, destination: Guid, tables: TableOf | None = None
) -> Explanation:
    """The route, each step with its reasons; if it breaks, up to the breakage."""
    tables = tables or RoutingTables(snapshot)
    route = trace(snapshot, source, destination, tables)
    steps = (_step(snapshot, hop, tables, destination) for hop in route.hops)
    return Explanation(source, destination, tuple(steps), route.breakage)


def _step(snapshot: Snapshot, hop: Hop, tables: TableOf, destination: Guid) -> ExplainStep:
    decision = hop.decision
    others = [
        Alternative(Contest.MACHINE, machine, 0) for machine in decision.hops if machine != hop.next
    ]
    step = ExplainStep(hop.machine, decision, hop.next, alternatives=tuple(others))
    if decision.rule is not NextHopRule.NEXT_SITE or decision.row is None:
        return step
    between = _Between(snapshot, tables(hop.machine), decision, destination)
    found = sorted([*between.alternatives(), *others], key=lambda a: (a.lost_by, a.subject))
    crossing = between.crossing() if hop.next is not None else None
    return replace(step, crossing=crossing, alternatives=tuple(found))


class _Between:
    """The choice of the next site by one gate."""

    def __init__(
        self, snapshot: Snapshot, table: RoutingTable, decision: Decision, destination: Guid
    ) -> None:
        assert decision.row is not None
        self._snapshot = snapshot
        self._table = table
        self._graph = table.graph
        self._row = decision.row
        self._sites = snapshot.machines[destination].sites
        self._next = self._graph.index[self._row.next_hop]
        # The edge that was taken starts at the own site that is nearest to the next one.
        near = table.distance[self._next]
        costs = self._graph.costs[self._next]
        self._own = min(root for root in table.roots if costs.get(root) == near)

    def crossing(self) -> Crossing:
        return Crossing(
            self._graph.sites[self._own],
            self._row.next_hop,
            self._graph.link_between(self._own, self._next),
            self._graph.costs[self._own][self._next],
        )

    def alternatives(self) -> Iterator[Alternative]:
        yield from self._routes()
        yield from self._links()
        for row in map(self._table.get, self._sites):
            if row is not None and row.destination != self._row.destination:
                lost_by = row.distance - self._row.distance
                yield Alternative(Contest.SITE, row.destination, lost_by, row.distance)

    def _routes(self) -> Iterator[Alternative]:
        """The best route through each other neighbour, not through an own site again."""
        blocked = frozenset(self._table.roots)
        rest = _without(self._graph, blocked)
        onwards = build_table(rest, roots_of(rest, self._sites))
        best: dict[int, tuple[int, int]] = {}
        for root in sorted(blocked):
            for near, cost in self._graph.costs[root].items():
                if near not in blocked | {self._next} and onwards.distance[near] != UNREACHABLE:
                    offer = cost + onwards.distance[near], root
                    best[near] = min(offer, best.get(near, offer))
        for near, (cost, root) in best.items():
            path = tuple(self._graph.sites[v] for v in (root, *_path(onwards, near)))
            lost_by = cost - self._row.distance
            yield Alternative(Contest.ROUTE, self._graph.sites[near], lost_by, cost, path)

    def _links(self) -> Iterator[Alternative]:
        """The parallel links to the same site."""
        taken = self.crossing()
        ends = {taken.from_site, taken.to_site}
        for link in self._snapshot.links_at[taken.from_site]:
            usable = link.fault(self._snapshot.sites) is None
            if usable and link.id != taken.link and {link.site1, link.site2} == ends:
                yield Alternative(Contest.LINK, link.id, link.cost - taken.cost, link.cost)


def _without(graph: Graph, blocked: frozenset[int]) -> Graph:
    costs = tuple(
        {} if here in blocked else {near: cost for near, cost in row.items() if near not in blocked}
        for here, row in enumerate(graph.costs)
    )
    return Graph(graph.sites, graph.index, costs, graph.links)


def _path(onwards: RoutingTable, vertex: int) -> Iterable[int]:
    """The vertices from one to the nearest root, by the smallest neighbour each time."""
    yield vertex
    while far := onwards.distance[vertex]:
        costs = onwards.graph.costs[vertex].items()
        vertex = min(near for near, cost in costs if onwards.distance[near] + cost == far)
        yield vertex


# --- Explanations as text, with the names of objects ----------------------------------------------


class ObjectNames:
    """The names of a snapshot's objects; the GUID where there is no name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def machine(self, guid: Guid) -> str:
        """The name of a machine, or of a site that stands for its machines."""
        found = self._snapshot.machines.get(guid) or self._snapshot.sites.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def site(self, guid: Guid) -> str:
        found = self._snapshot.sites.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def link(self, guid: Guid) -> str:
        """The names of both sites of a link, and its description if there is one."""
        found = self._snapshot.links.get(guid)
        if found is None:
            return str(guid)
        ends = f"{self.site(found.site1)} - {self.site(found.site2)}"
        return f"{ends} ({found.description})" if found.description else ends

    def link_description(self, guid: Guid) -> str:
        """The description of a link; empty if it has none."""
        found = self._snapshot.links.get(guid)
        return "" if found is None else found.description

    def of(self, kind: SubjectKind, guid: Guid) -> str:
        return {
            SubjectKind.MACHINE: self.machine,
            SubjectKind.SITE: self.site,
            SubjectKind.LINK: self.link,
        }[kind](guid)

    def sentence(self, breakage: Breakage) -> str:
        """The object that breaks a route, without its causes."""
        name = self.of(breakage.kind, breakage.subject)
        return f"{breakage.kind.value} {name} {breakage.fault.value}"
