"""The facts that a directory server announces, read from the directory (MS-MQSD 3.2.1.1)."""

from __future__ import annotations

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.read_methods import controllers_of
from mqis.protocol.discovery.model import DiscoveryQueueManager
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


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
