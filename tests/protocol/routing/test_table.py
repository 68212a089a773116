"""Routing tables: distances, next hops, ties, and what is no edge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.routing.graph import Graph
from mqis.protocol.routing.model import Link
from mqis.protocol.routing.routing_table import EMPTY, UNREACHABLE, TableRow, build_table
from mqis.wire.guid import Guid
from tests.protocol.routing.worlds import World, guid
from tests.strategies.routing import graphs, unhurried

#: Figure 4 of the specification: every site has a gate named after it.
GATES = {"a": "A gate", "b": "B gate", "c": "C gate", "d": "D gate"}


@pytest.mark.parametrize(
    ("links", "table", "way"),
    [
        pytest.param(
            ("A-B 3", "B-C 1", "B-D 1", "C-D 1"),
            {"A": ("A", 0), "B": ("B", 3), "C": ("B", 4), "D": ("B", 4)},
            ["a", "b", "c"],
            marks=pytest.mark.req("MQBR-4-01"),
        ),
        pytest.param(
            ("A-B 3", "B-C 3", "B-D 1", "C-D 1"),
            {"A": ("A", 0), "B": ("B", 3), "C": ("B", 5), "D": ("B", 4)},
            ["a", "b", "d", "c"],
            marks=pytest.mark.req("MQBR-4-02"),
        ),
    ],
)
def test_the_examples_of_section_4(
    links: tuple[str, ...], table: dict[str, tuple[str, int]], way: list[str]
) -> None:
    world = World(*links, **GATES)

    assert world.rows("a") == table
    assert world.way("a", "c") == way


@pytest.mark.req("MQBR-3.1.1.2-01", "MQBR-3.1.3.1-07")
def test_one_row_for_each_site_with_the_first_site_on_the_way() -> None:
    world = World("A-B 1", "B-C 1", "C-D 1", a="A gate")

    assert list(world.table("a")) == [
        TableRow(guid("A"), guid("A"), 0),
        TableRow(guid("B"), guid("B"), 1),
        TableRow(guid("C"), guid("B"), 2),
        TableRow(guid("D"), guid("B"), 3),
    ]
    assert len(world.table("a")) == 4


@pytest.mark.req("MQBR-3.1.3.1-07")
def test_sites_that_cannot_be_reached_have_no_row() -> None:
    world = World("A-B 1", "C-D 1", a="A gate")

    assert world.rows("a").keys() == {"A", "B"}
    assert world.table("a").get(guid("C")) is None
    assert world.table("a").get(guid("nowhere")) is None
    assert EMPTY.get(guid("A")) is None


@pytest.mark.req("MQBR-3.1.3.1-07")
def test_a_gate_of_several_sites_starts_in_all_of_them() -> None:
    """Rooted at A alone it would send to B, that is, to itself."""
    world = World("A-B 1", "B-C 5", "A-C 9", a="AB gate", c="C gate")

    assert world.rows("a") == {"A": ("A", 0), "B": ("B", 0), "C": ("C", 5)}


@pytest.mark.req("MQBR-1.3.3-01", "MQBR-3.1.3.1-04")
def test_links_lead_both_ways_at_the_same_cost() -> None:
    world = World("B-A 7", "B-C 2", a="A gate", c="C gate")

    assert world.rows("a")["C"] == ("B", 9)
    assert world.rows("c")["A"] == ("B", 9)


@pytest.mark.req("MQBR-3.1.3.1-04")
def test_parallel_links_count_by_the_cheapest() -> None:
    world = World("A-B 7", "B-A 4", "A-B 5", a="A gate")

    assert world.rows("a")["B"] == ("B", 4)
    edge = world.snapshot.graph.link_between(0, 1)
    assert edge == guid("link1")
    equal = World("A-B 4", "B-A 4", a="A gate")
    assert equal.snapshot.graph.link_between(1, 0) == guid("link0")


@pytest.mark.req("MQBR-3.1.3.1-04")
def test_links_to_nowhere_and_to_itself_are_ignored() -> None:
    world = World("A-? 1", "?-A 1", "A-A 1", "A-B 4", a="A gate")

    assert world.rows("a") == {"A": ("A", 0), "B": ("B", 4)}


@pytest.mark.req("MQBR-3.1.3.1-05")
@pytest.mark.parametrize(
    ("cost", "usable"), [(0, False), (1, True), (999_999, True), (1_000_000, False)]
)
def test_costs_are_1_to_999999(cost: int, usable: bool) -> None:
    world = World(f"A-B {cost}", a="A gate")

    assert ("B" in world.rows("a")) == usable


@pytest.mark.req("MQBR-3.1.3.1-06")
def test_the_cheapest_path_is_taken_not_the_shortest() -> None:
    world = World("A-D 10", "A-B 3", "B-C 3", "C-D 3", a="A gate")

    assert world.rows("a")["D"] == ("B", 9)


@pytest.mark.req("MQBR-3.1.3.1-08")
def test_of_equal_routes_the_one_over_the_smallest_site_is_taken() -> None:
    """Whatever the order of the links, and also where the tie is far away."""
    for links in (("A-C 1", "A-B 1", "C-D 1", "B-D 1"), ("B-D 1", "C-D 1", "A-B 1", "A-C 1")):
        assert World(*links, a="A gate").rows("a")["D"] == ("B", 2)
    far = World("A-C 1", "C-E 1", "A-B 2", "B-F 1", "E-F 1", "F-G 1", a="A gate")
    assert far.rows("a")["G"] == ("B", 4)


@unhurried
@given(graphs(), st.data())
def test_next_hops_are_the_smallest_first_sites_of_all_cheapest_paths(
    drawn: tuple[list[Guid], list[Link]], data: st.DataObject
) -> None:
    """Judged by distances between all pairs, found without Dijkstra."""
    graph = Graph.of(*drawn)
    number = len(graph.sites)
    far = _floyd_warshall(graph)
    vertices = st.integers(0, number - 1)
    roots = sorted(data.draw(st.lists(vertices, min_size=1, max_size=3, unique=True)))
    table = build_table(graph, roots)

    for there in range(number):
        least = min(far[root][there] for root in roots)
        if least == _NEVER:
            assert (table.distance[there], table.next_hop[there]) == (UNREACHABLE, UNREACHABLE)
            continue
        assert table.distance[there] == least
        firsts = [
            near
            for root in roots
            for near, cost in graph.costs[root].items()
            if near not in roots and cost + far[near][there] == least
        ]
        assert table.next_hop[there] == (there if there in roots else min(firsts))


_NEVER = 10**12


def _floyd_warshall(graph: Graph) -> list[list[int]]:
    number = len(graph.sites)
    far = [
        [0 if a == b else graph.costs[a].get(b, _NEVER) for b in range(number)]
        for a in range(number)
    ]
    for via in range(number):
        for a in range(number):
            for b in range(number):
                far[a][b] = min(far[a][b], far[a][via] + far[via][b], _NEVER)
    return far
