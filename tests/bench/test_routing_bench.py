"""The routing entry runs, and its contenders agree before they are timed."""

from __future__ import annotations

from bench.routing import Enterprise
from mqis.protocol.routing.bulk.allpairs import all_pairs
from mqis.protocol.routing.routing_table import UNREACHABLE, build_table


def test_the_enterprise_is_in_one_piece_and_has_four_links_a_site() -> None:
    enterprise = Enterprise.of(200)
    table = build_table(enterprise.graph, (0,))

    assert UNREACHABLE not in table.distance
    assert len(enterprise.cost) == 400
    assert all_pairs(enterprise.arrays()).next_hop[0].tolist() == list(table.next_hop)
