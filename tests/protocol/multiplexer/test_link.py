"""Seeded runs of two partners: safe while sessions get lost, complete when they are left alone."""

from __future__ import annotations

from random import Random

import pytest

from mqis.protocol.multiplexer.events import ConnectFailed, Denied, Disconnected, Writable
from tests.protocol.multiplexer.world import World


def lived(seed: int, steps: int = 250) -> World:
    world = World(Random(seed))
    world.up()
    world.live(steps)
    return world


@pytest.mark.req("CMP-3.1.5-02", "CMP-3.1.5-03", "CMP-3.1.7.2-01")
@pytest.mark.parametrize("seed", range(40))
def test_sessions_that_get_lost(seed: int) -> None:
    """No message is lost within, repeated or out of order; every connection ends once."""
    random = Random(seed)
    world = lived(seed, random.randint(5, 250))
    world.end()
    world.check()


@pytest.mark.parametrize("seed", range(40))
def test_sessions_that_are_left_alone(seed: int) -> None:
    """Whatever was done before: once all listen and close, everything has arrived."""
    world = lived(seed)
    if world.broken:  # nobody opened anything for too long
        world.attend()
    else:
        world.finish()
        assert not world.broken
        assert not world.lost
        world.end()
    world.check()


def test_the_runs_see_what_they_are_for() -> None:
    """Over the seeds above: every event there is, and real traffic."""
    worlds = [lived(seed) for seed in range(12)]
    kinds = {type(event) for world in worlds for side in world.sides for event in side.events}
    assert {Denied, Disconnected, ConnectFailed, Writable} <= kinds
    assert sum(world.talk() for world in worlds) > 1000
    assert sum(len(car.data) for world in worlds for car in world.a.boxcars) > 100_000
    assert any(car.count > 10 for world in worlds for car in world.b.boxcars)


def test_a_seed_is_a_run() -> None:
    def transcript(seed: int) -> list[bytes]:
        world = lived(seed)
        return [car.data for side in world.sides for car in side.boxcars]

    assert transcript(3) == transcript(3)
    assert transcript(3) != transcript(4)
