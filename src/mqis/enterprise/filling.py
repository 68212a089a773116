"""Creates the objects of the plan besides its servers: links, gates, machines, queues.

Each is created at its authority, so that nothing waits for replication.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqis.config.nodes import NodePlace, Nodes, NodesError
from mqis.enterprise.plan import LinkPlan, MachinePlan, QueuePlan, RunPlan, ServerRole
from mqis.enterprise.setup import Administrator, Changing, Connect
from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.service import ServiceBits
from mqis.wire.guid import Guid
from mqis.wire.mqds.address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop, props
from mqis.wire.propvariant import PropVariant

SITE, LINK = ObjectType.SITE, ObjectType.ROUTINGLINK
MACHINE, QUEUE = ObjectType.MACHINE, ObjectType.QUEUE
_BITS = {
    ServerRole.PEC: ServiceBits.PEC,
    ServerRole.PSC: ServiceBits.PSC,
    ServerRole.BSC: ServiceBits.BSC,
}


def fill(plan: RunPlan, nodes: Nodes, administrator: Administrator, connect: Connect) -> None:
    """Creates missing objects; leaves existing ones as they are."""
    for site in plan.sites:
        with connect(_authority(nodes, site.name), administrator) as authority:
            _fill_site(plan, nodes, site.name, authority)
    first = next(node for node in nodes if node.role == ServerRole.PEC)
    with connect(first, administrator) as pec:
        _links(plan.links, pec)
        for site in plan.sites:
            _gates(plan, site.name, pec)


def _authority(nodes: Nodes, site: str) -> NodePlace:
    """The present authority of a site: a server may have been promoted since the plan."""
    key = name_key(site)
    return next(n for n in nodes if name_key(n.site) == key and n.role != ServerRole.BSC)


def _fill_site(plan: RunPlan, nodes: Nodes, site: str, authority: Changing) -> None:
    key = name_key(site)
    own = {name_key(s.name) for s in plan.servers if name_key(s.site) == key}
    for server in plan.servers:
        if name_key(server.site) == key and server.routing:
            role = ServerRole(nodes.named(server.name).role)  # it may have been promoted
            _routing(server.name, int(_BITS[role] | ServiceBits.ROUTING), authority)
    for machine in plan.machines:
        if name_key(machine.site) == key:
            own.add(name_key(machine.name))
            if authority.id_of(MACHINE, machine.name) is None:
                _machine(machine, authority)
    for queue in plan.queues:
        ours = name_key(queue.path.partition("\\")[0]) in own
        if ours and authority.id_of(QUEUE, queue.path) is None:
            _queue(queue, authority)


def _routing(name: str, bits: int, authority: Changing) -> None:
    held = authority.get(MACHINE, name, [PropId.QM_SERVICE]).values.get(PropId.QM_SERVICE)
    if held is None or held.value != bits:
        authority.set(MACHINE, name, props({PropId.QM_SERVICE: bits}))


def _machine(machine: MachinePlan, authority: Changing) -> None:
    properties: dict[int, PropVariant] = props(
        {
            PropId.QM_SITE_ID: _site_id(authority, machine.site),
            PropId.QM_SERVICE: 0,
        }
    )
    if machine.address:
        listed = AddressList((TaAddress.ip(machine.address),))
        properties[PropId.QM_ADDRESS] = prop(PropId.QM_ADDRESS, listed.to_bytes())
    authority.create(MACHINE, machine.name, properties, None)


def _queue(queue: QueuePlan, authority: Changing) -> None:
    properties: dict[int, PropVariant] = props(
        {
            PropId.Q_LABEL: queue.label,
            PropId.Q_TRANSACTION: int(queue.transactional),
            PropId.Q_JOURNAL: int(queue.journal),
        }
    )
    authority.create(QUEUE, queue.path, properties, None)


def _links(links: Sequence[LinkPlan], pec: Changing) -> None:
    """Creates the links whose sites no link joins; in a directory a link has no name."""
    columns = (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)
    rows = pec.lookup(LINK, columns, (), ()) if links else []
    joined = [{end.value for end in row.values.values() if end is not None} for row in rows]
    for link in links:
        ends = [_site_id(pec, name) for name in link.sites]
        if set(ends) not in joined:
            _link(link, ends, pec)


def _link(link: LinkPlan, ends: Sequence[Guid], pec: Changing) -> None:
    properties: dict[int, PropVariant] = props(
        {
            PropId.L_NEIGHBOR1: ends[0],
            PropId.L_NEIGHBOR2: ends[1],
            PropId.L_ACTUAL_COST: link.cost,
        }
    )
    if link.description:
        properties[PropId.L_DESCRIPTION] = prop(PropId.L_DESCRIPTION, link.description)
    path = "".join(end.big_endian.hex().upper() for end in ends)
    pec.create(LINK, path, properties, None)


def _gates(plan: RunPlan, site: str, pec: Changing) -> None:
    routing = [s.name for s in plan.servers if s.routing and name_key(s.site) == name_key(site)]
    if not routing:
        return
    ids = tuple(found for name in routing if (found := pec.id_of(MACHINE, name)) is not None)
    if len(ids) < len(routing):
        raise NodesError(
            f"{plan.pec.name} does not know all of {', '.join(routing)} yet; run 'mqis up' again"
        )
    held = pec.get(SITE, site, [PropId.S_GATES]).values.get(PropId.S_GATES)
    if held is None or held.value != ids:
        pec.set(SITE, site, props({PropId.S_GATES: ids}))


def _site_id(directory: Changing, name: str) -> Guid:
    found = directory.id_of(SITE, name)
    if found is None:
        raise NodesError(f"the directory has no site {name}")
    return found
