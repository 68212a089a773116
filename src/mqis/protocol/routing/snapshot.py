"""A snapshot of the directory for routing, and data derived from it.

Site gates are derived here, once for all rules: a gate is a machine that the site or one of its
links names, that exists, belongs to the site and is a routing server (E-MQBR-01, E-MQBR-02).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.protocol.routing.directorydata import (
    DirectoryReads,
    HandleT,
    ViewReads,
    get_directory_data,
)
from mqis.protocol.routing.graph import Graph, by_text
from mqis.protocol.routing.model import (
    Link,
    RoutingObject,
    RoutingQueueManager,
    RoutingSite,
    routing_object,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

#: The object types that routing uses.
ROUTED = (ObjectType.SITE, ObjectType.ROUTINGLINK, ObjectType.MACHINE)

Guids = tuple[Guid, ...]


@dataclass(frozen=True)
class Snapshot:
    """Sites, links and machines by identifier. Derived data is computed on first use."""

    sites: Mapping[Guid, RoutingSite]
    links: Mapping[Guid, Link]
    machines: Mapping[Guid, RoutingQueueManager]

    @classmethod
    def make(cls, objects: Iterable[RoutingObject]) -> Snapshot:
        sites: dict[Guid, RoutingSite] = {}
        links: dict[Guid, Link] = {}
        machines: dict[Guid, RoutingQueueManager] = {}
        for obj in objects:
            if isinstance(obj, RoutingSite):
                sites[obj.id] = obj
            elif isinstance(obj, Link):
                links[obj.id] = obj
            else:
                machines[obj.id] = obj
        return cls(sites, links, machines)

    @classmethod
    def of(cls, objects: Iterable[DirectoryObject]) -> Snapshot:
        """A snapshot of whole directory objects; those of other types are ignored."""
        found = (routing_object(obj) for obj in objects)
        return cls.make(obj for obj in found if obj is not None)

    @classmethod
    def read(cls, view: View) -> Snapshot:
        return read_snapshot(ViewReads(view))

    # --- derived ----------------------------------------------------------------------------------

    @cached_property
    def links_at(self) -> Mapping[Guid, tuple[Link, ...]]:
        """The links of each site, usable or not."""
        found: dict[Guid, list[Link]] = {}
        for link in self.links.values():
            for end in {link.site1, link.site2}:
                found.setdefault(end, []).append(link)
        return {site: tuple(links) for site, links in found.items()}

    @cached_property
    def gates(self) -> Mapping[Guid, Guids]:
        """Site.SiteGateCollection, ascending; sites without a gate are absent."""
        found = ((site, self.gates_of(site)) for site in self.sites)
        return {site: gates for site, gates in found if gates}

    @cached_property
    def routers(self) -> Mapping[Guid, Guids]:
        """The routing servers of each site, ascending."""
        found: dict[Guid, list[Guid]] = {}
        for machine in self.machines.values():
            if machine.routing_server:
                for site in machine.sites:
                    found.setdefault(site, []).append(machine.id)
        return {site: tuple(sorted(ids, key=by_text)) for site, ids in found.items()}

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.sites, self.links.values())

    def gate_candidates(self, site: Guid) -> Guids:
        """The machines that the site or a link of it names as gates; some may be of other sites."""
        gates = list(self.sites[site].gates)
        for link in self.links_at.get(site, ()):
            gates += link.gates
        return tuple(sorted(set(gates), key=by_text))

    def gates_of(self, site: Guid) -> Guids:
        candidates = self.gate_candidates(site)
        return tuple(machine for machine in candidates if self._may_gate(machine, site))

    def _may_gate(self, machine: Guid, site: Guid) -> bool:
        found = self.machines.get(machine)
        return found is not None and found.routing_server and site in found.sites

    def with_machine(self, machine: RoutingQueueManager) -> Snapshot:
        """The snapshot with one machine more, which is no routing server; keeps derived data."""
        made = Snapshot(self.sites, self.links, {**self.machines, machine.id: machine})
        derived = ("links_at", "gates", "routers", "graph")
        made.__dict__.update({name: getattr(self, name) for name in derived})
        return made

    def without_links(self, links: Iterable[Guid]) -> Snapshot:
        gone = set(links)
        left = {link.id: link for link in self.links.values() if link.id not in gone}
        return Snapshot(self.sites, left, self.machines)


def read_snapshot(reads: DirectoryReads[HandleT]) -> Snapshot:
    """Reads all sites, links and machines; raises the first error (E-MQBR-09)."""
    objects: list[DirectoryObject] = []
    for object_type in ROUTED:
        data = get_directory_data(reads, object_type)
        if data.error is not None:
            raise data.error
        objects += data.objects or ()
    return Snapshot.of(objects)
