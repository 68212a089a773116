"""The load of links, from the table ``traffic`` of the pipeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from mqis.protocol.routing.explain import ObjectNames
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.console.pipeline import read_rows
from mqis.wire.guid import Guid

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
