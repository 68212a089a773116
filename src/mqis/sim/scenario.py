"""Draws a scenario from a seed: the enterprise, its settings, the weather and the steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from mqis.protocol.replication.server import Role
from mqis.protocol.replication.settings import DEFAULTS, ReplicationSettings
from mqis.sim.steps import (
    Backup,
    Change,
    Clog,
    Crash,
    CrashPoint,
    Cut,
    FailCommit,
    Falsehood,
    Hostile,
    Isolate,
    Join,
    Lie,
    Operate,
    Restore,
    Step,
    Stranger,
    Trick,
)

MAX_SERVERS = 20
#: The tolerated clock skew, larger than in a real enterprise.
_CLOCK_SKEW_S = 300.0
#: The share of runs with signatures; only these can have hostile parties.
_SIGNED = 0.8


@dataclass(frozen=True, slots=True)
class ScenarioServer:
    """The name, site and role of a server."""

    name: str
    site: int
    role: Role


@dataclass(frozen=True, slots=True)
class Weather:
    """The faults of a network: loss, duplication, delay and reordering of messages."""

    loss: float = 0.0
    duplicate: float = 0.0
    min_delay_s: float = 0.001
    max_delay_s: float = 0.020
    #: Messages on one line may overtake each other.
    reorder: bool = True


CALM = Weather(reorder=False)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that determines a run."""

    seed: int
    servers: tuple[ScenarioServer, ...]
    settings: ReplicationSettings = DEFAULTS
    weather: Weather = CALM
    steps: tuple[Step, ...] = ()
    #: The duration of the fault phase.
    fault_s: float = 0.0
    #: Real queue managers over simulated connections, instead of single messages.
    streams: bool = False
    sqlite: bool = False
    journaled: bool = False
    #: Operations that are pending together are committed together.
    batched: bool = False
    #: Messages are signed, and unsigned ones refused: SigningPolicy.REQUIRE.
    signed: bool = False
    #: The time for which a queue manager detects duplicates of a message.
    duplicate_s: float = 1800.0
    #: The difference between the servers' clocks.
    skew_s: float = 0.0

    @property
    def is_attacked(self) -> bool:
        """True if hostile parties take part."""
        return any(isinstance(step, Hostile) for step in self.steps)

    def with_steps(self, steps: tuple[Step, ...]) -> Scenario:
        return replace(self, steps=steps)


#: The weight of each kind of client operation; they add up to about a hundred.
_WEIGHTS: dict[Change, int] = {
    Change.CREATE_QUEUE: 16,
    Change.CREATE_QUEUES: 3,
    Change.UPDATE_QUEUE: 26,
    Change.DELETE_QUEUE: 12,
    Change.CREATE_MACHINE: 6,
    Change.UPDATE_MACHINE: 7,
    Change.MOVE_MACHINE: 2,
    Change.RECREATE_MACHINE: 3,
    Change.DELETE_MACHINE: 2,
    Change.CREATE_USER: 4,
    Change.DELETE_USER: 2,
    Change.CREATE_NETWORK: 3,
    Change.UPDATE_NETWORK: 2,
    Change.DELETE_NETWORK: 1,
    Change.CREATE_LINK: 3,
    Change.UPDATE_LINK: 4,
    Change.DELETE_LINK: 1,
    Change.CREATE_SITE: 1,
    Change.DELETE_SITE: 1,
    Change.UPDATE_SITE: 2,
    Change.UPDATE_ENTERPRISE: 1,
}


_UNMERGEABLE = frozenset({Change.RECREATE_MACHINE})


def enterprise(bscs: tuple[int, ...]) -> tuple[ScenarioServer, ...]:
    """Plans one site for each number in ``bscs``, with so many BSCs; the first has the PEC."""
    plans = [ScenarioServer("PEC", 0, Role.PEC)]
    plans += [ScenarioServer(f"PSC{site}", site, Role.PSC) for site in range(1, len(bscs))]
    for site, count in enumerate(bscs):
        plans += [ScenarioServer(f"BSC{site}{chr(97 + n)}", site, Role.BSC) for n in range(count)]
    return tuple(plans)


def draw(seed: int) -> Scenario:
    """Draws the scenario of a seed."""
    random = Random(f"mqis-sim/{seed}")
    servers = _servers(random)
    duration = random.choice((300.0, 1800.0, 7200.0, 7200.0, 86_400.0))
    scenario = Scenario(
        seed,
        servers,
        settings=_settings(random),
        weather=_weather(random),
        fault_s=duration,
        streams=random.random() < 0.15,
        sqlite=random.random() < 0.01,
        journaled=random.random() < 0.05,
        batched=random.random() < 0.3,
        signed=random.random() < 0.5,
        skew_s=random.choice((0.0, 0.0, 3.0, 300.0)),
    )
    return _attacked(scenario.with_steps(_steps(random, scenario)))


def _attacked(scenario: Scenario) -> Scenario:
    """Adds hostile parties from their own random source: the rest of the seed stays the same."""
    random = Random(f"mqis-sim/{scenario.seed}/hostile")
    if random.random() >= _SIGNED:
        return replace(scenario, signed=False)
    # Longer than the clock skew and the transit time of messages.
    memory_s = random.choice((900.0, 3600.0, DEFAULTS.reply_memory_s))
    forget_step = random.choice((1, 4, DEFAULTS.forget_step))
    scenario = replace(
        scenario,
        signed=True,
        duplicate_s=random.choice((0.0, 60.0, 1800.0)),
        settings=replace(scenario.settings, reply_memory_s=memory_s, forget_step=forget_step),
    )
    hostile = (_tricks, _lies)
    steps = [s for make in hostile if random.random() < 0.7 for s in make(random, scenario)]
    ordered = sorted((*scenario.steps, *steps), key=lambda step: step.at)
    return scenario.with_steps(tuple(ordered))


def _tricks(random: Random, scenario: Scenario) -> list[Step]:
    count, busy = random.choice((10, 30, 60)), random.random() < 0.5
    tricks = list(Trick)
    return [
        Stranger(
            _moment(random, scenario.fault_s, busy), random.choice(tricks), random.getrandbits(32)
        )
        for _ in range(count)
    ]


def _lies(random: Random, scenario: Scenario) -> list[Step]:
    """The lies of one backup controller; empty if there is none."""
    bscs = [i for i, plan in enumerate(scenario.servers) if plan.role is Role.BSC]
    if not bscs:
        return []
    liar, count = random.choice(bscs), random.choice((10, 30, 60))
    kinds, busy = list(Falsehood), random.random() < 0.5
    return [
        Lie(
            _moment(random, scenario.fault_s, busy),
            liar,
            random.choice(kinds),
            random.getrandbits(32),
        )
        for _ in range(count)
    ]


def _servers(random: Random) -> tuple[ScenarioServer, ...]:
    sites = random.choice((1, 2, 2, 2, 3, 3, 3, 3, 4, 5))
    if random.random() < 0.03:
        sites = random.randint(6, 12)
    bscs = [random.choice((0, 0, 1, 1, 2)) for _ in range(sites)]
    if sites == 1:
        bscs[0] = max(1, bscs[0])
    while sites + sum(bscs) > MAX_SERVERS:
        bscs[bscs.index(max(bscs))] -= 1
    return enterprise(tuple(bscs))


def _settings(random: Random) -> ReplicationSettings:
    """Most runs have small limits, so that purges, full and partial replies come early."""
    if random.random() < 0.4:
        return replace(DEFAULTS, clock_skew_s=_CLOCK_SKEW_S)
    return ReplicationSettings(
        clock_skew_s=_CLOCK_SKEW_S,
        purge_buffer=random.choice((4, 16, 64)),
        purge_step=random.choice((2, 8, 32)),
        ack_step=random.choice((4, 16, 256)),
        max_changes=random.choice((2, 5, 20, 1000)),
        max_pending=random.choice((3, 20, 100)),
        max_available=random.choice((5, 50, 20_000)),
    )


def _weather(random: Random) -> Weather:
    return Weather(
        loss=random.choice((0.0, 0.0, 0.02, 0.1, 0.3)),
        duplicate=random.choice((0.0, 0.02, 0.1)),
        max_delay_s=random.choice((0.02, 0.2, 2.0, 30.0)),
        reorder=random.random() < 0.7,
    )


def _steps(random: Random, scenario: Scenario) -> tuple[Step, ...]:
    """Draws the steps, in the order of their times."""
    steps: list[Step] = []
    count = random.choice((20, 60, 60, 120, 120, 250))
    changes, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    busy = random.random() < 0.5
    for _ in range(count):
        at = _moment(random, scenario.fault_s, busy)
        server = random.randrange(len(scenario.servers))
        change = random.choices(changes, weights)[0]
        steps.append(Operate(at, server, change, random.getrandbits(32)))
    for make in (_cuts, _crashes, _restores, _joins, _moves):
        if random.random() < 0.6:
            steps += make(random, scenario)
    if any(isinstance(step, Restore) for step in steps):
        # A restore may bring back a machine that is in another site by now; that cannot be merged.
        steps = [s for s in steps if not isinstance(s, Operate) or s.change not in _UNMERGEABLE]
    return tuple(sorted(steps, key=lambda step: step.at))


def _moment(random: Random, fault_s: float, busy: bool) -> float:
    """A random time in the phase: uniform or, if ``busy``, in bursts that outrun the network."""
    if busy:
        return min(fault_s, random.randrange(8) * fault_s / 8 + random.expovariate(1 / 4.0))
    return random.uniform(0, fault_s)


def _cuts(random: Random, scenario: Scenario) -> list[Step]:
    steps: list[Step] = []
    last = len(scenario.servers)
    for _ in range(random.randint(1, 6)):
        at = random.uniform(0, scenario.fault_s)
        for_s = random.choice((5.0, 60.0, 600.0, 3000.0)) * random.uniform(0.2, 1.5)
        first, second = random.sample(range(last), 2)
        kind = random.random()
        if kind < 0.6:
            steps.append(Cut(at, first, second, random.random() < 0.5, for_s))
        elif kind < 0.8:
            steps.append(Clog(at, first, second, for_s))
        else:
            steps.append(Isolate(at, first, for_s))
    return steps


def _crashes(random: Random, scenario: Scenario) -> list[Step]:
    steps: list[Step] = []
    for _ in range(random.randint(1, 6)):
        at = random.uniform(0, scenario.fault_s)
        server = random.randrange(len(scenario.servers))
        if random.random() < 0.25:
            steps.append(FailCommit(at, server))
        else:
            point = random.choice(list(CrashPoint))
            steps.append(Crash(at, server, point, random.choice((1.0, 30.0, 600.0, 3600.0))))
    return steps


def _restores(random: Random, scenario: Scenario) -> list[Step]:
    steps: list[Step] = []
    for _ in range(random.choice((1, 1, 2))):
        server = random.randrange(len(scenario.servers))
        kept = random.uniform(0, scenario.fault_s * 0.8)
        lost = random.uniform(kept, scenario.fault_s)
        steps.append(Backup(kept, server))
        steps.append(Restore(lost, server, random.choice((1.0, 60.0, 1800.0))))
    return steps


def _joins(random: Random, scenario: Scenario) -> list[Step]:
    """Some servers join late: BSCs, or the PSC of a site without BSCs."""
    steps: list[Step] = []
    for index in range(len(scenario.servers) - 1, 0, -1):
        plan = scenario.servers[index]
        alone = sum(other.site == plan.site for other in scenario.servers) == 1
        if (plan.role is Role.BSC or alone) and random.random() < 0.4:
            steps.append(Join(random.uniform(0, scenario.fault_s * 0.7), index))
    return steps


def _moves(random: Random, scenario: Scenario) -> list[Step]:
    """A machine moves from one site to another while a third is cut off from the first.

    The third site gets the new machine while the old one still has its name there.
    """
    pscs = [i for i, plan in enumerate(scenario.servers) if plan.role is not Role.BSC]
    if len(pscs) < 3:
        return []
    old, new, deaf = random.sample(pscs, 3)
    at, salt = random.uniform(0, scenario.fault_s / 2), random.getrandbits(32)
    return [
        Operate(at, old, Change.RECREATE_MACHINE, salt),
        Cut(at + 60, old, deaf, True, random.choice((60.0, 600.0, 3000.0))),
        Operate(at + 65, old, Change.RECREATE_MACHINE, salt),
        Operate(at + 110, new, Change.RECREATE_MACHINE, salt),
        Operate(at + 111, new, Change.UPDATE_MACHINE, random.getrandbits(32)),
    ]
