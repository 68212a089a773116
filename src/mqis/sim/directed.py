"""Scenarios that lead into rare situations, which random steps meet in too few seeds.

One seed in twenty is such a scenario. The situations are those that four mutations need; the order
and the times of operations, the objects and the lies are drawn from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.scenario import CLOCK_SKEW_S, Scenario, enterprise
from mqis.sim.steps import (
    Backup,
    Change,
    Crash,
    CrashPoint,
    Cut,
    Falsehood,
    Lie,
    Operate,
    Restore,
    Step,
    Stranger,
    Trick,
)

#: The seeds with this remainder are directed.
EVERY, REMAINDER = 20, 12
_LASTS_S = 1800.0


def directed(seed: int) -> Scenario | None:
    """The scenario of a directed seed; None for all other seeds."""
    if seed % EVERY != REMAINDER:
        return None
    make = _SITUATIONS[seed // EVERY % len(_SITUATIONS)]
    return make(Random(f"mqis-sim/{seed}/directed"), seed)


def _scenario(
    seed: int, bscs: tuple[int, ...], steps: list[Step], *, signed: bool, max_changes: int = 5
) -> Scenario:
    settings = ReplicationSettings(
        clock_skew_s=CLOCK_SKEW_S, purge_buffer=4, purge_step=2, ack_step=4, max_changes=max_changes
    )
    ordered = tuple(sorted(steps, key=lambda step: step.at))
    until = max(_LASTS_S, ordered[-1].at + 60.0)
    return Scenario(
        seed,
        enterprise(bscs),
        settings=settings,
        steps=ordered,
        fault_s=until,
        signed=signed,
        duplicate_s=60.0,
    )


def _operations(
    random: Random,
    count: int,
    servers: tuple[int, ...],
    *changes: Change,
    between: tuple[float, float] = (0.0, _LASTS_S),
) -> list[Step]:
    return [
        Operate(
            random.uniform(*between),
            random.choice(servers),
            random.choice(changes),
            random.getrandbits(32),
        )
        for _ in range(count)
    ]


def _lies(
    random: Random, count: int, liar: int, falsehood: Falsehood, *, after: float
) -> list[Step]:
    return [
        Lie(random.uniform(after, _LASTS_S), liar, falsehood, random.getrandbits(32))
        for _ in range(count)
    ]


def _false_acknowledgements(random: Random, seed: int) -> Scenario:
    """PSC1 is cut off from the PEC, and a backup controller says that PSC1 has everything."""
    queues = Change.CREATE_QUEUE, Change.CREATE_QUEUE, Change.DELETE_QUEUE, Change.UPDATE_QUEUE
    steps = [
        Cut(60.0, 0, 1, False, _LASTS_S),
        *_operations(random, 80, (0, 0, 2), *queues, Change.CREATE_USER, Change.DELETE_USER),
        *_lies(random, 60, 2, Falsehood.ACKNOWLEDGEMENT, after=60.0),
    ]
    return _scenario(seed, (1, 0), steps, signed=True)


def _curiosity(random: Random, seed: int) -> Scenario:
    """A backup controller asks every server for everything; some queues are their site's alone."""
    half = _LASTS_S / 2
    steps = [
        *_operations(random, 60, (0, 1, 2), Change.CREATE_QUEUES, between=(0.0, half)),
        *_lies(random, 30, 4, Falsehood.SYNC_REQUEST, after=half),
    ]
    return _scenario(seed, (1, 1, 0), steps, signed=True, max_changes=1000)


def _crash_in_quarantine(random: Random, seed: int) -> Scenario:
    """A machine moves from the PEC's site to PSC1's; PSC2 still has the old one, and crashes."""
    salt, at = random.getrandbits(32), random.uniform(0.0, 300.0)
    again = Change.RECREATE_MACHINE
    steps = [
        Operate(at, 0, again, salt),
        Cut(at + 60.0, 0, 2, True, 3000.0),
        Operate(at + 65.0, 0, again, salt),
        Operate(at + 110.0, 1, again, salt),
        *_operations(random, 8, (1,), Change.CREATE_MACHINE, between=(at + 120.0, at + 140.0)),
        Crash(at + 2000.0, 2, CrashPoint.BEFORE_COMMIT, 5.0),
        Operate(at + 2900.0, 1, Change.UPDATE_MACHINE, random.getrandbits(32)),
    ]
    return _scenario(seed, (0, 1, 0), steps, signed=False, max_changes=2)


def _requests_before_a_loss(random: Random, seed: int) -> Scenario:
    """The PEC loses its answers to requests with its disk, and a stranger replays the requests."""
    updates = _operations(random, 20, (1, 2), Change.UPDATE_NETWORK, between=(110.0, 180.0))
    replays: list[Step] = [
        Stranger(random.uniform(500.0, _LASTS_S), Trick.REPLAY, random.getrandbits(32))
        for _ in range(60)
    ]
    steps = [
        *_operations(random, 10, (0,), Change.CREATE_NETWORK, between=(0.0, 20.0)),
        Backup(100.0, 0),
        *updates,
        Restore(300.0, 0, 5.0),
        *replays,
    ]
    return _scenario(seed, (1, 0), steps, signed=True)


_SITUATIONS: tuple[Callable[[Random, int], Scenario], ...] = (
    _requests_before_a_loss,
    _crash_in_quarantine,
    _false_acknowledgements,
    _curiosity,
)
