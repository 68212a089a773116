"""A question to the map: a route, with some links switched off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

#: Characters per line below the picture.
_NOTE = 100


@dataclass(frozen=True, slots=True)
class RouteCase:
    snapshot: Snapshot
    #: The snapshot without the links that are off.
    left: Snapshot
    off: frozenset[Guid] = frozenset()
    route: Explanation | None = None
    #: The same route with all links; None if none is off.
    before: Explanation | None = None

    @classmethod
    def of(
        cls, snapshot: Snapshot, off: Iterable[Guid] = (), ends: tuple[Guid, Guid] | None = None
    ) -> RouteCase:
        removed = frozenset(off)
        left = snapshot.without_links(removed) if removed else snapshot
        if ends is None:
            return cls(snapshot, left, removed)
        before = explain_between(snapshot, *ends) if removed else None
        return cls(snapshot, left, removed, explain_between(left, *ends), before)

    def notes(self) -> list[str]:
        """The lines about the route below a picture."""
        if self.route is None:
            return []
        names = ObjectNames(self.snapshot)
        ends = (names.machine(end) for end in (self.route.source, self.route.destination))
        way = " → ".join(names.machine(machine) for machine in self.route.machines)
        notes = [f"{' to '.join(ends)}, cost {self.route.cost}", *wrap(way, _NOTE)]
        if self.route.breakage is not None:
            notes += wrap(f"no further: {names.sentence(self.route.breakage)}", _NOTE)
        return notes
