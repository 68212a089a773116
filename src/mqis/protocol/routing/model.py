"""The directory objects that routing uses (MS-MQBR 3.1.1.1)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.link import MAX_LINK_COST
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class RoutingSite:
    id: Guid
    name: str
    #: PROPID_S_GATES, which MQIS directories have besides the links' lists (E-MQBR-01).
    gates: tuple[Guid, ...] = ()


class LinkFault(Enum):
    """The reason that a link is no edge of the graph (E-MQBR-07, E-MQBR-17)."""

    UNKNOWN_SITE = "names a site that is not in the directory"
    SELF_LINK = "joins a site to itself"
    COST = f"costs something other than 1 to {MAX_LINK_COST}"


@dataclass(frozen=True, slots=True)
class Link:
    """A routing link; it may be used in both directions."""

    id: Guid
    site1: Guid
    site2: Guid
    cost: int
    #: SiteGateIdentifierList: gates of both ends.
    gates: tuple[Guid, ...] = ()
    description: str = ""

    def fault(self, sites: Container[Guid]) -> LinkFault | None:
        """The reason that it cannot be used, or None. Costs of zero could cause loops."""
        if self.site1 not in sites or self.site2 not in sites:
            return LinkFault.UNKNOWN_SITE
        if self.site1 == self.site2:
            return LinkFault.SELF_LINK
        return None if 1 <= self.cost <= MAX_LINK_COST else LinkFault.COST


@dataclass(frozen=True, slots=True)
class RoutingQueueManager:
    id: Guid
    name: str
    sites: tuple[Guid, ...]
    routing_server: bool = False
    in_routing_servers: tuple[Guid, ...] = ()
    out_routing_servers: tuple[Guid, ...] = ()


RoutingObject = RoutingSite | Link | RoutingQueueManager

#: The properties that routing reads, for clients that have to request them.
PROPERTIES: dict[ObjectType, tuple[PropId, ...]] = {
    ObjectType.SITE: (PropId.S_PATHNAME, PropId.S_GATES),
    ObjectType.ROUTINGLINK: (
        PropId.L_NEIGHBOR1,
        PropId.L_NEIGHBOR2,
        PropId.L_ACTUAL_COST,
        PropId.L_GATES,
        PropId.L_DESCRIPTION,
    ),
    ObjectType.MACHINE: (
        PropId.QM_PATHNAME,
        PropId.QM_SITE_IDS,
        PropId.QM_SERVICE,
        PropId.QM_INFRS,
        PropId.QM_OUTFRS,
    ),
}


def routing_object(obj: DirectoryObject) -> RoutingObject | None:
    """The routing object of a directory object; None if routing does not use its type."""
    if obj.type is ObjectType.SITE:
        return RoutingSite(obj.id, obj.path or "", _guids(obj, PropId.S_GATES))
    if obj.type is ObjectType.ROUTINGLINK:
        return _link(obj)
    if obj.type is ObjectType.MACHINE:
        return RoutingQueueManager(
            obj.id,
            obj.path or "",
            _guids(obj, PropId.QM_SITE_IDS),
            ServiceAttributes.of(obj).routing,
            _guids(obj, PropId.QM_INFRS),
            _guids(obj, PropId.QM_OUTFRS),
        )
    return None


def _link(obj: DirectoryObject) -> Link:
    cost = obj.value(PropId.L_ACTUAL_COST)
    return Link(
        obj.id,
        _guid(obj, PropId.L_NEIGHBOR1),
        _guid(obj, PropId.L_NEIGHBOR2),
        cost if isinstance(cost, int) else 0,
        _guids(obj, PropId.L_GATES),
        str(obj.value(PropId.L_DESCRIPTION) or ""),
    )


def _guid(obj: DirectoryObject, propid: PropId) -> Guid:
    value = obj.value(propid)
    return value if isinstance(value, Guid) else Guid.NULL


def _guids(obj: DirectoryObject, propid: PropId) -> tuple[Guid, ...]:
    """A list of identifiers without null ones and duplicates."""
    value = obj.value(propid)
    elements = value if isinstance(value, tuple) else ()
    return tuple(dict.fromkeys(e for e in elements if isinstance(e, Guid) and e))
