"""Reads what the map shows: the routing snapshot, and the roles of directory servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.object_sources import Source
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.protocol.routing.model import RoutingObject, routing_object
from mqis.protocol.routing.snapshot import ROUTED, Snapshot
from mqis.views.routes.exported_snapshots import routed_objects
from mqis.views.routes.looking_up import snapshot_of_server
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class Chart:
    """The data of the map."""

    snapshot: Snapshot
    #: The roles (PEC, PSC, BSC) of the machines that are directory servers.
    roles: Mapping[Guid, str]


def chart_of_objects(objects: Iterable[DirectoryObject]) -> Chart:
    """The chart of sites, links and machines; it keeps none of the objects."""
    routed: list[RoutingObject] = []
    roles: dict[Guid, str] = {}
    for obj in objects:
        found = routing_object(obj)
        routed += () if found is None else (found,)
        role = _role(ServiceAttributes.of(obj)) if obj.type is ObjectType.MACHINE else ""
        if role:
            roles[obj.id] = role
    return Chart(Snapshot.make(routed), roles)


def chart_of_view(view: View) -> Chart:
    return chart_of_objects(obj for kind in ROUTED for obj in view.objects(kind))


def chart_of_export(path: Path) -> Chart:
    """Reads the chart of an export; raises ``ExportError`` with file, line and key."""
    return chart_of_objects(routed_objects(path))


def chart_of_server(source: Source) -> Chart:
    """Reads the chart by lookups; it has what this user may read."""
    snapshot = snapshot_of_server(source)
    roles = {}
    for record in source.lookup(ObjectType.MACHINE, (PropId.QM_SERVICE,), (), ()):
        bits = record.values[PropId.QM_SERVICE]
        value = None if bits is None else bits.value
        service = ServiceAttributes.from_bits(value if isinstance(value, int) else 0)
        roles[record.id] = _role(service)
    return Chart(snapshot, {machine: role for machine, role in roles.items() if role})


def _role(service: ServiceAttributes) -> str:
    return "" if service.role is None else str(service.role.name)
