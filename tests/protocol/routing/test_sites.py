"""Routes between sites: single ones, all at once, and the pairs that have none."""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
from hypothesis import given

from mqis.protocol.routing.breakage import RouteFault
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.sitegraph import site_graph
from mqis.protocol.routing.bulk.some_destinations import gate_columns
from mqis.protocol.routing.islands import islands
from mqis.protocol.routing.route_trace import HOP_LIMIT, RoutingTables
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.stuck import stuck_machines, stuck_sites
from tests.protocol.routing.worlds import World, called, guid, told
from tests.strategies.routing import enterprises, unhurried

#: E has no gate and stands between the others; F is joined to nobody; X is on no map.
WORLD = World(
    "A-B 1", "B-C 2", "C-E 1", "E-D 1", "A-D 9",
    sites="F", a="A gate", b="B gate", c="C gate", d="D gate", e="E router", f="F gate",
    lost="A out=nobody", deaf="B in=nobody", far="?",
)  # fmt: skip


@unhurried
@given(enterprises())
def test_all_pairs_at_once_are_the_single_routes(snapshot: Snapshot) -> None:
    graph, sites, _ = site_graph(snapshot)
    found = gate_columns(graph, Gates.of_snapshot(snapshot)[0].roots(), range(len(sites)))
    tables = RoutingTables(snapshot)
    cut = set()
    for here, source in enumerate(sites):
        for there, destination in enumerate(sites):
            if here == there:
                continue
            single = explain_between(snapshot, source, destination, tables)
            assert found.arrives[here, there] == (single.breakage is None)
            if single.breakage is not None:
                cut.add((source, destination))
                continue
            assert found.cost[here, there] == single.cost
            crossing = single.steps[0].crossing
            next_site = destination if crossing is None else crossing.to_site
            assert sites[found.next_site()[here, there]] == next_site
    groups = stuck_sites(snapshot)
    assert {pair for group in groups for pair in group.pairs} == cut
    assert sum(len(group.pairs) for group in groups) == len(cut)


def test_stuck_pairs_are_grouped_by_their_reason() -> None:
    found = {
        told(group.breakage): {called(a) + called(b) for a, b in group.pairs}
        for group in stuck_sites(WORLD.snapshot)
    }

    through = {"AD", "BD", "CD", "DA", "DB", "DC"}  # A's cheapest way to D leads through E, too
    ends = {pair for other in "ABCD" for pair in (f"{other}E", f"E{other}")} | {"EF"}
    assert found == {
        (RouteFault.NO_GATE, "E"): through | ends,
        (RouteFault.NO_PATH, "F"): {p for o in "ABCD" for p in (f"{o}F", f"F{o}")} | {"FE"},
    }


def test_stuck_machines_of_sites_that_are_not() -> None:
    found = {
        (told(group.breakage), group.sending): [called(machine) for machine in group.machines]
        for group in stuck_machines(WORLD.snapshot)
    }

    assert found == {
        ((RouteFault.NO_HOP, "nobody"), False): ["deaf"],
        ((RouteFault.NO_HOP, "nobody"), True): ["lost"],
        ((RouteFault.NO_SITE, "far"), False): ["far"],
        ((RouteFault.NO_SITE, "far"), True): ["far"],
    }


def test_islands() -> None:
    found = islands(WORLD.snapshot, {guid("E")})

    assert [[called(site) for site in group] for group in found] == [["A", "B", "C"], ["D"], ["F"]]


@unhurried
@given(enterprises())
def test_islands_are_joined_by_routes_in_both_directions(snapshot: Snapshot) -> None:
    """Compares them with the routes of all pairs, which arrays give and which networkx groups."""
    closed = set(snapshot.sites) - set(snapshot.gates)
    graph, sites, _ = site_graph(snapshot)
    arrives = gate_columns(graph, Gates.of_snapshot(snapshot)[0].roots(), range(len(sites))).arrives
    joined = nx.Graph()
    joined.add_nodes_from(site for site in sites if site not in closed)
    numbers = [number for number, site in enumerate(sites) if site not in closed]
    both = [(a, b) for a, b in combinations(numbers, 2) if arrives[a, b] and arrives[b, a]]
    joined.add_edges_from((sites[a], sites[b]) for a, b in both)
    expected = sorted(map(sorted, nx.connected_components(joined)), key=lambda g: (-len(g), g[0]))
    assert [list(group) for group in islands(snapshot, closed)] == expected


def test_a_way_with_too_many_hops_is_none() -> None:
    letters = [chr(ord("A") + n) for n in range(26)] + [chr(ord("a") + n) for n in range(9)]
    links = [f"{here}-{there} 1" for here, there in pairwise(letters)]
    world = World(*links, **{f"gate{n}": f"{site} gate" for n, site in enumerate(letters)})
    (group,) = stuck_sites(world.snapshot)

    ranks = {guid(site): rank for rank, site in enumerate(letters)}
    assert group.breakage.fault is RouteFault.HOP_LIMIT
    assert min(abs(ranks[a] - ranks[b]) for a, b in group.pairs) == HOP_LIMIT + 1
    assert len(islands(world.snapshot, ())) == 1, "the sites between them join the ends"
    single = explain_between(world.snapshot, guid("A"), guid(letters[HOP_LIMIT]))
    assert (single.breakage, single.cost) == (None, HOP_LIMIT)


def test_within_a_site_no_gate_is_needed() -> None:
    within = explain_between(WORLD.snapshot, guid("E"), guid("e"))
    outside = explain_between(WORLD.snapshot, guid("E"), guid("a"))

    assert within.breakage is None
    assert outside.breakage is not None
    assert told(outside.breakage) == (RouteFault.NO_GATE, "E")


def test_a_route_to_a_site_ends_at_its_gate() -> None:
    found = explain_between(WORLD.snapshot, guid("A"), guid("C"))

    assert [called(machine) for machine in found.machines] == ["a", "b", "c"]
    assert called(found.destination) == "c"
    assert found.steps[-1].decision.local
