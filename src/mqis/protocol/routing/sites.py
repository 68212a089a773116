"""Routes whose ends are sites: from the gate of a site, to any machine of a site.

A message into a site is for a machine that belongs to it, so the route to a site is that to a
machine which belongs to this site alone and takes messages directly. It ends at the gate that would
deliver the message. The pipeline's table ``routes`` and ``mqis routes`` have the same routes
(``bulk.columns``).
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.routing.diagnosis import no_gate
from mqis.protocol.routing.explain import ExplainStep, Explanation, explain
from mqis.protocol.routing.model import RoutingQueueManager
from mqis.protocol.routing.nexthops import decide
from mqis.protocol.routing.route_trace import TableOf
from mqis.protocol.routing.routing_table import EMPTY
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


def explain_between(
    snapshot: Snapshot, source: Guid, destination: Guid, tables: TableOf | None = None
) -> Explanation:
    """The route between machines and sites, each given by its identifier.

    A site without a gate sends nothing to other sites: that is the breakage.
    """
    start = _start(snapshot, source, destination)
    if start is None:
        return Explanation(source, destination, (), no_gate(snapshot, source))
    if destination not in snapshot.sites or destination in snapshot.machines:
        return explain(snapshot, start, destination, tables)
    return _into_site(snapshot, start, destination, tables)


def _start(snapshot: Snapshot, source: Guid, destination: Guid) -> Guid | None:
    """The machine that a message starts at: for a site, its first gate.

    Within a site without a gate, that is any machine: no gate is needed.
    """
    if source in snapshot.machines or source not in snapshot.sites:
        return source
    gates = snapshot.gates.get(source, ())
    if gates:
        return gates[0]
    end = snapshot.machines.get(destination)
    if destination != source and (end is None or source not in end.sites):
        return None
    return min((m.id for m in snapshot.machines.values() if source in m.sites), default=None)


def _into_site(snapshot: Snapshot, start: Guid, site: Guid, tables: TableOf | None) -> Explanation:
    probe = RoutingQueueManager(site, snapshot.sites[site].name, (site,))
    found = explain(snapshot.with_machine(probe), start, site, tables)
    if found.breakage is not None:
        return found
    last = found.steps[-2].machine  # the probe itself is the last
    arrived = ExplainStep(last, decide(snapshot, EMPTY, last, last), None)
    return replace(found, destination=last, steps=(*found.steps[:-2], arrived))
