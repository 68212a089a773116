"""Explanations as text, with the names of objects."""

from __future__ import annotations

from mqis.protocol.routing.breakage import Breakage, SubjectKind
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


class ObjectNames:
    """The names of a snapshot's objects; the GUID where there is no name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def machine(self, guid: Guid) -> str:
        """The name of a machine, or of a site that stands for its machines."""
        found = self._snapshot.machines.get(guid) or self._snapshot.sites.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def site(self, guid: Guid) -> str:
        found = self._snapshot.sites.get(guid)
        return str(guid) if found is None else found.name or str(guid)

    def link(self, guid: Guid) -> str:
        """The names of both sites of a link, and its description if there is one."""
        found = self._snapshot.links.get(guid)
        if found is None:
            return str(guid)
        ends = f"{self.site(found.site1)} - {self.site(found.site2)}"
        return f"{ends} ({found.description})" if found.description else ends

    def link_description(self, guid: Guid) -> str:
        """The description of a link; empty if it has none."""
        found = self._snapshot.links.get(guid)
        return "" if found is None else found.description

    def of(self, kind: SubjectKind, guid: Guid) -> str:
        return {
            SubjectKind.MACHINE: self.machine,
            SubjectKind.SITE: self.site,
            SubjectKind.LINK: self.link,
        }[kind](guid)

    def sentence(self, breakage: Breakage) -> str:
        """The object that breaks a route, without its causes."""
        name = self.of(breakage.kind, breakage.subject)
        return f"{breakage.kind.value} {name} {breakage.fault.value}"
