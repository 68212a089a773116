"""The elements of the shared data model that discovery reads and writes (MS-MQSD 3.1.1.1, 3.2.1.1).

A client fills its lists from replies; a server reads its own from the directory.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.read_methods import controllers_of
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class DiscoveryQueueManager:
    """The attributes of a queue manager that discovery uses (MS-MQDMPR 3.1.1.1)."""

    #: Enterprise.Identifier; nil for a client that has not joined one.
    enterprise_id: Guid = Guid.NULL
    #: SiteIdentifierList. The first one is Site.Identifier, which the text has in the singular.
    site_ids: tuple[Guid, ...] = ()
    #: DirectoryServerList: NetBIOS names.
    directory_servers: tuple[str, ...] = ()
    #: ConnectedNetworkIdentifierList.
    connected_networks: tuple[Guid, ...] = ()

    @property
    def site_id(self) -> Guid:
        """The first site; nil, which is no server's site, if there is none yet (MQSD-1.3-02)."""
        return self.site_ids[0] if self.site_ids else Guid.NULL


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    """One local network address, as NetworkAddressList has it.

    ``remote_access`` marks a dial-up address, which may lead to another network every time.
    """

    address: str
    remote_access: bool = False


# --- The facts that a directory server announces --------------------------------------------------
# Read from the directory (MS-MQSD 3.2.1.1).


def queue_manager_of(
    view: View, name: str, site_id: Guid, networks: tuple[Guid, ...] = ()
) -> DiscoveryQueueManager:
    """The server ``name`` in a site, as the directory describes it now.

    ``networks`` override those that its machine object lists. The servers are those of
    the site, its authority first; this server is always among them (E-MQSD-09).
    """
    root = enterprise(view)
    machine = view.find(ObjectType.MACHINE, name)
    sites = _guids(machine, PropId.QM_SITE_IDS)
    return DiscoveryQueueManager(
        Guid.NULL if root is None else root.id,
        tuple(dict.fromkeys((site_id, *sites))),
        _servers(view, site_id, name),
        networks or _guids(machine, PropId.QM_CNS),
    )


def _servers(view: View, site_id: Guid, own_name: str) -> tuple[str, ...]:
    site = view.get(ObjectType.SITE, site_id)
    names = [] if site is None else [name for name in controllers_of(view, site) if name]
    if name_key(own_name) not in map(name_key, names):
        names.append(own_name)
    return tuple(names)


def _guids(machine: DirectoryObject | None, propid: PropId) -> tuple[Guid, ...]:
    listed = None if machine is None else machine.value(propid)
    return tuple(v for v in listed if isinstance(v, Guid)) if isinstance(listed, tuple) else ()
