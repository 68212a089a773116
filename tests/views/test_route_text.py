"""Routes as lines for people: names and descriptions are shown as they are in the directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.routing.explain import ObjectNames, explain
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.routes.route_text import summary
from tests.protocol.routing.worlds import World, guid


@pytest.mark.parametrize(
    ("site", "description", "over"),
    [
        ("X (old)", "", "X (old) - B, cost 3"),
        ("X (old)", "leased line", "X (old) - B, leased line, cost 3"),
        ("X", "leased line (2nd)", "X - B, leased line (2nd), cost 3"),
        ("X (a) (b)", "(both)", "X (a) (b) - B, (both), cost 3"),
    ],
)
def test_parentheses_in_names_and_descriptions(site: str, description: str, over: str) -> None:
    world = World("A-B 3", a="A gate", b="B gate")
    snapshot = Snapshot.make(
        [
            replace(world.sites["A"], name=site),
            world.sites["B"],
            *world.machines.values(),
            replace(world.links[0], description=description),
        ]
    )
    found = explain(snapshot, guid("a"), guid("b"))
    _title, hop = summary(found, ObjectNames(snapshot))
    assert hop == (f"  a -> b  over {over}",)
