"""Explanations: what each step cost, what lost, and what is to blame when there is no route."""

from __future__ import annotations

import itertools

from hypothesis import given

from mqis.protocol.routing.breakage import Breakage, RouteFault, SubjectKind
from mqis.protocol.routing.explain import Alternative, Contest, Explanation, ObjectNames, explain
from mqis.protocol.routing.nexthops import NextHopRule
from mqis.protocol.routing.route_trace import RoutingTables, trace
from mqis.protocol.routing.snapshot import Snapshot
from tests.protocol.routing.worlds import World, called, guid, told
from tests.strategies.routing import enterprises, unhurried

DIAMOND = World(
    *("A-B 1", "B-D 1", "A-C 1", "C-D 1", "A-D 9", "A-E 1"),
    a="A gate",
    b="B gate",
    c="C gate",
    d="D gate",
    e="E gate",
    t="D",
    x="A",
)


def lost(found: Explanation, step: int) -> list[tuple[Contest, str, int]]:
    return [(a.contest, called(a.subject), a.lost_by) for a in found.steps[step].alternatives]


def test_every_hop_with_its_cost_and_its_link() -> None:
    found = DIAMOND.explain("x", "t")

    assert [called(m) for m in found.machines] == ["x", "a", "b", "d", "t"]
    assert [step.decision.rule for step in found.steps] == [
        NextHopRule.ROUTING_SERVER,
        NextHopRule.NEXT_SITE,
        NextHopRule.NEXT_SITE,
        NextHopRule.DESTINATION,
        NextHopRule.LOCAL,
    ]
    crossings = [step.crossing for step in found.steps if step.crossing is not None]
    told_of = [(called(c.from_site), called(c.to_site), called(c.link), c.cost) for c in crossings]
    assert told_of == [("A", "B", "link0", 1), ("B", "D", "link1", 1)]
    assert found.cost == 2
    assert found.breakage is None


def test_alternatives_with_what_they_lost_by_and_ties() -> None:
    """Over C it costs the same; over E there is no way but back through A."""
    found = DIAMOND.explain("a", "t")

    assert lost(found, 0) == [(Contest.ROUTE, "C", 0), (Contest.ROUTE, "D", 7)]
    tie, direct = found.steps[0].alternatives
    assert tie.tied
    assert not direct.tied
    assert (tie.cost, direct.cost) == (2, 9)
    assert [called(site) for site in tie.path] == ["A", "C", "D"]
    assert [called(site) for site in direct.path] == ["A", "D"]


def test_parallel_links_other_gates_and_other_sites_of_the_destination() -> None:
    world = World(
        *("A-B 4", "A-B 3", "B-A 3", "B-A 0", "B-C 5"),
        a="A gate",
        b="B gate",
        f="B gate",
        t="BC",
    )
    found = world.explain("a", "t")

    assert called(found.steps[0].crossing.link if found.steps[0].crossing else guid("?")) == "link1"
    assert lost(found, 0) == [
        (Contest.MACHINE, "f", 0),
        (Contest.LINK, "link2", 0),
        (Contest.LINK, "link0", 1),
        (Contest.SITE, "C", 5),
    ]


def test_a_gate_of_two_sites_takes_the_link_of_the_nearer_one() -> None:
    world = World("A-C 9", "B-C 2", "A-D 1", "D-C 3", a="AB gate", c="C gate", d="D gate", t="C")
    found = world.explain("a", "t")
    crossing = found.steps[0].crossing

    assert crossing is not None
    assert (called(crossing.from_site), called(crossing.link)) == ("B", "link1")
    assert lost(found, 0) == [(Contest.ROUTE, "D", 2)]
    assert [called(s) for s in found.steps[0].alternatives[0].path] == ["A", "D", "C"]


def test_candidates_that_were_not_first() -> None:
    world = World(x="A", r="A router", s="A router", g="A gate", t="B")

    assert lost(world.explain("x", "t"), 0) == [
        (Contest.MACHINE, "r", 0),
        (Contest.MACHINE, "s", 0),
    ]


def blame(world: World, source: str, destination: str) -> list[tuple[RouteFault, str]]:
    breakage = world.explain(source, destination).breakage
    assert breakage is not None
    return [told(breakage), *(told(cause) for cause in breakage.causes)]


def test_a_site_without_a_gate_and_who_should_have_been_one() -> None:
    world = World(
        *("A-B 1 a,n,far,ghost", "B-C 1"),
        a="A router",
        n="B",
        far="C router",
        t="C",
        c="C gate",
    )
    assert blame(world, "a", "t") == [
        (RouteFault.NO_GATE, "B"),
        (RouteFault.GATE_UNKNOWN, "ghost"),
        (RouteFault.GATE_NO_ROUTER, "n"),
    ]


def test_a_gate_that_the_site_names_but_that_is_elsewhere() -> None:
    world = World("A-B 1", a="A gate", b="B gate", t="B")
    moved = World("A-B 1", a="A gate", b="A router", t="B")
    snapshot = Snapshot(world.snapshot.sites, moved.snapshot.links, moved.snapshot.machines)
    found = explain(snapshot, guid("a"), guid("t")).breakage

    assert found is not None
    assert [told(cause) for cause in found.causes] == [(RouteFault.GATE_ELSEWHERE, "b")]


def test_links_that_cannot_be_used_on_either_side_of_a_gap() -> None:
    """That between E and F joins neither side."""
    world = World(
        *("A-B 1", "B-? 1", "B-C 0", "C-C 4", "E-F 0"),
        a="A gate",
        c="C gate",
        t="C",
    )
    assert blame(world, "a", "t") == [
        (RouteFault.NO_PATH, "C"),
        (RouteFault.LINK_UNKNOWN_SITE, "link1"),
        (RouteFault.LINK_COST, "link2"),
        (RouteFault.LINK_SELF, "link3"),
    ]


def test_words() -> None:
    world = World("A-B 1", "A-? 1", a="A gate", t="B")
    names = ObjectNames(world.snapshot)

    assert names.sentence(Breakage(RouteFault.NO_GATE, guid("B"))) == "site B has no gate"
    assert names.sentence(Breakage(RouteFault.GATE_NO_ROUTER, guid("t"))) == (
        "machine t is named as a gate but is not a routing server"
    )
    link = Breakage(RouteFault.LINK_UNKNOWN_SITE, guid("link1"))
    nowhere = guid("nowhere")
    assert link.kind is SubjectKind.LINK
    assert names.sentence(link) == f"link A - {nowhere} names a site that is not in the directory"
    assert names.sentence(Breakage(RouteFault.UNKNOWN_MACHINE, nowhere)) == (
        f"machine {nowhere} is not in the directory"
    )
    assert names.link(nowhere) == str(nowhere)


@unhurried
@given(enterprises(max_sites=5))
def test_explanations_follow_the_route_and_alternatives_never_win(snapshot: Snapshot) -> None:
    tables = RoutingTables(snapshot)
    for source in snapshot.machines:
        for destination in snapshot.machines:
            found = explain(snapshot, source, destination, tables)
            route = trace(snapshot, source, destination, tables)
            assert found.machines == route.machines
            assert found.breakage == route.breakage
            for step in found.steps:
                assert all(_plausible(a, snapshot) for a in step.alternatives)


def _plausible(alternative: Alternative, snapshot: Snapshot) -> bool:
    """No better than what was taken, and its path adds up."""
    graph = snapshot.graph
    ends = [graph.index[site] for site in alternative.path]
    cost = sum(graph.costs[a][b] for a, b in itertools.pairwise(ends))
    return alternative.lost_by >= 0 and (not ends or cost == alternative.cost)
