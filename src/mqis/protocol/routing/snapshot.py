"""What routing knows of the directory at one moment, and what follows from it.

Site gates are derived here, once, for every rule that asks for them: whoever a site or one of its
links names as a gate, exists, belongs to the site and is a routing server (E-MQBR-01, E-MQBR-02).
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
from mqis.protocol.routing.model import Link, QueueManager, RoutingObject, Site, routing_object
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

#: Changes of anything else do not concern routing.
ROUTED = (ObjectType.SITE, ObjectType.ROUTINGLINK, ObjectType.MACHINE)

Guids = tuple[Guid, ...]


@dataclass(frozen=True)
class Snapshot:
    """Sites, links and machines by identifier. What is derived is computed when it is asked for."""

    sites: Mapping[Guid, Site]
    links: Mapping[Guid, Link]
    machines: Mapping[Guid, QueueManager]

    @classmethod
    def make(cls, objects: Iterable[RoutingObject]) -> Snapshot:
        sites: dict[Guid, Site] = {}
        links: dict[Guid, Link] = {}
        machines: dict[Guid, QueueManager] = {}
        for obj in objects:
            if isinstance(obj, Site):
                sites[obj.id] = obj
            elif isinstance(obj, Link):
                links[obj.id] = obj
            else:
                machines[obj.id] = obj
        return cls(sites, links, machines)

    @classmethod
    def of(cls, objects: Iterable[DirectoryObject]) -> Snapshot:
        """From whole directory objects; those of other types are passed over."""
        found = (routing_object(obj) for obj in objects)
        return cls.make(obj for obj in found if obj is not None)

    @classmethod
    def read(cls, view: View) -> Snapshot:
        return read_snapshot(ViewReads(view))

    # --- derived ----------------------------------------------------------------------------------

    @cached_property
    def links_at(self) -> Mapping[Guid, tuple[Link, ...]]:
        """The links that touch a site, usable or not."""
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
        """Whoever is named as a gate of the site, by it or by a link: gates of other sites too."""
        named = list(self.sites[site].gates)
        for link in self.links_at.get(site, ()):
            named += link.gates
        return tuple(sorted(set(named), key=by_text))

    def gates_of(self, site: Guid) -> Guids:
        named = self.gate_candidates(site)
        return tuple(machine for machine in named if self._may_gate(machine, site))

    def _may_gate(self, machine: Guid, site: Guid) -> bool:
        found = self.machines.get(machine)
        return found is not None and found.routing_server and site in found.sites

    def without_links(self, links: Iterable[Guid]) -> Snapshot:
        gone = set(links)
        left = {link.id: link for link in self.links.values() if link.id not in gone}
        return Snapshot(self.sites, left, self.machines)


def read_snapshot(reads: DirectoryReads[HandleT]) -> Snapshot:
    """All sites, links and machines; the error of the first read that fails (E-MQBR-09)."""
    objects: list[DirectoryObject] = []
    for object_type in ROUTED:
        data = get_directory_data(reads, object_type)
        if data.error is not None:
            raise data.error
        objects += data.objects or ()
    return Snapshot.of(objects)
