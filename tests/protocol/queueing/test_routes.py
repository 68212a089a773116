"""Messages over several queue managers: which way they go, and what happens when it is barred."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.queueing.events import (
    Acknowledged,
    Arrived,
    Delivered,
    Dropped,
    Nacked,
    Refused,
    Relayed,
    SessionClosed,
    Stranded,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.outgoing import Outgoing, Transit
from mqis.protocol.queueing.queue_session import QueueSession
from mqis.protocol.queueing.queued_message import PrivateQueue, PublicQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID
from mqis.protocol.routing.breakage import RouteFault
from mqis.protocol.routing.explain import explain
from mqis.protocol.routing.model import Link, RoutingObject, RoutingSite
from mqis.protocol.routing.model import RoutingQueueManager as Machine
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import EstablishConnection
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import Acknowledge, MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.userheader import UserHeader
from tests.protocol.queueing.routed import ADMIN, QUEUE, Enterprise, routing_manager
from tests.protocol.queueing.wires import UNIX_TIME, Wires
from tests.protocol.routing.worlds import World, called, guid
from tests.strategies.routing import enterprises, named, unhurried


def queue_of(machine: str) -> PrivateQueue:
    return PrivateQueue(guid(machine), QUEUE)


def way(net: Enterprise, source: str, target: str, *, run: bool = True) -> list[str]:
    name = net.post(guid(source), queue_of(target))
    if run:
        net.run()
    return [called(machine) for machine in net.travelled(name)]


# --- the explained way ----------------------------------------------------------------------------


@pytest.mark.req("MQBR-1.3-01")
@unhurried
@given(enterprises(sound=True, max_sites=5), st.data())
def test_the_travelled_path_is_the_explained_one(snapshot: Snapshot, data: st.DataObject) -> None:
    machines = sorted(snapshot.machines)
    net = Enterprise(snapshot)
    pairs = st.lists(st.tuples(*[st.sampled_from(machines)] * 2), min_size=1, max_size=4)
    for source, destination in data.draw(pairs):
        name = net.post(source, PrivateQueue(destination, QUEUE))
        net.run()
        path = net.travelled(name)
        assert path == list(explain(snapshot, source, destination).machines)
        ((where, arrived),) = net.arrivals(name)
        assert where == net.name(destination)
        assert arrived.hops == max(0, len(path) - 2), "one for each machine between the two"
        assert arrived.peer == (path[-2] if len(path) > 1 else source)


@unhurried
@given(enterprises(max_sites=4), st.data())
def test_in_any_enterprise_it_goes_the_explained_way_as_far_as_routing_servers_do(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    """Lists that name machines which are no routing servers end at these."""
    ends = st.sampled_from(sorted(snapshot.machines))
    source, destination = data.draw(ends), data.draw(ends)
    net = Enterprise(snapshot)
    name = net.post(source, PrivateQueue(destination, QUEUE))
    net.run()

    found = explain(snapshot, source, destination)
    expected = list(found.machines)
    if found.breakage is not None and found.breakage.fault is RouteFault.HOP_LIMIT:
        expected.append(found.breakage.subject)
    relays = [m for m in expected[1:] if m != destination]
    barred = next((m for m in relays if not snapshot.machines[m].routing_server), None)
    if barred is not None:
        expected = expected[: expected.index(barred) + 1]
        refused = [e for e in net.of(net.name(barred), Refused) if e.identifier == name]
        assert "no routing server" in refused[0].reason
    assert net.travelled(name) == expected
    assert len(net.arrivals(name)) == (barred is None and found.breakage is None)
    kept = [e for n in net.managers for e in net.of(n, Stranded) if e.identifier == name]
    if barred is None and found.breakage is not None and len(expected) == len(found.machines):
        assert [event.target for event in kept] == [destination]
    else:
        assert not kept


@pytest.mark.parametrize(
    ("source", "target", "path"),
    [
        ("x", "y", "x y"),
        ("x", "a", "x a"),
        ("x", "z", "x a b c z"),
        ("o", "z", "o p a b c z"),
        ("x", "i", "x a b c q i"),
        ("c", "x", "c b a x"),
        ("x", "x", "x"),
    ],
)
def test_gates_and_routing_lists(source: str, target: str, path: str) -> None:
    """A - B - C in a row; o sends through p, and i is reached through q only."""
    world = World(
        "A-B 3",
        "B-C 1",
        a="A gate",
        x="A",
        y="A",
        p="A router",
        o="A out=p",
        b="B gate",
        c="C gate",
        z="C",
        q="C router",
        i="C in=q",
    )
    net = Enterprise(world.snapshot)

    assert way(net, source, target) == path.split()
    assert world.way(source, target) == path.split()


def test_public_queues_by_their_identifier() -> None:
    world = World("A-B 1", a="A gate", x="A", b="B gate", y="B")
    orders = guid("orders")
    net = Enterprise(world.snapshot, owners={orders: guid("y")})
    name = net.post(guid("x"), PublicQueue(guid("y"), orders), b"order")
    net.run()

    assert [called(m) for m in net.travelled(name)] == ["x", "a", "b", "y"]
    (arrived,) = net.of("y", Arrived)
    assert (arrived.queue.guid, arrived.body, arrived.hops) == (orders, b"order", 2)
    relayed = [event for m in "ab" for event in net.of(m, Relayed)]
    assert [(e.peer, e.next_hop, e.hops) for e in relayed] == [
        (guid("x"), guid("b"), 1),
        (guid("a"), guid("y"), 2),
    ]
    assert [net.managers[m].statistics.relayed for m in "xaby"] == [0, 1, 1, 0]


# --- the hop budget -------------------------------------------------------------------------------


def row(number: int) -> Snapshot:
    """So many sites in a row, a gate each."""
    sites = [named(f"site{n}") for n in range(number)]
    objects: list[RoutingObject] = []
    for n, site in enumerate(sites):
        gate = named(f"gate{n}")
        objects += [RoutingSite(site, "", (gate,)), Machine(gate, f"gate{n}", (site,), True)]
    for n, (first, second) in enumerate(pairwise(sites)):
        objects.append(Link(named(f"link{n}"), first, second, 1))
    return Snapshot.make(objects)


def test_29_relays_and_no_more_and_the_sender_hears_of_it() -> None:
    snapshot = row(32)
    net = Enterprise(snapshot)
    there = net.post(named("gate0"), PrivateQueue(named("gate30"), QUEUE))
    beyond = net.post(named("gate0"), PrivateQueue(named("gate31"), QUEUE))
    net.run()

    ((_, arrived),) = net.arrivals(there)
    assert arrived.hops == 0x1D
    assert net.arrivals(beyond) == []
    assert len(net.travelled(beyond)) == 31, "gate30 gets it and passes it on no more"
    assert net.managers["gate30"].statistics.exhausted == 1
    (nack,) = net.of("gate0", Nacked)
    assert (nack.identifier, nack.message_class) == (beyond, MessageClass.NACK_HOP_COUNT_EXCEEDED)
    assert not nack.local


def test_gates_that_disagree_send_it_round_until_the_hop_count_ends_it() -> None:
    """a knows the way by b, and b one by a: each forwards at every other hop count, once."""
    way_by_b = World("A-B 1", "B-C 1", "A-C 9", a="A gate", b="B gate", c="C gate", x="A")
    way_by_a = World("A-B 1", "B-C 9", "A-C 1", a="A gate", b="B gate", c="C gate", x="A")
    net = Enterprise(way_by_b.snapshot, views={guid("b"): way_by_a.snapshot})
    name = net.post(guid("x"), queue_of("c"))
    net.run()

    assert "".join(called(m) for m in net.travelled(name)) == "x" + "ab" * 15
    assert net.arrivals(name) == []
    (nack,) = net.of("x", Nacked)
    assert nack.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert sum(net.managers[m].statistics.exhausted for m in "ab") == 1
    passed = [event for m in "ab" for event in net.of(m, Relayed) if event.identifier == name]
    assert sorted(event.hops for event in passed) == list(range(1, 0x1E))


def test_who_did_not_ask_is_not_told() -> None:
    net = Enterprise(row(32))
    queue = PrivateQueue(named("gate31"), QUEUE)
    first = net.managers["gate0"]
    first.send_routed(QueuedMessage(b"", queue=queue), net.now, UNIX_TIME)
    net.run()

    assert net.managers["gate30"].statistics.exhausted == 1
    assert all(manager.statistics.delivered == 0 for manager in net.managers.values())
    assert net.managers["gate30"].statistics.sent == 0


@pytest.mark.parametrize("asked", [True, False])
def test_an_administration_queue_alone_asks_for_nothing(asked: bool) -> None:
    net = Enterprise(World("A-B 1", a="A gate", x="A", b="B gate").snapshot)
    header = UserHeader(
        guid("x"), 7, queue_of("b").name, guid("b"), admin=QueueName.at_source(ADMIN), hops=0x1D
    )
    positive_arrival = 0x01
    wanted = Acknowledge.NEGATIVE_ARRIVAL if asked else positive_arrival
    packet = UserMessage(header, MessageProperties(acknowledge=wanted)).to_bytes()
    name = MessageIdentifier(guid("x"), 7)
    outgoing = Outgoing.of(name, QueuedMessage(b""), packet, net.now, Transit(guid("b")))
    routes = net.managers["x"]._routes
    assert routes is not None
    routes.dispatch(outgoing, net.now)
    net.run()

    assert net.managers["a"].statistics.exhausted == 1
    assert net.managers["a"].statistics.sent == asked


# --- hops that cannot be reached ------------------------------------------------------------------

#: Two gates on either side.
DOUBLE = World("A-B 1", a="A gate", b="A gate", x="A", c="B gate", d="B gate", y="B")


def test_the_next_of_the_list_when_the_first_does_not_answer() -> None:
    net = Enterprise(DOUBLE.snapshot)
    net.down = {"a", "c"}

    assert way(net, "x", "y") == ["x", "b", "d", "y"]
    net.down = set()
    assert way(net, "x", "y") == ["x", "b", "d", "y"], "it was out a moment ago"
    net.advance(6)
    assert way(net, "x", "y") == ["x", "a", "c", "y"], "and is tried again"


@pytest.mark.req("MQBR-1.3.2-01")
def test_nobody_stands_in_for_a_machine_that_should_be_reached_directly() -> None:
    """The rules give y alone: that routing servers could relay is said in the overview only."""
    net = Enterprise(World("A-B 1", a="A gate", x="A", y="A", b="B gate").snapshot)
    net.down = {"y"}
    name = net.post(guid("x"), queue_of("y"))
    net.advance(12)
    assert {target for _, _, target in net.attempts} == {"y"}
    net.down = set()
    net.advance(11)

    assert [called(m) for m in net.travelled(name)] == ["x", "y"]
    assert len(net.arrivals(name)) == 1


def test_a_hop_that_dies_with_messages_in_flight() -> None:
    """They go by the other one; what came by both arrives once."""
    net = Enterprise(DOUBLE.snapshot)
    assert way(net, "x", "y") == ["x", "a", "c", "y"]
    name = net.post(guid("x"), queue_of("y"), b"second")
    net.act()  # written, and not carried
    net.down = {"a"}
    net.cut()
    net.advance(6)

    assert [called(m) for m in net.travelled(name)][1] == "b"
    assert [event.body for event in net.of("y", Arrived)] == [b"hello", b"second"]


def test_with_no_hop_left_it_waits() -> None:
    net = Enterprise(DOUBLE.snapshot)
    net.down = {"c", "d"}
    name = net.post(guid("x"), queue_of("y"))
    net.run()
    (stranded,) = net.of("a", Stranded)
    assert (stranded.identifier, stranded.target) == (name, guid("y"))
    assert stranded.reason == "out of reach: c, d"
    net.advance(100)
    assert len(net.of("a", Stranded)) == 1, "told once, tried often"
    tried = [at for at, source, _ in net.attempts if source == "a"]
    assert tried == [5000.0 + at for at in (0, 0, 5, 5, 15, 15, 35, 35, 75, 75)], "c, then d"
    net.down = set()
    net.advance(61)

    assert len(net.arrivals(name)) == 1


def test_it_waits_no_longer_than_its_time() -> None:
    net = Enterprise(DOUBLE.snapshot)
    net.down = {"c", "d"}
    name = net.post(guid("x"), queue_of("y"), lifetime_s=30)
    net.advance(29)
    assert not net.of("a", Dropped)
    net.advance(2)

    assert [event.identifier for event in net.of("a", Dropped)] == [name]
    (nack,) = net.of("x", Nacked)
    assert (nack.identifier, nack.local) == (name, False)
    assert nack.message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
    net.down = set()
    net.advance(100)
    assert net.arrivals(name) == []


def test_an_own_message_without_a_way_expires_here() -> None:
    world = World(sites="AB", a="A gate", b="B gate")
    net = Enterprise(world.snapshot)
    name = net.post(guid("a"), queue_of("b"), lifetime_s=30)
    net.run()
    (stranded,) = net.of("a", Stranded)
    assert "cannot be reached over any link" in stranded.reason
    net.advance(31)

    (nack,) = net.of("a", Nacked)
    assert (nack.identifier, nack.local) == (name, True)
    assert net.attempts == []
    assert net.managers["a"].next_timer() is None, "nothing is left"


def test_a_full_queue_drops_and_tells() -> None:
    net = Enterprise(DOUBLE.snapshot, limits=QueueingLimits(max_queued_messages=2))
    net.down = {"c", "d"}
    names = [net.post(guid("x"), queue_of("y")) for _ in range(2)]
    net.run()
    names.append(net.post(guid("x"), queue_of("y")))
    net.run()

    (nack,) = net.of("x", Nacked)
    assert (nack.identifier, nack.message_class) == (names[2], MessageClass.NACK_Q_EXCEED_QUOTA)


def test_a_hop_that_worked_again_starts_anew() -> None:
    """Its waits grow while it fails, and begin with the shortest after a success."""
    net = Enterprise(DOUBLE.snapshot)
    net.down = {"a"}
    for _ in range(3):  # out for 5 s, for 10, for 20
        assert way(net, "x", "y")[1] == "b"
        net.advance(21)
    net.down = set()
    assert way(net, "x", "y")[1] == "a"
    net.advance(15)
    net.down = {"a"}
    net.cut()
    assert way(net, "x", "y")[1] == "b"
    net.down = set()
    net.advance(6)
    assert way(net, "x", "y")[1] == "a"


# --- what stays as it was -------------------------------------------------------------------------


def test_the_replication_queue_hears_only_who_is_connected() -> None:
    """By a route its messages are carried, and refused at the end."""
    world = World("A-B 1", a="A gate", b="B gate", x="A")
    net = Enterprise(world.snapshot)
    name = net.post(guid("x"), PrivateQueue(guid("b"), MQIS_QUEUE_ID), b"change")
    net.run()

    assert [called(m) for m in net.travelled(name)] == ["x", "a", "b"]
    (refused,) = net.of("b", Refused)
    assert refused.reason == f"from {guid('x')} on the session of {guid('a')}"
    net.send("a", "b", QueuedMessage(b"direct"))
    net.run()
    assert [event.body for event in net.of("b", Delivered)] == [b"direct"]


def test_nobody_reaches_a_replication_queue_in_the_name_of_a_routing_server() -> None:
    """Machine x cannot make the gate forward a message to such a queue in the gate's own name."""
    world = World("A-B 1", a="A gate", b="B gate", x="A")
    net = Enterprise(world.snapshot)
    forged = MessageIdentifier(guid("a"), 5)
    message = QueuedMessage(b"change", queue=PrivateQueue(guid("b"), MQIS_QUEUE_ID))
    net.managers["x"].send_routed(message, net.now, UNIX_TIME, forged)
    net.run()

    (refused,) = net.of("a", Refused)
    assert refused.reason == f"for {guid('b')}, in the name of this machine"
    assert net.of("b", Delivered) == []


@pytest.mark.parametrize("claimed", ["a", "x"])
def test_nobody_has_a_replication_queue_told_that_its_message_was_lost(claimed: str) -> None:
    """A message of a's is at b; what x sends under the same identifier does not arrive."""
    world = World("A-B 1", "B-C 1", a="A gate", b="B gate", c="C gate", x="B")
    net = Enterprise(world.snapshot)
    net.down = {"c"}
    sent = net.send("a", "b", QueuedMessage(b"request", acknowledge=True))
    net.run()
    forged = MessageIdentifier(guid(claimed), sent.ordinal)
    message = QueuedMessage(b"lost", lifetime_s=5, acknowledge=True, queue=queue_of("c"))
    net.managers["x"].send_routed(message, net.now, UNIX_TIME, forged)
    net.advance(30)

    assert net.managers["b"].statistics.relayed == 1
    assert net.of("a", Nacked) == []
    told = [event for event in net.of("x", Nacked) if not event.local]
    assert len(told) == (claimed == "x"), "who sends in his own name hears of it"


def test_direct_messages_and_routed_ones_have_sessions_of_their_own() -> None:
    world = World("A-B 1", a="A gate", b="B gate")
    net = Enterprise(world.snapshot)
    net.post(guid("a"), queue_of("b"))
    net.send("a", "b", QueuedMessage(b"direct"))
    net.run()

    assert [target for _, _, target in net.attempts] == ["b", "b"]
    requests = [decode_packet(bytes(net.written["a", n][:572])) for n in (1, 2)]
    servers = [r.server for r in requests if isinstance(r, EstablishConnection)]
    assert servers == [guid("b"), Guid.NULL], "a direct name knows nobody (MS-MQQB 3.1.5.2.3)"
    assert len(net.of("b", Arrived)) == len(net.of("b", Delivered)) == 1


def test_a_machine_with_another_identifier_does_not_get_the_message() -> None:
    """The name leads to a machine that is not the next hop: another one is taken."""
    snapshot = DOUBLE.snapshot
    managers = [routing_manager(snapshot, m, peers=None) for m in snapshot.machines]
    impostor = QueueingMachine(guid("impostor"), "a", MessageIdCounter(0))
    net = Wires(*(m for m in managers if m.machine != "a"), impostor)
    sender = next(m for m in managers if m.machine == "x")
    sender.send_routed(QueuedMessage(b"", queue=queue_of("y")), net.now, UNIX_TIME)
    net.run()

    assert len(net.of("y", Arrived)) == 1
    reasons = [event.reason for event in net.of("x", SessionClosed)]
    assert reasons == [f"asked for {guid('a')}"] or reasons == ["the peer refused the session"]
    assert impostor.statistics.received == 0


@pytest.mark.parametrize("server", ["b", "c"])
def test_who_answers_has_to_be_who_was_asked_for(server: str) -> None:
    """MS-MQQB 3.1.5.3.2."""
    session = QueueSession(guid("a"), QueueingLimits(), 0.0, initiator=True, remote=guid("b"))
    session.receive(EstablishConnection(guid("a"), guid(server), 0).to_bytes(), 0.0)

    expected = None if server == "b" else f"{guid('c')} answers for {guid('b')}"
    assert session.closed == expected


def test_strangers_get_no_session() -> None:
    net = Enterprise(DOUBLE.snapshot)
    stranger = QueueingMachine(guid("stranger"), "stranger", MessageIdCounter(0))
    net.managers["stranger"], net.events["stranger"] = stranger, []
    stranger.send("a", QueuedMessage(b""), net.now, UNIX_TIME)
    net.run()

    assert [event.reason for event in net.of("stranger", SessionClosed)] == [
        "the peer refused the session"
    ]


def test_acknowledgements_tell_who_has_it() -> None:
    net = Enterprise(DOUBLE.snapshot)
    name = net.post(guid("x"), queue_of("y"))
    net.advance(15)

    told = {m: net.of(m, Acknowledged) for m in "xac"}
    assert {m: [(e.identifiers, e.machine) for e in found] for m, found in told.items()} == {
        "x": [((name,), "a")],
        "a": [((name,), "c")],
        "c": [((name,), "y")],
    }


def test_misuse() -> None:
    plain = QueueingMachine(guid("p"), "p", MessageIdCounter(0))
    with pytest.raises(ValueError, match="router"):
        plain.send_routed(QueuedMessage(b"", queue=queue_of("y")), 0.0, 0)
    routing = routing_manager(DOUBLE.snapshot, guid("x"))
    with pytest.raises(ValueError, match="queue"):
        routing.send_routed(QueuedMessage(b""), 0.0, 0)
    routing.close()
    with pytest.raises(ValueError, match="closed"):
        routing.send_routed(QueuedMessage(b"", queue=queue_of("y")), 0.0, 0)
