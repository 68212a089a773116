"""The step of the tour about routing: a route, its reasons, and another one if a link fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations

from mqis.cli.tour.guide import Guide
from mqis.cli.tour.reading import shown_route
from mqis.protocol.ports import View
from mqis.protocol.routing.explain import Explanation, ObjectNames, explain
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.routes.route_text import summary
from mqis.wire.mqds.objecttype import ObjectType


def routes(
    guide: Guide, view: View, start: str, end: str, costs: Mapping[frozenset[str], int]
) -> None:
    """Shows the cheapest route, and the one without its first link.

    ``costs`` are those of the links that were made, by the names of their sites.
    """
    guide.step(
        "Routes", f"the route of a message from {start} to {end}, and the one without a link of it"
    )
    snapshot = Snapshot.read(view)
    source, destination = (view.find(ObjectType.MACHINE, name) for name in (start, end))
    guide.confirm(
        "both machines are in the directory",
        None not in (source, destination),
        saw=(source, destination),
        expected="two machines",
    )
    assert source is not None
    assert destination is not None
    sites = [ObjectNames(snapshot).site(machine.partition) for machine in (source, destination)]
    before = explain(snapshot, source.id, destination.id)
    cheapest = cheapest_cost(costs, *sites)
    _tick(guide, before, snapshot, f"there is a route, at cost {before.cost}", cheapest)
    used = next(step.crossing for step in before.steps if step.crossing is not None)
    link = ObjectNames(snapshot).link(used.link)
    gone = frozenset(ObjectNames(snapshot).site(id_) for id_ in (used.from_site, used.to_site))
    rest = snapshot.without_links([used.link])
    after = explain(rest, source.id, destination.id)
    dearer = cheapest_cost({k: v for k, v in costs.items() if k != gone}, *sites)
    text = f"without {link} there is another route, at cost {after.cost}"
    _tick(guide, after, rest, text, dearer)


def _tick(
    guide: Guide, found: Explanation, snapshot: Snapshot, text: str, cost: int | None
) -> None:
    """Prints a route; confirms that its lines are one, at this cost."""
    lines = []
    for line, *style in summary(found, ObjectNames(snapshot)):
        guide.line(f"   {line}", *style)
        lines.append(line)
    shown = shown_route(lines)
    told = shown and (shown.cost, shown.summed_cost, shown.hops, shown.is_connected)
    guide.confirm_equal(text, told, (cost, cost, len(lines) - 1, True))


def cheapest_cost(costs: Mapping[frozenset[str], int], start: str, end: str) -> int | None:
    """The lowest sum of costs from site to site; None if no links lead there."""
    reached, known = {start: 0}, True
    while known:
        known = False
        for pair, cost in costs.items():
            for begin, to in permutations(pair, 2):
                if begin in reached and reached[begin] + cost < reached.get(to, math.inf):
                    reached[to], known = reached[begin] + cost, True
    return reached.get(end)
