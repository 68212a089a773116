"""The route of a message, followed from next hop to next hop.

Each gate on the route is nearer to the destination than the one before, so the route ends. Gates
that see different states of the directory can still send a message round in circles (E-MQBR-08);
the hop count of the message ends that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqis.protocol.routing.breakage import Breakage, RouteFault
from mqis.protocol.routing.keeper import routing_table
from mqis.protocol.routing.nexthops import Decision, decide, is_site_gate
from mqis.protocol.routing.routing_table import EMPTY, RoutingTable
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

#: The most queue managers that may relay a message (MS-MQMQ 2.2.20.2, RC; MS-MQQB 3.1.5.8.2).
HOP_LIMIT = 0x1D

TableOf = Callable[[Guid], RoutingTable]


@dataclass(frozen=True, slots=True)
class Hop:
    """The decision of one queue manager, and the next hop it sends to."""

    machine: Guid
    decision: Decision
    next: Guid | None = None


@dataclass(frozen=True, slots=True)
class Route:
    hops: tuple[Hop, ...]
    #: The reason that the route ends before the destination; None if it is reached.
    breakage: Breakage | None = None

    @property
    def machines(self) -> tuple[Guid, ...]:
        """The machines that handle the message, in order."""
        return tuple(hop.machine for hop in self.hops)


class RoutingTables:
    """The tables of all gates of a snapshot, each built on first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._built: dict[tuple[Guid, ...], RoutingTable] = {}

    def __call__(self, machine: Guid) -> RoutingTable:
        if not is_site_gate(self._snapshot, machine):
            return EMPTY
        sites = self._snapshot.machines[machine].sites
        if sites not in self._built:
            self._built[sites] = routing_table(self._snapshot, machine)
        return self._built[sites]


def trace(
    snapshot: Snapshot, source: Guid, destination: Guid, tables: TableOf | None = None
) -> Route:
    """The route of a message that is sent to the first candidate each time."""
    tables = tables or RoutingTables(snapshot)
    hops: list[Hop] = []
    here = source
    while True:
        decision = decide(snapshot, tables(here), here, destination)
        if len(hops) > HOP_LIMIT and not decision.local:
            return Route(tuple(hops), Breakage(RouteFault.HOP_LIMIT, here))
        there = next((hop for hop in decision.hops if hop in snapshot.machines), None)
        hops.append(Hop(here, decision, there))
        if there is None:
            return Route(tuple(hops), _end(decision))
        here = there


def _end(decision: Decision) -> Breakage | None:
    if decision.local or decision.breakage is not None:
        return decision.breakage
    return Breakage(RouteFault.NO_HOP, decision.hops[0])
