"""GetNextHops and its helpers (MS-MQBR 3.1.5), as the errata correct them.

    source is the destination                          deliver here
    not a routing server
        on the destination's in-routing list           the destination          (E-MQBR-12)
        has out-routing servers                        these
        shares a site with the destination             its in-routing servers, else itself
        otherwise                                      a routing server of an own site
    routing server
        on the destination's in-routing list           the destination
        shares a site with the destination             its in-routing servers, else itself
        site gate                                      a gate of the next site of the table
        otherwise                                      a gate of an own site

Where the text takes one of several routing servers or gates, all are returned, ascending by GUID:
the first is to be used, the others in case it cannot be reached. In- and out-routing servers keep
the order in which the directory lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from mqis.protocol.routing.breakage import Breakage, NoRouteError, RouteFault
from mqis.protocol.routing.diagnosis import no_gate, no_path
from mqis.protocol.routing.graph import by_text
from mqis.protocol.routing.model import RoutingQueueManager
from mqis.protocol.routing.routing_table import RoutingTable, TableRow
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

Guids = tuple[Guid, ...]


class Question(Enum):
    """The conditions on the source, in the order of the sections."""

    LOCAL = "is the destination itself"
    ROUTING_SERVER = "is a routing server (3.1.5.1)"
    ON_IN_LIST = "is an in-routing server of the destination (3.1.5.2, 3.1.5.3)"
    HAS_OUT_LIST = "has out-routing servers (3.1.5.1)"
    SITE_GATE = "is a site gate (3.1.5.8)"
    SHARES_SITE = "shares a site with the destination (3.1.5.1 to 3.1.5.3)"
    HAS_IN_LIST = "sends to a destination that has in-routing servers (3.1.5.1 to 3.1.5.3)"


class NextHopRule(Enum):
    """The rule that chose the next hops."""

    LOCAL = "delivers here"
    DESTINATION = "sends to the destination itself"
    OUT_LIST = "sends to one of its out-routing servers"
    IN_LIST = "sends to one of the destination's in-routing servers"
    ROUTING_SERVER = "sends to a routing server of its site"
    OWN_GATE = "sends to a gate of its site"
    NEXT_SITE = "sends to a gate of the next site on the cheapest path"
    NOBODY = "sends to nobody"


@dataclass(frozen=True, slots=True)
class Decision:
    """The possible next hops, best first, and the reasons for them."""

    rule: NextHopRule
    hops: Guids = ()
    #: The row of the routing table that a gate followed to another site.
    row: TableRow | None = None
    #: The reason that there is no hop; None if there is one, or the message stays here.
    breakage: Breakage | None = None
    #: The conditions that were checked, with their results.
    answers: tuple[tuple[Question, bool], ...] = ()

    @property
    def local(self) -> bool:
        """True if the source is the destination: the message is not forwarded (E-MQBR-13)."""
        return self.rule is NextHopRule.LOCAL


def next_hops(snapshot: Snapshot, table: RoutingTable, source: Guid, destination: Guid) -> Decision:
    """GetNextHops (3.1.5.1); ``NoRouteError`` if there is no next hop."""
    decision = decide(snapshot, table, source, destination)
    if decision.breakage is not None:
        raise NoRouteError(decision.breakage)
    return decision


def decide(snapshot: Snapshot, table: RoutingTable, source: Guid, destination: Guid) -> Decision:
    """GetNextHops without the exception: a failed attempt is a decision with a breakage."""
    here, there = (get_queue_manager(snapshot, machine) for machine in (source, destination))
    if here is None or there is None:
        unknown = source if here is None else destination
        return Decision(NextHopRule.NOBODY, breakage=Breakage(RouteFault.UNKNOWN_MACHINE, unknown))
    return _Asked(snapshot, table, here, there).decision()


@dataclass(slots=True)
class _Asked:
    """One evaluation of the rules, which records the answers."""

    snapshot: Snapshot
    table: RoutingTable
    source: RoutingQueueManager
    destination: RoutingQueueManager
    answers: list[tuple[Question, bool]] = field(default_factory=list)

    def decision(self) -> Decision:
        if self._answer(Question.LOCAL, self.source.id == self.destination.id):
            return self._sends(NextHopRule.LOCAL)
        if self._answer(Question.ROUTING_SERVER, self.source.routing_server):
            return self.for_router()
        # Before the own out-routing servers: these would send the message back here (E-MQBR-12).
        if self._on_in_list():
            return self._sends(NextHopRule.DESTINATION, (self.destination.id,))
        if self._answer(Question.HAS_OUT_LIST, bool(self.source.out_routing_servers)):
            return self._sends(NextHopRule.OUT_LIST, self.source.out_routing_servers)
        if self._shares_site():
            return self._into_own_site()
        servers = get_routing_servers(self.snapshot, self.source.id)
        return self._sends(NextHopRule.ROUTING_SERVER, servers)

    def for_router(self) -> Decision:
        """GetNextHopsForRouter, GetNextHopsForSiteGate (3.1.5.2, 3.1.5.3)."""
        gate = self._answer(Question.SITE_GATE, is_site_gate(self.snapshot, self.source.id))
        if self._on_in_list():
            return self._sends(NextHopRule.DESTINATION, (self.destination.id,))
        if self._shares_site():
            return self._into_own_site()
        if gate:
            return self._between_sites()
        return self._sends(NextHopRule.OWN_GATE, get_site_gates(self.snapshot, self.source.id))

    def _into_own_site(self) -> Decision:
        listed = self.destination.in_routing_servers
        if self._answer(Question.HAS_IN_LIST, bool(listed)):
            return self._sends(NextHopRule.IN_LIST, listed)
        return self._sends(NextHopRule.DESTINATION, (self.destination.id,))

    def _between_sites(self) -> Decision:
        row = self.table.nearest(self.destination.sites)
        if row is None:
            return self._sends(NextHopRule.NEXT_SITE)
        gates = get_site_gates_for_site(self.snapshot, row.next_hop)
        return self._sends(NextHopRule.NEXT_SITE, gates, row)

    def _on_in_list(self) -> bool:
        listed = self.source.id in self.destination.in_routing_servers
        return self._answer(Question.ON_IN_LIST, listed)

    def _shares_site(self) -> bool:
        shared = not set(self.source.sites).isdisjoint(self.destination.sites)
        return self._answer(Question.SHARES_SITE, shared)

    def _answer(self, question: Question, answer: bool) -> bool:
        self.answers.append((question, answer))
        return answer

    def _sends(
        self, rule: NextHopRule, hops: Iterable[Guid] = (), row: TableRow | None = None
    ) -> Decision:
        """The decision, without hops to itself (E-MQBR-05, E-MQBR-11) or null (E-MQBR-10)."""
        left = tuple(hop for hop in hops if hop and hop != self.source.id)
        broken = None if left or rule is NextHopRule.LOCAL else self._breakage(rule, row)
        return Decision(rule, left, row, broken, tuple(self.answers))

    def _breakage(self, rule: NextHopRule, row: TableRow | None) -> Breakage:
        own = [site for site in self.source.sites if site in self.snapshot.sites]
        if rule is NextHopRule.OUT_LIST:
            return Breakage(RouteFault.OUT_SELF, self.source.id)
        if not own:
            return Breakage(RouteFault.NO_SITE, self.source.id)
        if rule is NextHopRule.ROUTING_SERVER:
            return Breakage(RouteFault.NO_ROUTING_SERVER, own[0])
        if rule is NextHopRule.OWN_GATE or row is not None:
            return no_gate(self.snapshot, own[0] if row is None else row.next_hop)
        return self._unreachable(own)

    def _unreachable(self, own: Iterable[Guid]) -> Breakage:
        known = [site for site in self.destination.sites if site in self.snapshot.sites]
        if not known:
            return Breakage(RouteFault.NO_SITE, self.destination.id)
        return no_path(self.snapshot, own, known[0])


# --- the helpers ----------------------------------------------------------------------------------


def get_queue_manager(snapshot: Snapshot, machine: Guid) -> RoutingQueueManager | None:
    """GetQueueManager (3.1.5.4)."""
    return snapshot.machines.get(machine)


def get_routing_servers(snapshot: Snapshot, machine: Guid) -> Guids:
    """GetRoutingServer (3.1.5.5): those of a machine's sites, without itself (E-MQBR-11)."""
    source = snapshot.machines.get(machine)
    sites = source.sites if source else ()
    found = {router for site in sites for router in snapshot.routers.get(site, ())} - {machine}
    return tuple(sorted(found, key=by_text))


def get_site_gates(snapshot: Snapshot, machine: Guid) -> Guids:
    """GetSiteGate (3.1.5.6): those of the machine's first site that has gates (E-MQBR-16)."""
    source = snapshot.machines.get(machine)
    sites = sorted(source.sites, key=by_text) if source else ()
    return next((gates for site in sites if (gates := snapshot.gates.get(site))), ())


def get_site_gates_for_site(snapshot: Snapshot, site: Guid) -> Guids:
    """GetSiteGateForSite (3.1.5.7)."""
    return snapshot.gates.get(site, ())


def is_site_gate(snapshot: Snapshot, machine: Guid) -> bool:
    """IsSiteGate (3.1.5.8): True if the machine is a gate of one of its sites."""
    found = snapshot.machines.get(machine)
    return found is not None and any(machine in snapshot.gates.get(s, ()) for s in found.sites)
