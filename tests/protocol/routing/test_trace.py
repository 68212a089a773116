"""Following next hops: always there, never in circles, and never farther than a message may go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given

from mqis.protocol.routing.breakage import RouteFault
from mqis.protocol.routing.keeper import routing_table
from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.nexthops import NextHopRule
from mqis.protocol.routing.route_trace import HOP_LIMIT, Route, RoutingTables, trace
from mqis.protocol.routing.routing_table import RoutingTable
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from tests.protocol.routing.worlds import World, called, guid
from tests.strategies.routing import enterprises, named, unhurried


def routes(snapshot: Snapshot) -> Iterator[tuple[Guid, Guid, Route]]:
    tables = RoutingTables(snapshot)
    for source in snapshot.machines:
        for destination in snapshot.machines:
            yield source, destination, trace(snapshot, source, destination, tables)


@unhurried
@given(enterprises(sound=True, max_sites=6))
def test_in_a_sound_enterprise_everything_arrives(snapshot: Snapshot) -> None:
    """Gates of several sites, in- and out-routing servers anywhere, ties and parallel links."""
    for source, destination, route in routes(snapshot):
        assert route.breakage is None
        assert (route.machines[0], route.machines[-1]) == (source, destination)
        assert len(set(route.machines)) == len(route.machines), "nobody sees it twice"
        crossings = [hop for hop in route.hops if hop.decision.rule is NextHopRule.NEXT_SITE]
        assert len(crossings) < len(snapshot.sites) or not crossings
        # Beside the gates: out-routing server, own gate, in-routing server, the destination.
        assert len(route.hops) - 1 <= len(crossings) + 4
        distances = [hop.decision.row.distance for hop in crossings if hop.decision.row]
        assert all(far > near for far, near in pairwise(distances)), "nearer with every gate"


@unhurried
@given(enterprises(max_sites=5))
def test_in_any_enterprise_it_arrives_or_something_is_to_blame(snapshot: Snapshot) -> None:
    for _, destination, route in routes(snapshot):
        assert (route.breakage is None) == (route.machines[-1] == destination)
        assert len(route.hops) <= HOP_LIMIT + 2


def chain(number: int) -> Snapshot:
    """So many sites in a row, a gate each."""
    sites = [named(f"site{n}") for n in range(number)]
    objects: list[RoutingObject] = []
    for n, site in enumerate(sites):
        gate = named(f"gate{n}")
        objects += [RoutingSite(site, "", (gate,)), RoutingQueueManager(gate, "", (site,), True)]
    for n, (first, second) in enumerate(pairwise(sites)):
        objects.append(Link(named(f"link{n}"), first, second, 1))
    return Snapshot.make(objects)


def test_the_hop_count_allows_29_relays_and_no_more() -> None:
    """RC is 0 to 0x1D, and every queue manager but source and destination counts."""
    assert HOP_LIMIT == 0x1D
    snapshot = chain(32)

    just = trace(snapshot, named("gate0"), named("gate30"))
    assert just.breakage is None
    assert len(just.machines) == 1 + 29 + 1
    over = trace(snapshot, named("gate0"), named("gate31"))
    assert over.breakage is not None
    assert over.breakage.fault is RouteFault.HOP_LIMIT
    assert over.breakage.subject == named("gate30")
    assert len(over.machines) == 1 + 29


def test_gates_that_know_different_directories_are_stopped_by_the_hop_count() -> None:
    """A heard that B - C went, B that A - C did: each sends to the other (E-MQBR-08)."""
    gates = {"a": "A gate", "b": "B gate", "c": "C gate"}
    now = World("A-B 1", **gates, sites="C")
    to_b = World("A-B 1", "B-C 1", **gates).table("a")
    to_a = World("A-B 1", "A-C 1", **gates).table("b")
    tables: dict[Guid, RoutingTable] = {guid("a"): to_b, guid("b"): to_a}

    route = trace(now.snapshot, guid("a"), guid("c"), tables.__getitem__)
    assert route.breakage is not None
    assert route.breakage.fault is RouteFault.HOP_LIMIT
    assert [called(m) for m in route.machines] == ["a", "b"] * 15


def test_servers_that_do_not_exist_end_the_way() -> None:
    world = World(x="A out=gone,lost", y="A out=gone,o", o="A router", t="A in=i")

    broken = world.trace("x", "t").breakage
    assert broken is not None
    assert (broken.fault, called(broken.subject)) == (RouteFault.NO_HOP, "gone")
    assert world.way("y", "t") == ["y", "o"], "o is there, but the in-routing server i is not"


def test_all_gates_of_the_same_sites_share_a_table() -> None:
    world = World("A-B 1", a="A gate", b="A gate", x="A")
    tables = RoutingTables(world.snapshot)

    assert tables(guid("a")) is tables(guid("b"))
    assert list(tables(guid("x"))) == []
    assert tables(guid("a")).same_rows(routing_table(world.snapshot, guid("a")))
