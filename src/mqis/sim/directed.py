"""Scenarios that lead into rare situations, which random steps meet in too few seeds.

One seed in five is such a scenario. The situations are those that some mutations need; the order
and the times of operations, the objects and the lies are drawn from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.scenario import CALM, CLOCK_SKEW_S, Scenario, Weather, enterprise
from mqis.sim.steps import (
    Backup,
    Change,
    Crash,
    CrashPoint,
    Cut,
    Falsehood,
    Isolate,
    Lie,
    Operate,
    Promote,
    Resettle,
    Restore,
    Retire,
    Slip,
    Step,
    Stranger,
    Trick,
)

#: The seeds with this remainder are directed.
EVERY, REMAINDER = 5, 2
_LASTS_S = 1800.0
#: Answers to requests are forgotten after so long.
MEMORY_S = 900.0


def directed(seed: int) -> Scenario | None:
    """The scenario of a directed seed; None for all other seeds."""
    if seed % EVERY != REMAINDER:
        return None
    make = _SITUATIONS[seed // EVERY % len(_SITUATIONS)]
    return make(Random(f"mqis-sim/{seed}/directed"), seed)


def _scenario(
    seed: int,
    bscs: tuple[int, ...],
    steps: list[Step],
    *,
    signed: bool = False,
    max_changes: int = 5,
    weather: Weather = CALM,
) -> Scenario:
    settings = ReplicationSettings(
        clock_skew_s=CLOCK_SKEW_S,
        purge_buffer=4,
        purge_step=2,
        ack_step=4,
        max_changes=max_changes,
        reply_memory_s=MEMORY_S,
        forget_step=1,
    )
    ordered = tuple(sorted(steps, key=lambda step: step.at))
    until = max(_LASTS_S, ordered[-1].at + 60.0)
    return Scenario(
        seed,
        enterprise(bscs),
        settings=settings,
        weather=weather,
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


def _requests_out_of_order(random: Random, seed: int) -> Scenario:
    """Requests overtake each other; a stranger replays them when the answers are forgotten."""
    update = Change.UPDATE_NETWORK
    late = 110.0 + MEMORY_S
    replays: list[Step] = [
        Stranger(random.uniform(late + 30.0, _LASTS_S), Trick.REPLAY, random.getrandbits(32))
        for _ in range(80)
    ]
    steps = [
        *_operations(random, 10, (0,), Change.CREATE_NETWORK, between=(0.0, 20.0)),
        *_operations(random, 24, (1, 2), update, between=(100.0, 102.0)),
        *_operations(random, 4, (1, 2), update, between=(late, late + 2.0)),
        *replays,
    ]
    return _scenario(seed, (1, 0), steps, signed=True, weather=Weather(max_delay_s=2.0))


def _two_partitions(random: Random, seed: int) -> Scenario:
    """PSC1 has all of the PEC's site, and is cut off when the enterprise changes."""
    users = Change.CREATE_USER, Change.CREATE_USER, Change.DELETE_USER
    steps = [
        *_operations(random, 60, (0,), Change.CREATE_QUEUE, between=(0.0, 100.0)),
        Cut(150.0, 0, 1, False, _LASTS_S),
        *_operations(random, 40, (0,), *users, between=(200.0, _LASTS_S)),
    ]
    return _scenario(seed, (0, 0), steps)


def _one_backup(random: Random, seed: int) -> Scenario:
    """An authority is restored twice from one backup; between, some server hears of it."""
    server, life_s = random.choice((0, 1)), 160.0
    kinds = Change.CREATE_QUEUE, Change.CREATE_USER, Change.UPDATE_QUEUE

    def busy(at: float) -> list[Step]:
        return _operations(random, 6, (server,), *kinds, between=(at, at + 5.0))

    steps = [
        Backup(20.0, server),
        *busy(30.0),
        Isolate(40.0, server, life_s),
        Restore(45.0, server, 1.0),
        *busy(40.0 + life_s + random.choice((-8.0, 5.0))),
        Isolate(60.0 + life_s, server, life_s + 300.0),
        Restore(65.0 + life_s, server, 1.0),
        *busy(60.0 + 2 * life_s),
    ]
    return _scenario(seed, (0, 1, 0), steps)


def _site_amid_a_round(random: Random, seed: int) -> Scenario:
    """PSC1 gets the changes of PSC2 in parts, and PSC2 is switched off amid them for ever."""
    late = 1500.0
    create = Change.CREATE_QUEUE
    steps = [
        Cut(60.0, 2, 1, True, late - 60.0),
        *_operations(random, 60, (2,), create, between=(80.0, 120.0)),
        *_operations(random, 4, (2,), create, between=(late + 1.0, late + 3.0)),
        (Resettle if random.random() < 0.5 else Retire)(late + random.uniform(8.0, 30.0), 2),
    ]
    return _scenario(seed, (0, 0, 0), steps, max_changes=2, weather=Weather(max_delay_s=2.0))


def _promoted(random: Random, seed: int) -> Scenario:
    """PSC1 is lost; of its BSCs the one that is promoted knows of deletions, the other does not."""
    users, queues = (Change.CREATE_USER, Change.DELETE_USER), (Change.CREATE_QUEUE,)
    back_s = random.choice((None, 60.0))
    steps = [
        *_operations(random, 12, (0, 1), users[0], queues[0], between=(0.0, 60.0)),
        Cut(100.0, 1, 3, False, 400.0),
        *_operations(random, 12, (0, 1), users[1], Change.DELETE_QUEUE, between=(110.0, 180.0)),
        Promote(300.0, 2, back_s),
        *_operations(random, 12, (0, 2), *users, *queues, between=(310.0, 900.0)),
        Promote(1000.0, 3 if back_s is None else 1),
        *_operations(random, 12, (0, 1, 3), *users, *queues, between=(1010.0, _LASTS_S)),
    ]
    return _scenario(seed, (0, 2), steps)


def _undeletes(random: Random, seed: int) -> Scenario:
    """Objects and a site are deleted and brought back, while PSC1 is cut off for some time."""
    kinds = Change.CREATE_QUEUE, Change.DELETE_QUEUE, Change.UNDELETE, Change.UNDELETE
    more = Change.CREATE_USER, Change.DELETE_USER, Change.DELETE_MACHINE, Change.CREATE_MACHINE
    at = random.uniform(600.0, 900.0)
    steps = [
        *_operations(random, 80, (0, 1, 2), *kinds, *more),
        Cut(random.uniform(100.0, 500.0), 0, 1, random.random() < 0.5, 300.0),
        Slip(at, 2, random.choice((5.0, 300.0))),
        Resettle(at + 600.0, 2),
    ]
    return _scenario(seed, (0, 1, 0), steps)


_SITUATIONS: tuple[Callable[[Random, int], Scenario], ...] = (
    _one_backup,
    _requests_before_a_loss,
    _promoted,
    _crash_in_quarantine,
    _two_partitions,
    _false_acknowledgements,
    _site_amid_a_round,
    _curiosity,
    _requests_out_of_order,
    _undeletes,
)
