"""What an enterprise has now, as the enterprise file would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mqis.config.nodes import ACCOUNTS, NodePlace, Nodes
from mqis.enterprise.configs import is_member
from mqis.enterprise.difference import Existing, Present
from mqis.enterprise.plan import (
    PORTS,
    Entry,
    EntryKind,
    RunPlan,
    ServerRole,
    entries_of,
    link_key,
)
from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.directory.sources import Record, Source
from mqis.server.accounts import AccountsFile
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.address import AddressList
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.sid import ADMINISTRATORS

_MACHINE = (PropId.QM_SITE_ID, PropId.QM_ADDRESS, PropId.QM_SERVICE)
_QUEUE = (PropId.Q_LABEL, PropId.Q_TRANSACTION, PropId.Q_JOURNAL)
_LINK = (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2, PropId.L_ACTUAL_COST, PropId.L_DESCRIPTION)


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
    links = source.lookup(ObjectType.ROUTINGLINK, _LINK, (), ())
    members = [node for node in nodes if is_member(node)]
    return {
        # Carrying out the file has written them into every configuration.
        EntryKind.OPTIONS: {k: Existing(e.name, e.attributes) for k, e in options.items()},
        EntryKind.ACCOUNT: _accounts(named[EntryKind.ACCOUNT], run),
        EntryKind.SITE: {name_key(name): Existing(name, {}) for name in sites.values()},
        EntryKind.SERVER: {
            name_key(node.name): Existing(node.name, _server(node, source)) for node in members
        },
        EntryKind.MACHINE: {
            key: Existing(entry.name, {"site": _site(found, sites), "address": _address(found)})
            for key, entry in named[EntryKind.MACHINE].items()
            if (found := _get(source, ObjectType.MACHINE, entry.name, _MACHINE)) is not None
        },
        EntryKind.QUEUE: {
            key: Existing(entry.name, _queue(found))
            for key, entry in named[EntryKind.QUEUE].items()
            if (found := _get(source, ObjectType.QUEUE, entry.name, _QUEUE)) is not None
        },
        EntryKind.LINK: dict(_link(record, sites) for record in links),
    }


def _get(source: Source, kind: ObjectType, name: str, chosen: Sequence[PropId]) -> Record | None:
    return None if source.id_of(kind, name) is None else source.get(kind, name, chosen)


def _value(record: Record, propid: PropId) -> object:
    held = record.values.get(propid)
    return None if held is None else held.value


def _accounts(named: Mapping[str, Entry], run: Path) -> dict[str, Existing]:
    file = AccountsFile(run / ACCOUNTS)
    found = {}
    for key, entry in named.items() if file.path.exists() else ():
        domain, _, name = entry.name.partition("\\")
        account = file.find(domain, name)
        if account is not None:
            found[key] = Existing(entry.name, {"administrator": ADMINISTRATORS in account.groups})
    return found


def _server(node: NodePlace, source: Source) -> dict[str, object]:
    ports = {port: getattr(node, port) for port in PORTS}
    values = {"site": node.site, "role": ServerRole(node.role), **ports}
    machine = _get(source, ObjectType.MACHINE, node.name, _MACHINE)
    if machine is not None:
        bits = _value(machine, PropId.QM_SERVICE)
        values["routing"] = bool(isinstance(bits, int) and bits & ServiceBits.ROUTING)
    return values


def _site(machine: Record, sites: Mapping[Guid, str]) -> str:
    found = _value(machine, PropId.QM_SITE_ID)
    return sites.get(found, str(found)) if isinstance(found, Guid) else ""


def _address(machine: Record) -> str:
    octets = _value(machine, PropId.QM_ADDRESS)
    try:
        listed = AddressList.from_bytes(octets).addresses if isinstance(octets, bytes) else ()
    except WireError:
        return ""
    return str(listed[0]).removeprefix("IP ") if listed else ""


def _queue(record: Record) -> dict[str, object]:
    return {
        "label": _value(record, PropId.Q_LABEL) or "",
        "transactional": _value(record, PropId.Q_TRANSACTION) == 1,
        "journal": _value(record, PropId.Q_JOURNAL) == 1,
    }


def _link(record: Record, sites: Mapping[Guid, str]) -> tuple[str, Existing]:
    ends = [_value(record, propid) for propid in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)]
    names = [sites.get(end, str(end)) if isinstance(end, Guid) else "?" for end in ends]
    values = {
        "cost": _value(record, PropId.L_ACTUAL_COST),
        "description": _value(record, PropId.L_DESCRIPTION) or "",
    }
    return link_key(names), Existing(" - ".join(names), values)
