"""GetNextHops and its helpers: one test a branch, one a correction."""

from __future__ import annotations

import pickle

import pytest

from mqis.protocol.routing.breakage import NoRouteError, RouteFault
from mqis.protocol.routing.keeper import routing_table
from mqis.protocol.routing.model import RoutingQueueManager
from mqis.protocol.routing.nexthops import (
    Decision,
    NextHopRule,
    Question,
    get_routing_servers,
    get_site_gates,
    get_site_gates_for_site,
    is_site_gate,
    next_hops,
)
from mqis.protocol.routing.routing_table import EMPTY
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from tests.protocol.routing.worlds import World, called, guid

# --- GetNextHops ----------------------------------------------------------------------------------


@pytest.mark.req("MQBR-1.3-01")
def test_two_identifiers_in_and_an_ordered_list_of_identifiers_out() -> None:
    world = World(z="A router", y="A router", x="A", t="B")
    decision = next_hops(world.snapshot, EMPTY, guid("x"), guid("t"))

    assert decision.hops == (guid("y"), guid("z"))
    assert all(isinstance(hop, Guid) for hop in decision.hops)


@pytest.mark.req("MQBR-3.1.5.1-01")
@pytest.mark.parametrize(("source", "destination"), [("nobody", "x"), ("x", "nobody")])
def test_both_queue_managers_must_be_in_the_directory(source: str, destination: str) -> None:
    world = World(x="A gate")
    with pytest.raises(NoRouteError) as raised:
        next_hops(world.snapshot, EMPTY, guid(source), guid(destination))

    breakage = raised.value.breakage
    assert (breakage.fault, breakage.subject) == (RouteFault.UNKNOWN_MACHINE, guid("nobody"))
    assert str(guid("nobody")) in str(raised.value)
    assert pickle.loads(pickle.dumps(raised.value)).breakage == breakage


@pytest.mark.req("MQBR-3.1.5.1-02")
def test_a_router_ignores_its_own_out_routing_servers() -> None:
    world = World(x="A router out=o", o="A router", t="A")

    assert world.hops("x", "t") == ["t"]


@pytest.mark.req("MQBR-3.1.5.1-03", "MQBR-1.3.1-01")
def test_a_client_sends_everything_to_its_out_routing_servers() -> None:
    """In their order, even for a neighbour, even if one is not in the directory."""
    world = World(x="A out=q,dead,o", o="A router", q="B router", t="A", u="B")

    assert world.hops("x", "t") == ["q", "dead", "o"]
    assert world.hops("x", "u") == ["q", "dead", "o"]
    assert world.decide("x", "t").rule is NextHopRule.OUT_LIST


@pytest.mark.req("MQBR-3.1.5.1-04", "MQBR-1.3.1-01")
def test_a_client_sends_to_a_neighbour_or_to_its_in_routing_servers() -> None:
    """The in-routing servers in the order of the directory, not of their GUIDs."""
    world = World(x="A", t="AB", i="B router", u="A in=j,i", j="A router")

    assert world.hops("x", "t") == ["t"]
    assert world.hops("x", "u") == ["j", "i"]


@pytest.mark.req("MQBR-3.1.5.1-04")
@pytest.mark.parametrize("source", ["A", "A out=o", "B"])
def test_a_client_that_is_an_in_routing_server_hands_over(source: str) -> None:
    """By its out-routing server, or by way of the other site, it would get the message back."""
    world = World("A-B 1", x=source, t="A in=x", o="A router", b="B gate", a="A gate")

    assert world.hops("x", "t") == ["t"]


@pytest.mark.req("MQBR-3.1.5.1-05", "MQBR-3.1.5.5-01")
def test_a_client_sends_elsewhere_by_a_routing_server_of_its_site() -> None:
    """The smallest first; d routes for another site, c is no router."""
    world = World(x="A", f="A router", e="AB router", d="B router", c="A", t="B")

    assert world.hops("x", "t") == ["e", "f"]
    assert get_routing_servers(world.snapshot, guid("x")) == (guid("e"), guid("f"))


@pytest.mark.req("MQBR-3.1.5.5-01")
def test_no_routing_server() -> None:
    world = World(x="A", r="A router", y="B", t="C")

    assert get_routing_servers(world.snapshot, guid("nobody")) == ()
    assert get_routing_servers(world.snapshot, guid("y")) == ()
    assert get_routing_servers(world.snapshot, guid("r")) == (), "not itself"
    assert world.broken("y", "t") == (RouteFault.NO_ROUTING_SERVER, "B")


@pytest.mark.req("MQBR-3.1.5.1-06")
def test_no_candidate_fails_the_attempt() -> None:
    world = World(x="A", t="B")
    with pytest.raises(NoRouteError, match=r"site .* has no routing server"):
        next_hops(world.snapshot, EMPTY, guid("x"), guid("t"))


@pytest.mark.req("MQBR-3.1.5.1-06")
def test_null_identifiers_are_no_candidates() -> None:
    source = RoutingQueueManager(guid("x"), "x", (guid("A"),), False, (), (Guid.NULL,))
    world = World(t="A")
    machines = {**world.snapshot.machines, source.id: source}
    snapshot = Snapshot(world.snapshot.sites, {}, machines)
    with pytest.raises(NoRouteError):
        next_hops(snapshot, EMPTY, guid("x"), guid("t"))


def test_an_out_routing_server_that_is_itself_is_no_candidate() -> None:
    world = World(x="A out=x", y="A out=y,o", o="A router", t="A")

    assert world.broken("x", "t") == (RouteFault.OUT_SELF, "x")
    assert world.hops("y", "t") == ["o"]


@pytest.mark.departs("MQBR-3.1.5.1-07")
@pytest.mark.parametrize("source", ["A", "A out=o", "A in=o", "A router in=x", "A gate in=o"])
def test_what_is_for_the_source_itself_stays_there(source: str) -> None:
    world = World(x=source, o="A router")
    decision = next_hops(world.snapshot, EMPTY, guid("x"), guid("x"))

    assert decision.local
    assert decision.hops == ()
    assert not world.decide("x", "o").local


@pytest.mark.req("MQBR-1.3.2-01")
def test_there_is_no_relay_beside_a_direct_connection() -> None:
    """A routing server of the site is no second candidate; retries are the caller's."""
    world = World(x="A", r="A router", g="A gate", t="A")

    assert world.hops("x", "t") == ["t"]
    assert world.hops("r", "t") == ["t"]


@pytest.mark.req("MQBR-1.5-02", "MQBR-1.3.1-01")
def test_connected_networks_are_not_looked_at() -> None:
    """Routing has no place for them: machines of one site send to each other directly."""
    assert "networks" not in RoutingQueueManager.__slots__
    world = World(x="A", r="A router", t="A")
    assert world.hops("x", "t") == world.hops("r", "t") == ["t"]


# --- GetNextHopsForRouter -------------------------------------------------------------------------


@pytest.mark.req("MQBR-3.1.5.2-01")
def test_a_gate_uses_its_table_and_another_router_a_gate() -> None:
    world = World("A-B 1", g="A gate", r="A router", h="B gate", t="B")

    assert world.decide("g", "t").rule is NextHopRule.NEXT_SITE
    assert world.hops("g", "t") == ["h"]
    assert world.decide("r", "t").rule is NextHopRule.OWN_GATE


@pytest.mark.req("MQBR-3.1.5.2-02")
def test_a_router_on_the_in_routing_list_hands_over_across_sites() -> None:
    world = World("A-B 1", r="A router", g="A gate", t="B in=q,r", q="B router")

    assert world.hops("r", "t") == ["t"]


@pytest.mark.req("MQBR-3.1.5.2-03")
def test_a_router_in_the_site_of_the_destination() -> None:
    world = World(r="AB router", t="A", u="B in=q", q="C router")

    assert world.hops("r", "t") == ["t"]
    assert world.hops("r", "u") == ["q"]


@pytest.mark.req("MQBR-3.1.5.2-04")
def test_any_other_router_sends_to_a_gate_of_its_site() -> None:
    world = World("A-B 1", r="A router", h="A gate", g="A gate", t="B")

    assert world.hops("r", "t") == ["g", "h"]


@pytest.mark.req("MQBR-3.1.5.2-04")
def test_a_router_without_a_gate_fails() -> None:
    world = World("A-B 1", r="A router", t="B")

    assert world.decide("r", "t").hops == ()
    assert world.broken("r", "t") == (RouteFault.NO_GATE, "A")


# --- GetNextHopsForSiteGate -----------------------------------------------------------------------


@pytest.mark.req("MQBR-3.1.5.3-01")
def test_a_gate_on_the_in_routing_list_hands_over() -> None:
    world = World("A-B 1", g="A gate", h="B gate", t="B in=g")

    assert world.hops("g", "t") == ["t"]
    assert world.hops("h", "t") == ["g"]


@pytest.mark.req("MQBR-3.1.5.3-02")
def test_a_gate_in_the_site_of_the_destination() -> None:
    world = World("A-B 1", g="AB gate", t="A", u="B in=q", q="A router")

    assert world.hops("g", "t") == ["t"]
    assert world.hops("g", "u") == ["q"]


@pytest.mark.req("MQBR-3.1.5.3-03", "MQBR-1.5-01")
def test_a_gate_sends_to_the_gates_of_the_next_site() -> None:
    world = World("A-B 1", "B-C 1", g="A gate", k="B gate", j="B gate", c="C gate", t="C")

    decision = world.decide("g", "t")
    assert [called(hop) for hop in decision.hops] == ["j", "k"]
    assert decision.row is not None
    assert called(decision.row.next_hop) == "B"


@pytest.mark.req("MQBR-3.1.5.3-03")
def test_of_a_destinations_sites_the_nearest_counts() -> None:
    """X - A - B - Y: with the last row of any order A and B could send to and fro."""
    gates = {"x": "X gate", "a": "A gate", "b": "B gate", "y": "Y gate"}
    world = World("X-A 1", "A-B 1", "B-Y 1", t="XY", u="YX", **gates)

    for target in "tu":
        assert world.hops("a", target) == ["x"]
        assert world.hops("b", target) == ["y"]


@pytest.mark.req("MQBR-3.1.5.3-03")
def test_of_equally_near_sites_the_smallest_counts() -> None:
    world = World("A-B 2", "A-C 2", a="A gate", b="B gate", c="C gate", t="CB")

    assert world.hops("a", "t") == ["b"]


@pytest.mark.req("MQBR-3.1.5.3-04")
def test_no_row_and_no_gate_fail() -> None:
    world = World("A-B 1", "B-C 1", a="A gate", c="C gate", t="C", u="D", v="?")

    assert world.decide("a", "t").hops == ()
    assert world.broken("a", "t") == (RouteFault.NO_GATE, "B")
    assert world.broken("a", "u") == (RouteFault.NO_PATH, "D")
    assert world.broken("a", "v") == (RouteFault.NO_SITE, "v")


@pytest.mark.req("MQBR-3.1.5.3-05")
def test_a_gate_never_sends_to_itself() -> None:
    """With a table that is rooted at one of its sites only, the next site is its own."""
    world = World("A-B 1", "B-C 1", g="AB gate", h="B gate", c="C gate", t="C")
    alone = World("A-B 1", "B-C 1", g="A gate", h="B gate", c="C gate", t="C").table("g")

    stale = next_hops(world.snapshot, alone, guid("g"), guid("t"))
    assert [called(hop) for hop in stale.hops] == ["h"]
    assert world.hops("g", "t") == ["c"]


# --- helpers --------------------------------------------------------------------------------------


@pytest.mark.departs("MQBR-3.1.5.6-01")
def test_gates_of_a_machine_are_those_of_its_first_site_that_has_one() -> None:
    world = World("A-B 1", r="AB router", b="B gate", s="BC router", c="C gate", y="A")

    assert get_site_gates(world.snapshot, guid("r")) == (guid("b"),), "A has none"
    assert get_site_gates(world.snapshot, guid("s")) == (guid("b"),)
    assert get_site_gates(world.snapshot, guid("y")) == ()
    assert get_site_gates(world.snapshot, guid("nobody")) == ()


@pytest.mark.req("MQBR-3.1.5.7-01")
def test_gates_of_a_site_smallest_first() -> None:
    world = World("A-B 1", h="A gate", g="A gate", x="B")

    assert get_site_gates_for_site(world.snapshot, guid("A")) == (guid("g"), guid("h"))
    assert get_site_gates_for_site(world.snapshot, guid("B")) == ()
    assert get_site_gates_for_site(world.snapshot, guid("nowhere")) == ()
    each = World("A-B 1", "B-C 2", g="A gate", h="B gate", k="C gate")
    gates = {site: get_site_gates_for_site(each.snapshot, guid(site)) for site in "ABC"}
    assert gates == {"A": (guid("g"),), "B": (guid("h"),), "C": (guid("k"),)}


@pytest.mark.req("MQBR-3.1.5.8-01")
def test_no_gate_is_who_is_unknown_or_does_not_route() -> None:
    world = World("A-B 1 x,nobody", x="A")

    assert not is_site_gate(world.snapshot, guid("nobody"))
    assert not is_site_gate(world.snapshot, guid("x"))


@pytest.mark.req("MQBR-3.1.5.8-02")
def test_a_gate_is_who_is_in_the_collection_of_one_of_its_sites() -> None:
    world = World("B-C 1 g,h", g="AB router", h="A router", r="B router")

    assert is_site_gate(world.snapshot, guid("g"))
    assert not is_site_gate(world.snapshot, guid("h")), "a gate of nowhere"
    assert not is_site_gate(world.snapshot, guid("r"))


def test_a_source_without_a_site() -> None:
    world = World("A-B 1", x="?", r="! router", t="A")

    assert world.broken("x", "t") == (RouteFault.NO_SITE, "x")
    assert world.broken("r", "t") == (RouteFault.NO_SITE, "r")


def test_the_answers_lead_to_the_rule() -> None:
    world = World("A-B 1", g="A gate", h="B gate", t="B", x="A")

    assert world.decide("g", "t").answers == (
        (Question.LOCAL, False),
        (Question.ROUTING_SERVER, True),
        (Question.SITE_GATE, True),
        (Question.ON_IN_LIST, False),
        (Question.SHARES_SITE, False),
    )
    assert world.decide("x", "t").answers[1:] == (
        (Question.ROUTING_SERVER, False),
        (Question.ON_IN_LIST, False),
        (Question.HAS_OUT_LIST, False),
        (Question.SHARES_SITE, False),
    )


def test_the_table_of_another_is_not_used_by_who_is_no_gate() -> None:
    world = World("A-B 1", g="A gate", r="A router", h="B gate", t="B")
    table = routing_table(world.snapshot, guid("g"))
    decision: Decision = next_hops(world.snapshot, table, guid("r"), guid("t"))

    assert [called(hop) for hop in decision.hops] == ["g"]
