"""Snapshots after changes of the directory, which keep derived data that is still valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject
from mqis.protocol.ports import Change
from mqis.protocol.routing.graph import Pair, by_text, pair_of
from mqis.protocol.routing.model import (
    Link,
    RoutingObject,
    RoutingQueueManager,
    RoutingSite,
    routing_object,
)
from mqis.protocol.routing.snapshot import ROUTED, Snapshot
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

T = TypeVar("T", bound=RoutingObject)

#: The new state of each object by identifier; None if it was deleted.
News = dict[Guid, RoutingObject | None]


def with_changes(snapshot: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """The snapshot after the changes; the same object if none of them concerns routing."""
    news: dict[ObjectType, News] = {kind: {} for kind in ROUTED}
    for change in changes:
        kind = change.object_type if isinstance(change, DeletedObject) else change.type
        if kind in ROUTED:
            made = routing_object(change) if isinstance(change, DirectoryObject) else None
            news[kind][change.id] = made
    sites = _after(snapshot.sites, news[ObjectType.SITE], RoutingSite)
    links = _after(snapshot.links, news[ObjectType.ROUTINGLINK], Link)
    machines = _after(snapshot.machines, news[ObjectType.MACHINE], RoutingQueueManager)
    if (sites, links, machines) == (None, None, None):
        return snapshot
    changed = Snapshot(
        snapshot.sites if sites is None else sites,
        snapshot.links if links is None else links,
        snapshot.machines if machines is None else machines,
    )
    if sites is None:
        _keep_derived(snapshot, changed, news[ObjectType.ROUTINGLINK], news[ObjectType.MACHINE])
    return changed


def _after(objects: Mapping[Guid, T], news: News, kind: type[T]) -> dict[Guid, T] | None:
    """The objects after the changes; None if none is different."""
    if all(objects.get(guid) == obj for guid, obj in news.items()):
        return None
    left = {guid: obj for guid, obj in objects.items() if guid not in news}
    return left | {guid: obj for guid, obj in news.items() if isinstance(obj, kind)}


def _keep_derived(old: Snapshot, new: Snapshot, links: News, machines: News) -> None:
    """Keeps derived data, recomputed only at the sites of changed links and machines."""
    moved_links = [s.links[guid] for s in (old, new) for guid in links if guid in s.links]
    moved = [s.machines[guid] for s in (old, new) for guid in machines if guid in s.machines]
    ends = {end for link in moved_links for end in (link.site1, link.site2)}
    homes = {site for machine in moved for site in machine.sites}
    known, derived = old.__dict__, new.__dict__
    if "links_at" in known:
        derived["links_at"] = _links_at(old, new, ends, links)
    if "routers" in known:
        derived["routers"] = _routers(old, new, homes, machines)
    if "gates" in known:
        touched = (ends | homes) & new.sites.keys()
        derived["gates"] = _patched(old.gates, {site: new.gates_of(site) for site in touched})
    if "graph" in known:
        pairs = _pairs(old, moved_links)
        near = {old.graph.sites[vertex] for pair in pairs for vertex in pair}
        between = (link for site in near for link in new.links_at.get(site, ()))
        derived["graph"] = old.graph.with_pairs(pairs, between) if pairs else old.graph


def _links_at(
    old: Snapshot, new: Snapshot, ends: Iterable[Guid], changed: News
) -> Mapping[Guid, tuple[Link, ...]]:
    found = {site: [k for k in old.links_at.get(site, ()) if k.id not in changed] for site in ends}
    for link in (new.links[guid] for guid in changed if guid in new.links):
        for end in {link.site1, link.site2}:
            found[end].append(link)
    return _patched(old.links_at, {site: tuple(links) for site, links in found.items()})


def _routers(
    old: Snapshot, new: Snapshot, homes: Iterable[Guid], changed: News
) -> Mapping[Guid, tuple[Guid, ...]]:
    found = {site: {r for r in old.routers.get(site, ()) if r not in changed} for site in homes}
    for machine in (new.machines[guid] for guid in changed if guid in new.machines):
        for site in machine.sites if machine.routing_server else ():
            found[site].add(machine.id)
    ordered = {site: tuple(sorted(routers, key=by_text)) for site, routers in found.items()}
    return _patched(old.routers, ordered)


V = TypeVar("V")


def _patched(
    old: Mapping[Guid, tuple[V, ...]], news: Mapping[Guid, tuple[V, ...]]
) -> Mapping[Guid, tuple[V, ...]]:
    if not news:
        return old
    return {site: found for site, found in {**old, **news}.items() if found}


def _pairs(snapshot: Snapshot, links: Iterable[Link]) -> set[Pair]:
    """The pairs of known sites that these links join or joined."""
    index = snapshot.graph.index
    return {
        pair_of(index[link.site1], index[link.site2])
        for link in links
        if link.site1 in index and link.site2 in index and link.site1 != link.site2
    }
