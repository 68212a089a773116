"""One message through an enterprise, and what is recorded of its way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from mqis.lab.sending import QUEUE, Journey, Passing, SendingEnterprise, chain
from mqis.protocol.queueing.queued_message import PrivateQueue, PublicQueue
from mqis.protocol.routing.explain import explain
from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.properties import MessageClass
from tests.protocol.routing.worlds import World, called, guid
from tests.strategies.routing import named


def travel(snapshot: Snapshot, source: Guid, queue: PrivateQueue | PublicQueue) -> Journey:
    async def body() -> Journey:
        owners = {queue.identifier: queue.queue_manager} if isinstance(queue, PublicQueue) else {}
        async with SendingEnterprise(snapshot, owners.get) as enterprise:
            return await enterprise.send(source, queue, b"hello", 20.0)

    return asyncio.run(body())


def test_private_and_public() -> None:
    world = World("A-B 3", "B-C 1", a="A gate", x="A", b="B gate", c="C gate", z="C")
    found = explain(world.snapshot, guid("x"), guid("z"))
    for queue in (PrivateQueue(guid("z"), QUEUE), PublicQueue(guid("z"), guid("orders"))):
        journey = travel(world.snapshot, guid("x"), queue)
        assert [called(machine) for machine in journey.machines] == ["x", "a", "b", "c", "z"]
        assert [passing.hops for passing in journey.passings] == [0, 1, 2, 3]
        assert (journey.failure, journey.nack) == (None, None)
        assert journey.took(found)


def test_it_is_kept_where_the_way_ends() -> None:
    world = World(sites="AB", a="A gate", x="A", b="B gate")
    journey = travel(world.snapshot, guid("x"), PrivateQueue(guid("b"), QUEUE))

    assert [called(machine) for machine in journey.machines] == ["x", "a"]
    assert journey.failure is not None
    assert journey.failure.startswith("a keeps it: no route")
    assert journey.took(explain(world.snapshot, guid("x"), guid("b")))


def test_a_relay_that_is_no_routing_server_refuses() -> None:
    """The lists may name anybody; only routing servers forward."""
    world = World(a="A gate", x="A out=p", p="A", y="A")
    journey = travel(world.snapshot, guid("x"), PrivateQueue(guid("y"), QUEUE))

    assert [called(machine) for machine in journey.machines] == ["x", "p"]
    assert journey.failure is not None
    assert "p refuses it" in journey.failure
    found = explain(world.snapshot, guid("x"), guid("y"))
    assert found.breakage is None
    assert not journey.took(found), "the explanation goes on to y"


def test_the_hop_count_ends_it() -> None:
    sites = [named(f"site{n}") for n in range(32)]
    objects: list[RoutingObject] = []
    for n, site in enumerate(sites):
        gate = named(f"gate{n}")
        objects += [
            RoutingSite(site, "", (gate,)),
            RoutingQueueManager(gate, f"gate{n}", (site,), True),
        ]
    for n, (first, second) in enumerate(pairwise(sites)):
        objects.append(Link(named(f"link{n}"), first, second, 1))
    snapshot = Snapshot.make(objects)
    journey = travel(snapshot, named("gate0"), PrivateQueue(named("gate31"), QUEUE))

    assert len(journey.machines) == 31
    assert journey.nack == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert journey.took(explain(snapshot, named("gate0"), named("gate31")))


def test_another_way_than_the_explained_one_is_noticed() -> None:
    world = World("A-B 1", "B-C 1", "A-C 9", a="A gate", b="B gate", c="C gate")
    found = explain(world.snapshot, guid("a"), guid("c"))
    journey = travel(world.snapshot, guid("a"), PrivateQueue(guid("c"), QUEUE))
    assert journey.took(found)

    assert not replace(journey, passings=journey.passings[:1]).took(found)
    assert not replace(journey, failure="lost").took(found)
    straight = (Passing(guid("a"), guid("c"), 0),)
    assert not replace(journey, passings=straight).took(found)


def test_the_chain_follows_machine_and_hop_count() -> None:
    a, b, c = guid("a"), guid("b"), guid("c")
    told = [Passing(b, c, 1), Passing(a, b, 0), Passing(a, b, 0), Passing(a, b, 2)]

    assert [(p.machine, p.next) for p in chain(a, told)] == [(a, b), (b, c)]
    assert chain(c, told) == []


def test_a_machine_without_a_usable_name() -> None:
    world = World(a="A gate")
    nameless = replace(world.machines["a"], name="")
    snapshot = Snapshot.make([*world.sites.values(), nameless])
    with pytest.raises(MqisError, match="no queue manager for"):
        travel(snapshot, guid("a"), PrivateQueue(guid("a"), QUEUE))
