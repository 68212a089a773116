"""The step of the tour about routing: a route, its reasons, and another one if a link fails."""

from __future__ import annotations

from mqis.cli.tour.guide import Guide
from mqis.protocol.ports import View
from mqis.protocol.routing.explain import Explanation, explain
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.wording import ObjectNames
from mqis.views.routes.text import summary
from mqis.wire.mqds.objecttype import ObjectType


def routes(guide: Guide, view: View, start: str, end: str) -> None:
    guide.step(
        "Routes", f"the route of a message from {start} to {end}, and the one without a link of it"
    )
    snapshot = Snapshot.read(view)
    source, destination = (view.find(ObjectType.MACHINE, name) for name in (start, end))
    guide.confirm("both machines are in the directory", None not in (source, destination))
    assert source is not None
    assert destination is not None
    before = explain(snapshot, source.id, destination.id)
    _show(guide, before, snapshot)
    guide.confirm(f"there is a route, at cost {before.cost}", before.breakage is None)
    used = next(step.crossing for step in before.steps if step.crossing is not None)
    rest = snapshot.without_links([used.link])
    after = explain(rest, source.id, destination.id)
    _show(guide, after, rest)
    dearer = after.breakage is None and after.cost > before.cost
    link = ObjectNames(snapshot).link(used.link)
    guide.confirm(f"without {link} there is another route, at cost {after.cost}", dearer)


def _show(guide: Guide, found: Explanation, snapshot: Snapshot) -> None:
    for text, *style in summary(found, ObjectNames(snapshot)):
        guide.line(f"   {text}", *style)
