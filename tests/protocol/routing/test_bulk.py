"""Bulk routes are those of the single tables, bit by bit, and what-ifs those of starting over."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.routing.bulk.allpairs import (
    AllPairsRoutes,
    all_pairs,
    from_roots,
    routes_from,
    routes_to,
)
from mqis.protocol.routing.bulk.gates import Gates
from mqis.protocol.routing.bulk.repair import RouteChanges
from mqis.protocol.routing.bulk.sitegraph import SiteGraph, site_graph
from mqis.protocol.routing.bulk.whatif import Impact, WhatIf
from mqis.protocol.routing.explain import explain
from mqis.protocol.routing.model import Link, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.route_trace import RoutingTables
from mqis.protocol.routing.routing_table import UNREACHABLE, build_table
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from tests.strategies.routing import enterprises, graphs, named, unhurried

NOWHERE: tuple[int, tuple[Guid, ...]] = (UNREACHABLE, ())


def snapshot_of(sites: list[Guid], links: list[Link]) -> Snapshot:
    return Snapshot.make([*(RoutingSite(site, "") for site in sites), *links])


@unhurried
@given(graphs())
def test_all_pairs_are_the_tables_of_all_sites(drawn: tuple[list[Guid], list[Link]]) -> None:
    snapshot = snapshot_of(*drawn)
    graph, sites, _ = site_graph(snapshot)
    routes = all_pairs(graph)

    assert sites == snapshot.graph.sites
    for root in range(len(sites)):
        table = build_table(snapshot.graph, (root,))
        assert routes.distance[root].tolist() == list(table.distance)
        assert routes.next_hop[root].tolist() == list(table.next_hop)


@unhurried
@given(graphs(), st.data())
def test_tables_of_several_roots(drawn: tuple[list[Guid], list[Link]], data: st.DataObject) -> None:
    snapshot = snapshot_of(*drawn)
    graph, sites, _ = site_graph(snapshot)
    numbers = st.integers(0, len(sites) - 1)
    roots = sorted(data.draw(st.lists(numbers, min_size=1, max_size=3, unique=True)))
    table = build_table(snapshot.graph, roots)

    for distance, next_hop in (routes_from(graph, roots), from_roots(all_pairs(graph), roots)):
        assert distance.tolist() == list(table.distance)
        assert next_hop.tolist() == list(table.next_hop)


def test_more_sites_than_one_block() -> None:
    chosen = random.Random(7)
    ends = [(n, chosen.randrange(n)) for n in range(1, 300)] + [
        (chosen.randrange(300), chosen.randrange(300)) for _ in range(300)
    ]
    sites = [named(str(n)) for n in range(300)]
    links = [
        Link(named(f"l{n}"), sites[a], sites[b], chosen.randint(1, 3))
        for n, (a, b) in enumerate(ends)
    ]
    snapshot = snapshot_of(sites, links)
    graph, _, _ = site_graph(snapshot)
    routes = all_pairs(graph)
    for root in (0, 127, 128, 299):
        table = build_table(snapshot.graph, (root,))
        assert routes.next_hop[root].tolist() == list(table.next_hop)
        assert routes.distance[root].tolist() == list(table.distance)
    distance, next_hop = routes_to(graph, 5)
    assert (distance[:, 0] == routes.distance[:, 5]).all()
    assert (next_hop[:, 0] == routes.next_hop[:, 5]).all()


def test_plain_arrays_in() -> None:
    """Parallel links, a self-link, an unknown end and costs out of range, by number."""
    graph = SiteGraph.of(3, [0, 1, 0, 2, 1, 0], [1, 0, 0, 9, 2, 2], [5, 4, 1, 1, 3, 0])

    assert graph.link.tolist() == [1, 0, 4]
    assert graph.is_edge.tolist() == [True, False, True]
    assert all_pairs(graph).distance.tolist() == [[0, 4, 7], [4, 0, 3], [7, 3, 0]]


# --- what if --------------------------------------------------------------------------------------


def way(routes: AllPairsRoutes, source: int, destination: int) -> list[int] | None:
    """Hop by hop."""
    path = [source]
    while path[-1] != destination:
        path.append(int(routes.next_hop[path[-1], destination]))
        if path[-1] == UNREACHABLE:
            return None
    return path


@unhurried
@given(graphs(), st.data())
def test_links_that_go_change_exactly_the_routes_that_used_them(
    drawn: tuple[list[Guid], list[Link]], data: st.DataObject
) -> None:
    sites, links = drawn
    snapshot = snapshot_of(sites, links)
    graph, _, ids = site_graph(snapshot)
    gone = data.draw(st.lists(st.sampled_from(range(len(ids))), max_size=3)) if ids else []
    before = all_pairs(graph)
    kept = snapshot.without_links(ids[n] for n in gone)
    after = all_pairs(site_graph(kept)[0])

    changes = WhatIf(before).without(gone)

    distance, next_hop = before.distance.copy(), before.next_hop.copy()
    at = changes.source, changes.destination
    assert (distance[at] == changes.old_distance).all()
    assert (next_hop[at] == changes.old_next).all()
    distance[at], next_hop[at] = changes.new_distance, changes.new_next
    assert (distance == after.distance).all()
    assert (next_hop == after.next_hop).all()
    changed = {
        (s, d)
        for s in range(graph.count)
        for d in range(graph.count)
        if way(before, s, d) != way(after, s, d) or before.distance[s, d] != after.distance[s, d]
    }
    told = set(zip(changes.source.tolist(), changes.destination.tolist(), strict=True))
    assert len(told) == len(changes)
    # A parallel link of the same cost takes over without any change; dearer, it changes the cost.
    assert changed == told


def gate_routes(snapshot: Snapshot) -> dict[tuple[int, int], tuple[int, tuple[Guid, ...]]]:
    """From the first gate of every site to a machine in every site, by the rules themselves."""
    sites = snapshot.graph.sites
    targets = [RoutingQueueManager(named(f"target{site}"), "", (site,)) for site in sites]
    machines = {**snapshot.machines, **{target.id: target for target in targets}}
    world = Snapshot(snapshot.sites, snapshot.links, machines)
    tables = RoutingTables(world)
    found: dict[tuple[int, int], tuple[int, tuple[Guid, ...]]] = {}
    for s, here in enumerate(sites):
        gates = world.gates.get(here, ())
        for d, target in enumerate(targets):
            if not gates:
                found[s, d] = (0, ()) if s == d else NOWHERE
                continue
            told = explain(world, gates[0], target.id, tables)
            hops = tuple(k.crossing.to_site for k in told.steps if k.crossing is not None)
            found[s, d] = NOWHERE if told.breakage is not None else (told.cost, hops)
    return found


def without_machines(snapshot: Snapshot, ids: list[Guid]) -> Snapshot:
    left = {m: machine for m, machine in snapshot.machines.items() if m not in ids}
    return Snapshot(snapshot.sites, snapshot.links, left)


@unhurried
@given(enterprises(max_sites=5), st.data())
def test_gates_and_links_that_go(snapshot: Snapshot, data: st.DataObject) -> None:
    """Judged by explaining every route before and after, multi-site gates included."""
    graph, _, links = site_graph(snapshot)
    gates, machines = Gates.of_snapshot(snapshot)
    gone_links = (
        data.draw(st.lists(st.sampled_from(range(len(links))), max_size=2)) if links else []
    )
    gone_gates = (
        data.draw(st.lists(st.sampled_from(range(len(machines))), max_size=2)) if machines else []
    )
    left = without_machines(snapshot, [machines[n] for n in gone_gates])
    left = left.without_links(links[n] for n in gone_links)
    before, after = gate_routes(snapshot), gate_routes(left)

    what_if = WhatIf(all_pairs(graph), gates)
    changes = what_if.without(gone_links, gone_gates)

    told = _by_pair(changes)
    for pair, (old, new) in told.items():
        assert (old, new) == (before[pair][0], after[pair][0])
    assert {pair for pair in before if before[pair] != after[pair]} == told.keys()
    again = _by_pair(what_if.without(gone_links, gone_gates))
    assert told == again, "one question leaves nothing behind for the next"


def _by_pair(changes: RouteChanges) -> dict[tuple[int, int], tuple[int, int]]:
    pairs = zip(changes.source.tolist(), changes.destination.tolist(), strict=True)
    costs = zip(changes.old_distance.tolist(), changes.new_distance.tolist(), strict=True)
    return dict(zip(pairs, costs, strict=True))


#: 0 - 1 - 2 - 3 in a ring that costs 1, 1, 1 and 5, and 4 behind 3.
RING = SiteGraph.of(5, [0, 1, 2, 3, 3], [1, 2, 3, 0, 4], [1, 1, 1, 5, 2])


def test_a_sweep_over_links() -> None:
    impacts = list(WhatIf(all_pairs(RING)).each_link())

    assert [impact.number for impact in impacts] == [0, 1, 2, 3, 4]
    # Without 3 - 4 site 4 is cut off from the four others, both ways.
    assert impacts[4] == Impact(4, changed=8, unreachable=8, dearer_by=0, worst=0)
    # Nobody uses 0 - 3.
    assert impacts[3] == Impact(3, changed=0, unreachable=0, dearer_by=0, worst=0)
    # Without 0 - 1: 0 to 1, 2, 3, 4 and back.
    assert impacts[0] == Impact(0, 8, 0, 2 * ((7 - 1) + (6 - 2) + (5 - 3) + (7 - 5)), 6)


def test_a_sweep_over_gates() -> None:
    """Site 1 has two gates; the only gate of 3 takes 4 with it."""
    gates = Gates.of(5, [0, 1, 2, 3, 4, 5], [0, 1, 1, 2, 3, 4])
    impacts = {impact.number: impact for impact in WhatIf(all_pairs(RING), gates).each_gate()}

    assert impacts.keys() == {0, 1, 2, 3, 4, 5}
    assert impacts[1].changed == impacts[2].changed == 0
    assert impacts[5] == Impact(5, 8, 8, 0, 0)
    # 3 to and from everybody, and 4 to and from 0, 1, 2.
    assert impacts[4] == Impact(4, 8 + 6, 8 + 6, 0, 0)
    # Least-cost paths do not lead around a site without a gate (3.1.5.3).
    assert impacts[3].unreachable == impacts[3].changed == 8 + 2 * 4


def test_another_gate_speaks_for_the_site() -> None:
    """Gate 0 of site 0 also belongs to 3, and so is next to 4; gate 1 is in 0 alone."""
    gates = Gates.of(5, [0, 0, 1, 2, 3, 4, 5], [0, 3, 0, 1, 2, 3, 4])
    changes = WhatIf(all_pairs(RING), gates).without(gates=[0])

    told = _by_pair(changes)
    assert told[0, 4] == (2, 5)
    assert told[0, 3] == (0, 3)
    assert all(new != UNREACHABLE for _, new in told.values())


def test_gates_that_were_not_given_cannot_go() -> None:
    with pytest.raises(ValueError, match="pass gates to WhatIf"):
        WhatIf(all_pairs(RING)).without(gates=[0])
    assert list(WhatIf(all_pairs(RING)).each_gate()) == []


def test_the_arrays_given_are_left_alone() -> None:
    routes = all_pairs(RING)
    for array in (routes.distance, routes.next_hop):
        array.flags.writeable = False
    gates = Gates.of(5, [0, 0, 1, 2, 3], [0, 1, 2, 3, 4])
    changes = WhatIf(routes, gates).without([1], [2])
    assert np.count_nonzero(changes.new_distance == UNREACHABLE) == len(changes.unreachable) > 0
