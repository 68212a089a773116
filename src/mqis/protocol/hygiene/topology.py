"""The rules about sites, links and gates, which look at the whole routing graph."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.findings import Finding, Subject
from mqis.protocol.hygiene.checks import Check, finding
from mqis.protocol.hygiene.knowledge import Knowledge
from mqis.protocol.routing.breakage import RouteFault
from mqis.protocol.routing.explain import ObjectNames
from mqis.protocol.routing.islands import islands
from mqis.protocol.routing.model import Link, LinkFault, RoutingSite
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import counted
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType


def topology_findings(snapshot: Snapshot, knowledge: Knowledge) -> Iterator[Finding]:
    """Yields unusable and doubled links, wrong gates, and sites without a gate or cut off.

    A single site needs no gate: messages within a site are sent directly.
    """
    rules = _TopologyRules(snapshot, knowledge)
    yield from rules.links()
    yield from rules.doubled_links()
    yield from rules.gates()
    if len(snapshot.sites) > 1:
        yield from rules.sites()


def untold_gates(snapshot: Snapshot, knowledge: Knowledge) -> list[str]:
    """The names of the sites that may have a gate or none: this copy cannot show it."""
    rules = _TopologyRules(snapshot, knowledge)
    open_ = (site for site in snapshot.sites if site not in snapshot.gates)
    if len(snapshot.sites) < 2:
        return []
    return sorted(snapshot.sites[s].name or str(s) for s in open_ if not rules.has_no_gate(s))


def _site(site: RoutingSite) -> Subject:
    return Subject(ObjectType.SITE.label, site.name, str(site.id))


def _link(link: Link) -> Subject:
    return Subject(ObjectType.ROUTINGLINK.label, None, str(link.id))


class _TopologyRules:
    def __init__(self, snapshot: Snapshot, knowledge: Knowledge) -> None:
        self._snapshot = snapshot
        self._knowledge = knowledge
        self._names = ObjectNames(snapshot)

    def links(self) -> Iterator[Finding]:
        """Yields links that are no edges; those to unknown sites are dangling references."""
        for link in self._snapshot.links.values():
            fault = link.fault(self._snapshot.sites)
            if fault not in (None, LinkFault.UNKNOWN_SITE):
                assert fault is not None
                detail = f"{self._names.link(link.id)} {fault.value}"
                yield finding(Check.BAD_LINK, _link(link), detail)

    def doubled_links(self) -> Iterator[Finding]:
        """Yields the links between two sites beside the one that messages take."""
        taken: dict[frozenset[Guid], Link] = {}
        usable = (x for x in self._snapshot.links.values() if not x.fault(self._snapshot.sites))
        for link in sorted(usable, key=lambda each: (each.cost, each.id)):
            best = taken.setdefault(frozenset((link.site1, link.site2)), link)
            if best is not link:
                other = f"{best.id} at cost {best.cost}"
                detail = f"{self._names.link(link.id)} at cost {link.cost}, as {other}"
                yield finding(Check.DOUBLED_LINK, _link(link), detail)

    def gates(self) -> Iterator[Finding]:
        """Yields gates that are no gates; unknown machines are dangling references."""
        for site in self._snapshot.sites.values():
            for gate in site.gates:
                if detail := self._fault(gate, (site.id,)):
                    yield finding(Check.BAD_GATE, _site(site), detail)
        for link in self._snapshot.links.values():
            for gate in link.gates:
                if detail := self._fault(gate, (link.site1, link.site2)):
                    yield finding(Check.BAD_GATE, _link(link), detail)

    def _fault(self, gate: Guid, sites: tuple[Guid, ...]) -> str:
        machine = self._snapshot.machines.get(gate)
        if machine is None:
            return ""
        if not machine.routing_server:
            return f"{self._names.machine(gate)} {RouteFault.GATE_NO_ROUTER.value}"
        if set(sites).isdisjoint(machine.sites) and self._knows_sites_of(gate):
            return f"{self._names.machine(gate)} {RouteFault.GATE_ELSEWHERE.value}"
        return ""

    def _knows_sites_of(self, machine: Guid) -> bool:
        sites = self._snapshot.machines[machine].sites
        return not sites or self._knowledge.knows_sites_of(sites[0])

    def sites(self) -> Iterator[Finding]:
        closed = {site for site in self._snapshot.sites if self.has_no_gate(site)}
        for site in closed:
            yield finding(Check.NO_GATE, _site(self._snapshot.sites[site]))
        for group in islands(self._snapshot, closed)[1:]:
            for site in group:
                others = len(group) - 1
                detail = f"{counted(others, 'other site')} can be reached" if others else ""
                yield finding(Check.CUT_OFF, _site(self._snapshot.sites[site]), detail)

    def has_no_gate(self, site: Guid) -> bool:
        """True if the site certainly has no gate."""
        if site in self._snapshot.gates:
            return False
        if any(self._may_be_here(gate) for gate in self._snapshot.sites[site].gates):
            return False
        linked = bool(self._snapshot.links_at.get(site))
        possible = linked and bool(self._snapshot.routers.get(site))
        return self._knowledge.knows_link_gates or not possible

    def _may_be_here(self, gate: Guid) -> bool:
        """True if the site is not among the known sites of a router, which may have others."""
        machine = self._snapshot.machines.get(gate)
        return machine is not None and machine.routing_server and not self._knows_sites_of(gate)
