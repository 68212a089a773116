"""What an enterprise has now, as the enterprise file would have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.file import read
from mqis.config.nodes import ACCOUNTS, NodePlace, Nodes
from mqis.enterprise.configs import is_member
from mqis.enterprise.difference import Present, PresentEntry
from mqis.enterprise.placing import all_servers, present_roles
from mqis.enterprise.plan import (
    PORTS,
    Entry,
    EntryKind,
    RunPlan,
    ServerRole,
    entries_of,
    link_key,
)
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.object_sources import Record, Source
from mqis.protocol.directory.objects import name_key
from mqis.server.accounts import AccountsFile
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.machine_address import AddressList
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.sid import ADMINISTRATORS


def read_present(
    plan: RunPlan, before: RunPlan, nodes: Nodes, run: Path, source: Source
) -> Present:
    """Reads all sites and links, and of the other kinds what the two files name.

    Machines and queues are made by clients all the time, so others are no difference.
    """
    named = {kind: entries_of(before, kind) | entries_of(plan, kind) for kind in EntryKind}
    options = entries_of(before, EntryKind.OPTIONS)
    sites = {
        record.id: record.path or str(record.id)
        for record in source.lookup(ObjectType.SITE, (PropId.S_PATHNAME,), (), ())
    }
    links = source.lookup(
        ObjectType.ROUTINGLINK, (*_ends(), PropId.L_ACTUAL_COST, PropId.L_DESCRIPTION), (), ()
    )
    roles = present_roles(run, all_servers(plan, before))
    # One that has lost its directory is still a server of the enterprise.
    known = entries_of(before, EntryKind.SERVER)
    members = [node for node in nodes if name_key(node.name) in known or is_member(node)]
    return {
        # Carrying out the file has written them into every configuration.
        EntryKind.OPTIONS: {k: PresentEntry(e.name, e.attributes) for k, e in options.items()},
        EntryKind.ACCOUNT: _accounts(named[EntryKind.ACCOUNT], run),
        EntryKind.SITE: {name_key(name): PresentEntry(name, {}) for name in sites.values()},
        EntryKind.SERVER: {name_key(node.name): _server(node, roles, source) for node in members},
        EntryKind.MACHINE: _existing(named[EntryKind.MACHINE], _machine(source, sites)),
        EntryKind.QUEUE: _existing(named[EntryKind.QUEUE], _queue(source)),
        EntryKind.LINK: dict(_link(record, sites) for record in links),
    }


def _existing(
    named: Mapping[str, Entry], look: Callable[[str], dict[str, object] | None]
) -> dict[str, PresentEntry]:
    """The entries that the directory has; ``look`` returns the attributes of one, or None."""
    found = {key: (entry.name, look(entry.name)) for key, entry in named.items()}
    return {k: PresentEntry(name, v) for k, (name, v) in found.items() if v is not None}


def _get(source: Source, kind: ObjectType, name: str, *chosen: PropId) -> Record | None:
    return None if source.id_of(kind, name) is None else source.get(kind, name, chosen)


def _accounts(named: Mapping[str, Entry], run: Path) -> dict[str, PresentEntry]:
    file = AccountsFile(run / ACCOUNTS)
    found = {}
    for key, entry in named.items() if file.path.exists() else ():
        domain, _, name = entry.name.partition("\\")
        account = file.find(domain, name)
        if account is not None:
            found[key] = PresentEntry(
                entry.name, {"administrator": ADMINISTRATORS in account.groups}
            )
    return found


def _ports(node: NodePlace) -> dict[str, object]:
    """The ports of a server's configuration.

    The run directory has new ones before the server, which a supervisor that was killed has not
    restarted.
    """
    try:
        config = read(Path(node.config))
    except ConfigError:  # it is not set up, or lost
        return {port: getattr(node, port) for port in PORTS}
    return {
        "rpc_port": config.rpc.port,
        "mapper_port": config.rpc.mapper_port,
        "queue_port": config.replication.port,
        "discovery_port": config.discovery.port,
        "monitor_port": config.monitoring.port,
    }


def _server(node: NodePlace, roles: Mapping[str, ServerRole], source: Source) -> PresentEntry:
    ports = _ports(node)
    role = roles.get(node.name, ServerRole(node.role))
    values = {"site": node.site, "role": role, **ports}
    machine = _get(source, ObjectType.MACHINE, node.name, PropId.QM_SERVICE)
    if machine is not None:
        bits = machine.value(PropId.QM_SERVICE)
        values["routing"] = bool(isinstance(bits, int) and bits & ServiceBits.ROUTING)
    return PresentEntry(node.name, values)


def _machine(
    source: Source, sites: Mapping[Guid, str]
) -> Callable[[str], dict[str, object] | None]:
    def machine(name: str) -> dict[str, object] | None:
        wanted = PropId.QM_SITE_ID, PropId.QM_ADDRESS
        found = _get(source, ObjectType.MACHINE, name, *wanted)
        if found is None:
            return None
        return {"site": _site(found, sites), "address": _address(found)}

    return machine


def _site(machine: Record, sites: Mapping[Guid, str]) -> str:
    found = machine.value(PropId.QM_SITE_ID)
    return sites.get(found, str(found)) if isinstance(found, Guid) else ""


def _address(machine: Record) -> str:
    octets = machine.value(PropId.QM_ADDRESS)
    try:
        listed = AddressList.from_bytes(octets).addresses if isinstance(octets, bytes) else ()
    except WireError:
        return ""
    return str(listed[0]).removeprefix("IP ") if listed else ""


def _queue(source: Source) -> Callable[[str], dict[str, object] | None]:
    def queue(name: str) -> dict[str, object] | None:
        wanted = PropId.Q_LABEL, PropId.Q_TRANSACTION, PropId.Q_JOURNAL
        found = _get(source, ObjectType.QUEUE, name, *wanted)
        if found is None:
            return None
        return {
            "label": found.value(PropId.Q_LABEL) or "",
            "transactional": found.value(PropId.Q_TRANSACTION) == 1,
            "journal": found.value(PropId.Q_JOURNAL) == 1,
        }

    return queue


def _ends() -> tuple[PropId, PropId]:
    return PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2


def _link(record: Record, sites: Mapping[Guid, str]) -> tuple[str, PresentEntry]:
    ends = [record.value(propid) for propid in _ends()]
    names = [sites.get(end, str(end)) if isinstance(end, Guid) else "?" for end in ends]
    values = {
        "cost": record.value(PropId.L_ACTUAL_COST),
        "description": record.value(PropId.L_DESCRIPTION) or "",
    }
    return link_key(names), PresentEntry(" - ".join(names), values)
