"""Brings the objects of the plan into the directory: links, gates, machines, queues.

Each is created, changed or deleted at its authority, so that nothing waits for replication. An
object that a server refuses stops no other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes
from mqis.enterprise.difference import Action, Step, former_gates
from mqis.enterprise.plan import (
    EntryKind,
    LinkPlan,
    MachinePlan,
    QueuePlan,
    RunPlan,
    ServerRole,
)
from mqis.enterprise.setup import Administrator, Changing, Connect
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import name_key
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

SITE, LINK = ObjectType.SITE, ObjectType.ROUTINGLINK
MACHINE, QUEUE = ObjectType.MACHINE, ObjectType.QUEUE
_TYPES = {
    EntryKind.SITE: SITE,
    EntryKind.SERVER: MACHINE,
    EntryKind.MACHINE: MACHINE,
    EntryKind.QUEUE: QUEUE,
    EntryKind.LINK: LINK,
}
#: The property of each attribute that can be changed.
_PROPERTIES = {
    (EntryKind.MACHINE, "address"): PropId.QM_ADDRESS,
    (EntryKind.QUEUE, "label"): PropId.Q_LABEL,
    (EntryKind.QUEUE, "journal"): PropId.Q_JOURNAL,
    (EntryKind.LINK, "cost"): PropId.L_ACTUAL_COST,
    (EntryKind.LINK, "description"): PropId.L_DESCRIPTION,
}
_BITS = {
    ServerRole.PEC: ServiceBits.PEC,
    ServerRole.PSC: ServiceBits.PSC,
    ServerRole.BSC: ServiceBits.BSC,
}


#: Takes the name of an object and the reason for which it was refused.
Refused = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Filling:
    """The enterprise whose directory is filled, and the account that fills it."""

    plan: RunPlan
    nodes: Nodes
    administrator: Administrator
    connect: Connect
    refused: Refused

    def fill(self, steps: Sequence[Step] = ()) -> None:
        """Creates missing objects; leaves existing ones as they are.

        The gates of a site are the routing servers of the plan; servers that ``steps`` take out, or
        let route no more, are none.
        """
        former = frozenset(former_gates(steps))
        for site in self.plan.sites:
            with self.connect(_authority(self.nodes, site.name), self.administrator) as authority:
                self._fill_site(site.name, authority)
        with self.connect(_pec(self.nodes), self.administrator) as pec:
            self._links(pec)
            for site in self.plan.sites:
                with self._told(f"site {site.name}: gates"):
                    _gates(self.plan, site.name, former, pec)

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Tells what a server refuses, and goes on."""
        try:
            yield
        except (MqisError, ValueError) as error:  # a value that cannot even be sent is one of these
            self.refused(name, error)

    def _fill_site(self, site: str, authority: Changing) -> None:
        plan, key = self.plan, name_key(site)
        own = {name_key(s.name) for s in plan.servers if name_key(s.site) == key}
        for server in plan.servers:
            if name_key(server.site) == key and server.routing:
                role = ServerRole(self.nodes.named(server.name).role)  # it may have been promoted
                _routing(server.name, int(_BITS[role] | ServiceBits.ROUTING), authority)
        for machine in plan.machines:
            if name_key(machine.site) == key:
                own.add(name_key(machine.name))
                with self._told(f"machine {machine.name}"):
                    if authority.id_of(MACHINE, machine.name) is None:
                        _machine(machine, authority)
        for queue in plan.queues:
            if name_key(queue.path.partition("\\")[0]) in own:
                with self._told(f"queue {queue.path}"):
                    if authority.id_of(QUEUE, queue.path) is None:
                        _queue(queue, authority)

    def _links(self, pec: Changing) -> None:
        """Creates the links whose sites no link joins; in a directory a link has no name."""
        joined = [ends for _, ends in _link_ends(pec)] if self.plan.links else []
        for link in self.plan.links:
            with self._told(f"link {' - '.join(link.sites)}"):
                ends = [_site_id(pec, name) for name in link.sites]
                if set(ends) not in joined:
                    _link(link, ends, pec)

    # --- changes ----------------------------------------------------------------------------------

    def carry_out(self, steps: Sequence[Step], leaving: Set[str] = frozenset()) -> None:
        """Changes and deletes objects; steps about servers and accounts are not for a directory.

        What is in a site that is ``leaving`` goes with it, at every server.
        """
        for step in steps:
            if step.action is Action.ADD or not _in_directory(step):
                continue
            do = _remove if step.action is Action.REMOVE else _change
            with self._told(f"{step.kind} {step.name}"):
                place = self._authority_of(step, leaving)
                if place is None:
                    continue
                with self.connect(place, self.administrator) as authority:
                    do(step, authority)

    def _authority_of(self, step: Step, leaving: Set[str]) -> NodePlace | None:
        """That of a machine or queue is in its site, that of all others the PEC.

        None if there is nothing to do, because it is gone or goes with its site.
        """
        if step.kind in (EntryKind.SITE, EntryKind.LINK):
            return _pec(self.nodes)
        machine = step.name.partition("\\")[0]
        with self.connect(_pec(self.nodes), self.administrator) as pec:
            if step.action is Action.REMOVE and pec.id_of(MACHINE, machine) is None:
                return None
            found = pec.get(MACHINE, machine, [PropId.QM_SITE_ID]).values[PropId.QM_SITE_ID]
            site = None if found is None else found.value
            name = pec.name_of(SITE, site) if isinstance(site, Guid) else None
        if name is None:
            return _pec(self.nodes)
        return None if name_key(name) in leaving else _authority(self.nodes, name)


def _in_directory(step: Step) -> bool:
    if step.kind is EntryKind.SERVER and step.action is Action.CHANGE:
        return "routing" in step.before
    return step.kind in _TYPES


def _pec(nodes: Nodes) -> NodePlace:
    return next(node for node in nodes if node.role == ServerRole.PEC)


def _authority(nodes: Nodes, site: str) -> NodePlace:
    """The present authority of a site: a server may have been promoted since the plan."""
    key = name_key(site)
    return next(n for n in nodes if name_key(n.site) == key and n.role != ServerRole.BSC)


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


def _link_ends(pec: Changing) -> list[tuple[Guid, set[object]]]:
    """The links of the directory, each with the identifiers of its sites."""
    rows = pec.lookup(LINK, (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2), (), ())
    return [(r.id, {end.value for end in r.values.values() if end is not None}) for r in rows]


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


def _gates(plan: RunPlan, site: str, former: Set[str], pec: Changing) -> None:
    routing = [s.name for s in plan.servers if s.routing and name_key(s.site) == name_key(site)]
    value = pec.get(SITE, site, [PropId.S_GATES]).values.get(PropId.S_GATES)
    listed = value.value if value is not None and isinstance(value.value, tuple) else ()
    held = tuple(gate for gate in listed if isinstance(gate, Guid))
    if routing:
        ids = tuple(found for name in routing if (found := pec.id_of(MACHINE, name)) is not None)
        if len(ids) < len(routing):
            raise NodesError(
                f"{plan.pec.name} does not know all of {', '.join(routing)} yet; run 'mqis up' "
                "again"
            )
    else:  # commands may have made others gates; machines that are deleted have no names
        gone = {None, *map(name_key, former)}
        ids = tuple(gate for gate in held if _machine_key(pec, gate) not in gone)
    if held != ids:
        pec.set(SITE, site, props({PropId.S_GATES: ids}))


def _machine_key(pec: Changing, machine: Guid) -> str | None:
    name = pec.name_of(MACHINE, machine)
    return None if name is None else name_key(name)


# --- changes --------------------------------------------------------------------------------------


def _change(step: Step, authority: Changing) -> None:
    new = {key: step.entry.attributes[key] for key in step.before}
    if step.kind is EntryKind.SERVER:
        held = authority.get(MACHINE, step.name, [PropId.QM_SERVICE]).values[PropId.QM_SERVICE]
        bits = held.value if held is not None and isinstance(held.value, int) else 0
        routing = ServiceBits.ROUTING if new["routing"] else 0
        changed = int(bits & ~ServiceBits.ROUTING | routing)
        authority.set(MACHINE, step.name, props({PropId.QM_SERVICE: changed}))
        return
    values: dict[int, PropVariant] = {}
    for key, value in new.items():
        propid = _PROPERTIES[step.kind, key]
        values[propid] = prop(propid, _as_property(propid, value))
    authority.set(_TYPES[step.kind], _target(step, authority), values)


def _as_property(propid: PropId, value: object) -> int | str | bytes:
    if propid is PropId.QM_ADDRESS:
        return AddressList((TaAddress.ip(str(value)),) if value else ()).to_bytes()
    return int(value) if isinstance(value, int) else str(value)


def _remove(step: Step, authority: Changing) -> None:
    authority.delete(_TYPES[step.kind], _target(step, authority))


def _target(step: Step, authority: Changing) -> str:
    """The name of an object, or of a link its identifier."""
    if step.kind is not EntryKind.LINK:
        return step.name
    ends = {_site_id(authority, name) for name in step.name.split(" - ")}
    for identifier, joined in _link_ends(authority):
        if joined == ends:
            return str(identifier)
    raise NodesError(f"the directory has no link {step.name}")


def _site_id(directory: Changing, name: str) -> Guid:
    found = directory.id_of(SITE, name)
    if found is None:
        raise NodesError(f"the directory has no site {name}")
    return found
