"""The picture of the map as the console and the commands write it.

A case is what is asked of it: a route, with some links switched off. The loads of links come from
the table ``traffic`` of the pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Any

from mqis.files import output_file, system_reason
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.console.pipeline import read_rows
from mqis.views.sitemap.build import MapRequest, site_map
from mqis.views.sitemap.charting import chart_of_objects
from mqis.views.sitemap.model import SiteMap
from mqis.views.sitemap.svg import draw, notes_of
from mqis.wire.guid import Guid


def map_of(
    case: RouteCase,
    roles: Mapping[Guid, str],
    loads: Mapping[Guid, float] | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> SiteMap:
    return site_map(case.snapshot, MapRequest(roles, case.route, case.off, loads, states))


def picture(
    case: RouteCase,
    roles: Mapping[Guid, str] = MappingProxyType({}),
    loads: Mapping[Guid, float] | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Draws the map as SVG."""
    found = map_of(case, roles, loads, states)
    return draw(found, [*case.notes(), *notes_of(found)])


def picture_of_objects(
    objects: Iterable[DirectoryObject], traffic: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Draws the map of a directory, with the loads of the table ``traffic``; empty without sites
    or with too many of them."""
    chart = chart_of_objects(objects)
    loads = loads_of_rows(chart.snapshot, traffic) if traffic else None
    found = map_of(RouteCase.of(chart.snapshot), chart.roles, loads)
    return draw(found, notes_of(found)) if found.sites and found.drawn else ""


def write_picture(path: Path, text: str) -> None:
    """Writes a picture to a file; raises ``StorageError`` with the reason."""
    try:
        with output_file(path) as out:
            out.write(text.encode())
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {system_reason(error)}") from error


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


#: Messages by link.
LinkLoads = Mapping[Guid, float]

TABLE = "traffic"
#: The most rows that are read: links and gates.
_MOST_ROWS = 200_000


def loads_of(snapshot: Snapshot, tables: Path) -> LinkLoads | None:
    """Messages by link; None if there is no such table, or nothing here can read it."""
    rows = read_rows(tables, TABLE, ("kind", "name", "messages"))
    return None if rows is None else loads_of_rows(snapshot, rows)


def loads_of_rows(snapshot: Snapshot, rows: Iterable[Mapping[str, Any]]) -> LinkLoads:
    """Messages by link, from the rows of the table.

    The table names a link by its sites, in alphabetical order. Of parallel links, routes use the
    cheapest one, so that has the messages.
    """
    messages: dict[str, float] = defaultdict(float)
    for row in islice(rows, _MOST_ROWS):
        if row["kind"] == "link" and isinstance(row["messages"], int | float):
            messages[str(row["name"])] += float(row["messages"])
    return {link: messages[name] for name, link in _cheapest(snapshot).items() if name in messages}


def _cheapest(snapshot: Snapshot) -> dict[str, Guid]:
    """The cheapest link of each pair of names."""
    names = ObjectNames(snapshot)
    found: dict[str, Guid] = {}
    for link in sorted(snapshot.links.values(), key=lambda link: (link.cost, link.id)):
        if link.fault(snapshot.sites) is None:
            ends = sorted((names.site(link.site1), names.site(link.site2)))
            found.setdefault(" - ".join(ends), link.id)
    return found
