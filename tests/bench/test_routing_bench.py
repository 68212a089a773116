"""The routing entry runs, and its contenders agree before they are timed."""

from __future__ import annotations

from typing import Any

import pytest

from bench.routing import SCIPY, Enterprise
from mqis.protocol.routing.bulk.allpairs import all_pairs
from mqis.protocol.routing.table import UNREACHABLE, build_table


@pytest.mark.slow
def test_everything_is_measured_beside_its_peers(report: dict[str, Any]) -> None:
    found = report["entries"]["routing"]
    names: dict[str, list[str]] = {}
    for row in found["rows"]:
        names.setdefault(row["table"], []).append(row["name"])

    for count in (100, 300):
        listed = names[f"one routing table, {count} sites"]
        assert listed[:4] == ["mqis", "mqis, arrays", SCIPY, "networkx"]
    for count in (60, 120):
        assert names[f"all pairs, {count} sites (pairs a second)"][:2] == ["mqis", SCIPY]
    assert "every single link of 60 sites removed (links a second)" in names
    assert [aim["goal"].partition(" sites")[0] for aim in found["aims"]] == [
        "all pairs of 60",
        "all pairs of 120",
        "sweep >= 20x all pairs again, 60",
    ]


def test_the_enterprise_is_in_one_piece_and_has_four_links_a_site() -> None:
    enterprise = Enterprise.of(200)
    table = build_table(enterprise.graph, (0,))

    assert UNREACHABLE not in table.distance
    assert len(enterprise.cost) == 400
    assert all_pairs(enterprise.arrays()).next_hop[0].tolist() == list(table.next_hop)
