"""Explanations in words, with the names of the objects they are about."""

from __future__ import annotations

from mqis.protocol.routing.breakage import Breakage, Kind
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


class Names:
    """What people call the objects of a snapshot; the GUID where there is no name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def machine(self, guid: Guid) -> str:
        found = self._snapshot.machines.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def site(self, guid: Guid) -> str:
        found = self._snapshot.sites.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def link(self, guid: Guid) -> str:
        """Both ends, and the description if there is one."""
        found = self._snapshot.links.get(guid)
        if found is None:
            return str(guid)
        ends = f"{self.site(found.site1)} - {self.site(found.site2)}"
        return f"{ends} ({found.description})" if found.description else ends

    def link_description(self, guid: Guid) -> str:
        """The description of a link; empty if it has none."""
        found = self._snapshot.links.get(guid)
        return "" if found is None else found.description

    def of(self, kind: Kind, guid: Guid) -> str:
        return {Kind.MACHINE: self.machine, Kind.SITE: self.site, Kind.LINK: self.link}[kind](guid)

    def sentence(self, breakage: Breakage) -> str:
        """The object that breaks a route, without its causes."""
        name = self.of(breakage.kind, breakage.subject)
        return f"{breakage.kind.value} {name} {breakage.fault.value}"
