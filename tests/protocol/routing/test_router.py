"""Routes and queue owners that a queue manager learns from the directory's snapshot."""

from __future__ import annotations

import pytest

from mqis.protocol.routing.breakage import NoRouteError, RouteFault
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from tests.protocol.routing.worlds import World, guid, told

#: x sends by ghost, which is not in the directory, and z by ghost or y.
WORLD = World(a="A gate", x="A out=ghost", y="A router", z="A out=ghost,y", b="A")


def router(machine: str) -> DirectoryRouter:
    keeper = RoutingTableKeeper(guid(machine), lambda: WORLD.snapshot, 0.0)
    return DirectoryRouter(guid(machine), keeper, private_queues=(7,))


def test_candidates_that_the_directory_has_not_are_passed_over() -> None:
    assert [hop.guid for hop in router("z").next_hops(guid("b"))] == [guid("y")]


def test_without_any_candidate_that_it_has_there_is_no_route() -> None:
    """The message waits for the directory to know one, and the reason names the first."""
    with pytest.raises(NoRouteError) as caught:
        router("x").next_hops(guid("b"))
    assert told(caught.value.breakage) == (RouteFault.NO_HOP, "ghost")


def test_who_cannot_look_up_public_queues_has_none() -> None:
    found = router("x")
    assert found.owner_of(guid("orders")) is None
    assert not found.has_queue(QueueName(QueueKind.PUBLIC, guid=guid("orders")))
    assert found.has_queue(QueueName.at_destination(7))
