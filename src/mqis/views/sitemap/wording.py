"""Texts of the map."""

from __future__ import annotations

from collections.abc import Mapping

from mqis.protocol.routing.explain import ObjectNames
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import and_more
from mqis.wire.guid import Guid

#: The most characters of a name in the picture, and the most machines of a site.
_MOST, _MOST_LINES = 32, 6


def captions_of(snapshot: Snapshot, roles: Mapping[Guid, str]) -> dict[Guid, tuple[str, ...]]:
    """The captions of sites: the name, then a line for each gate and directory server."""
    names = ObjectNames(snapshot)
    lives: dict[Guid, list[Guid]] = {}
    for server in sorted(roles, key=names.machine):
        for site in snapshot.machines[server].sites if server in snapshot.machines else ():
            lives.setdefault(site, []).append(server)
    found = {}
    for site in sorted(snapshot.sites):
        gates = snapshot.gates.get(site, ())
        listed = [*gates, *(s for s in lives.get(site, ()) if s not in gates)]
        lines = [_resident(machine, machine in gates, roles, names) for machine in listed]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [and_more(len(lines) - _MOST_LINES)]
        found[site] = (caption_of(names.site(site)), *(lines if gates else [*lines, "no gate"]))
    return found


def _resident(machine: Guid, gate: bool, roles: Mapping[Guid, str], names: ObjectNames) -> str:
    role = roles.get(machine)
    name = caption_of(names.machine(machine))
    return f"{'◆ ' if gate else ''}{name}{f' {role}' if role else ''}"


def caption_of(name: str) -> str:
    """A name as the picture shows it: printable, and not too long."""
    text = plain(name[: _MOST + 1])
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def plain(text: str) -> str:
    """Replaces control characters and lone surrogates, which XML does not allow either."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
