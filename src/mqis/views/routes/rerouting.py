"""Pairs of sites whose route changes, or is cut off, if links fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mqis.extras import GRAPHS
from mqis.protocol.routing.explain import ObjectNames
from mqis.protocol.routing.routing_table import UNREACHABLE
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid

#: The most changed pairs that are listed.
MOST_PAIRS = 200
#: The most sites of which all pairs are compared, which takes about a second.
MOST_SITES = 1_500
_TOO_MANY = "There are too many sites to compare all routes here; use 'mqis pipeline what-if'."


@dataclass(frozen=True, slots=True)
class ChangedPair:
    """Two sites whose route changes, or is cut off, without the links that are off."""

    source: str
    destination: str
    both_ways: bool
    old_cost: int
    #: None: cut off.
    new_cost: int | None


@dataclass(frozen=True, slots=True)
class WhatIfShown:
    rerouted: int
    cut_off: int
    pairs: tuple[ChangedPair, ...]
    more: int
    #: The reason why the pairs were not compared; empty if they were.
    skipped: str = ""


def what_if(snapshot: Snapshot, removed: tuple[Guid, ...]) -> WhatIfShown:
    """The pairs of sites that change, by the functions of the pipeline."""
    if not GRAPHS.installed:
        needs = f"Comparing all routes needs mqis[graphs]: {GRAPHS.command}"
        return WhatIfShown(0, 0, (), 0, skipped=needs)
    if len(snapshot.sites) > MOST_SITES:
        return WhatIfShown(0, 0, (), 0, skipped=_TOO_MANY)
    from mqis.protocol.routing.bulk.allpairs import all_pairs  # noqa: PLC0415 -- loads SciPy
    from mqis.protocol.routing.bulk.gates import Gates  # noqa: PLC0415
    from mqis.protocol.routing.bulk.sitegraph import site_graph  # noqa: PLC0415
    from mqis.protocol.routing.bulk.whatif import WhatIf  # noqa: PLC0415

    graph, sites, links = site_graph(snapshot)
    numbers = [number for number, link in enumerate(links) if link in removed]
    gates, _ = Gates.of_snapshot(snapshot)
    changes = WhatIf(all_pairs(graph), gates).without(links=numbers)
    costs = {
        (int(a), int(b)): (int(old), int(new))
        for a, b, old, new in zip(
            changes.source,
            changes.destination,
            changes.old_distance,
            changes.new_distance,
            strict=True,
        )
    }
    pairs = _pairs(costs, sites, ObjectNames(snapshot))
    cut = sum(new == UNREACHABLE for _, new in costs.values())
    shown = tuple(pairs[:MOST_PAIRS])
    return WhatIfShown(len(costs) - cut, cut, shown, len(pairs) - len(shown))


def _pairs(
    costs: Mapping[tuple[int, int], tuple[int, int]], sites: Sequence[Guid], names: ObjectNames
) -> list[ChangedPair]:
    """Sorts pairs: cut off first, then by added cost; both directions are one if they agree."""
    found = []
    for (a, b), (old, new) in costs.items():
        both = costs.get((b, a)) == (old, new)
        if both and a > b:
            continue
        cost = None if new == UNREACHABLE else new
        found.append(ChangedPair(names.site(sites[a]), names.site(sites[b]), both, old, cost))
    worst = len(sites) * 10**6
    return sorted(
        found,
        key=lambda p: (
            -((worst if p.new_cost is None else p.new_cost) - p.old_cost),
            p.source,
            p.destination,
        ),
    )
