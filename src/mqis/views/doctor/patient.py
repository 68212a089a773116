"""The server that is checked, and the servers that its directory knows as its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mqis.config.sections import Config
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import name_key
from mqis.protocol.ports import Store, View
from mqis.protocol.replication.server_identity import Server
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class Patient:
    """The server that is checked."""

    file: Path
    config: Config
    #: None if it cannot be opened, which is a separate finding.
    store: Store | None
    #: True if a server has the store open; None if that cannot be known.
    running: bool | None
    #: Known RPC ports of other servers.
    rpc_ports: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownNeighbour:
    name: str
    id: Guid
    role: str


def neighbours(view: View, me: Server) -> list[KnownNeighbour]:
    """The neighbours: a BSC's PSC; for others, the PSCs of all sites and the own backups."""
    primary = {
        name_key(str(psc))
        for site in view.objects(ObjectType.SITE)
        if (psc := site.value(PropId.S_PSC)) and (not me.is_bsc or site.id == me.site)
    }
    found = []
    for machine in view.objects(ObjectType.MACHINE):
        name = machine.path or ""
        role = ServiceAttributes.of(machine).role
        backup = role is ServiceBits.BSC and machine.partition == me.site and not me.is_bsc
        if machine.id != me.id and (name_key(name) in primary or backup):
            label = "server" if role is None or role.name is None else role.name.lower()
            found.append(KnownNeighbour(name, machine.id, label))
    return sorted(found, key=lambda neighbour: name_key(neighbour.name))
