"""Finds machines and links by name, and compares routes."""

from __future__ import annotations

from difflib import get_close_matches

from mqis.protocol.directory.object_sources import Source
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject, name_key
from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.model import PROPERTIES
from mqis.protocol.routing.snapshot import ROUTED, Snapshot
from mqis.texts import counted
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

#: The number of names that an error shows for one that is not there.
_NEAREST = 3


class RouteError(MqisError):
    """A machine, site, link or queue is not in the directory."""


def snapshot_of_server(remote: Source) -> Snapshot:
    """Reads a snapshot by lookups (MS-MQDS); it holds what this user may read."""
    objects = []
    for object_type in ROUTED:
        for record in remote.lookup(object_type, PROPERTIES[object_type], (), ()):
            values = {int(p): value for p, value in record.values.items() if value is not None}
            made = object_type, record.id, ENTERPRISE_PARTITION, SequenceNumber.MIN, values
            objects.append(DirectoryObject(*made))
    found = Snapshot.of(objects)
    if not found.sites:
        raise RouteError(
            "the server shows no site to this user: name one that may read them with --user"
        )
    return found


def find_end(snapshot: Snapshot, text: str) -> Guid:
    """Finds an end of a route: a machine by name or GUID, else a site (``explain_between``)."""
    for site in snapshot.sites.values():
        if name_key(text) in (name_key(site.name), str(site.id)) and not _machine(snapshot, text):
            return site.id
    return find_machine(snapshot, text)


def _machine(snapshot: Snapshot, text: str) -> Guid | None:
    wanted = {name_key(text), name_key(text.partition(".")[0])}
    for machine in snapshot.machines.values():
        if str(machine.id) == text.strip("{}").lower() or name_key(machine.name) in wanted:
            return machine.id
    return None


def find_machine(snapshot: Snapshot, text: str) -> Guid:
    """Finds a machine by name or GUID; for a site, its first gate, else its first machine."""
    found = _machine(snapshot, text)
    if found is not None:
        return found
    for site in snapshot.sites.values():
        if name_key(text) in (name_key(site.name), str(site.id)):
            lives = sorted(m.id for m in snapshot.machines.values() if site.id in m.sites)
            for machine_id in (*snapshot.gates.get(site.id, ()), *lives):
                return machine_id
            raise RouteError(f"there is no machine in site {text!r}")
    raise RouteError(f"there is no machine and no site {text!r} in the directory")


def find_links(snapshot: Snapshot, text: str) -> list[Guid]:
    """Finds all links that the text may mean: parallel links are taken together.

    A link is also found by the name that pages and the pipeline's tables show for it.
    """
    names = ObjectNames(snapshot)
    key = name_key(text)
    found = []
    for link in snapshot.links.values():
        ends = names.site(link.site1), names.site(link.site2)
        between = {mark.join(way) for mark in (":", " - ") for way in (ends, ends[::-1])}
        called = {str(link.id), names.link(link.id), link.description, *between} - {""}
        if key in map(name_key, called):
            found.append(link.id)
    if not found:
        known = {names.link(link) for link in snapshot.links}
        near = ", ".join(get_close_matches(text, sorted(known), n=_NEAREST))
        several = f"none of {counted(len(known), 'link')} is like it: 'mqis lookup link' lists them"
        nearest = f"the nearest are {near}" if near else several if known else "there is none"
        raise RouteError(f"--without {text}: there is no such link; {nearest}")
    return found


def compared(before: Explanation, after: Explanation) -> str:
    """Describes the change of a route by removed links."""
    if before.breakage is not None:
        return "there was no route before"
    if after.breakage is not None:
        return f"no route any more; it cost {before.cost}"
    if before.machines == after.machines and before.cost == after.cost:
        return "nothing changes"
    return f"cost {after.cost} instead of {before.cost} ({after.cost - before.cost:+d})"
