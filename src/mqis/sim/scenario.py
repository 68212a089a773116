"""Draws a scenario from a seed: the enterprise, its settings, the weather and the steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from mqis.protocol.replication.server_identity import Role
from mqis.protocol.replication.settings import DEFAULTS, ReplicationSettings
from mqis.sim.steps import (
    OVERREACHES,
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
    Promote,
    Resettle,
    Restore,
    Retire,
    Slip,
    Step,
    Stranger,
    Trick,
)

MAX_SERVERS = 20
#: The tolerated clock skew, larger than in a real enterprise.
CLOCK_SKEW_S = 300.0
#: The share of runs with signatures; only these can have hostile parties.
_SIGNED = 0.8
#: The shares of runs in which clients undelete, and in which an administrator slips.
_UNDELETING, _SLIPPING = 0.5, 0.4
#: The share of runs in which a third of the servers have stores in SQLite files.
_SQLITE = 0.2


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
    #: A third of the servers have stores in SQLite files.
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

    @property
    def cast(self) -> str:
        """Those who take part."""
        return " ".join(server.name for server in self.servers)

    @property
    def conditions(self) -> tuple[str, ...]:
        return f"settings {self.settings}", f"weather {self.weather}"


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
    Change.UPDATE_DESCRIPTOR: 6,
}


#: With such a purge buffer tombstones go within a run.
_SMALL_BUFFER = 16
#: Nothing happens to a server for so long before its site is deleted.
_RETIRING_S = 4000.0

_UNMERGEABLE = frozenset({Change.RECREATE_MACHINE})


def enterprise(bscs: tuple[int, ...]) -> tuple[ScenarioServer, ...]:
    """Plans one site for each number in ``bscs``, with so many BSCs; the first has the PEC."""
    plans = [ScenarioServer("PEC", 0, Role.PEC)]
    plans += [ScenarioServer(f"PSC{site}", site, Role.PSC) for site in range(1, len(bscs))]
    for site, count in enumerate(bscs):
        plans += [ScenarioServer(f"BSC{site}{chr(97 + n)}", site, Role.BSC) for n in range(count)]
    return tuple(plans)


def draw(seed: int) -> Scenario:
    """Draws the scenario of a seed; see ``directed`` for the seeds that are not random."""
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
        sqlite=random.random() < _SQLITE,
        journaled=random.random() < 0.05,
        batched=random.random() < 0.3,
        signed=random.random() < 0.5,
        skew_s=random.choice((0.0, 0.0, 3.0, 300.0)),
    )
    return _attacked(_slipped(scenario.with_steps(_steps(random, scenario))))


def _slipped(scenario: Scenario) -> Scenario:
    """Adds slips of an administrator from their own random source, and undeletes."""
    random = Random(f"mqis-sim/{scenario.seed}/slips")
    steps = list(scenario.steps)
    if random.random() < _UNDELETING:
        steps += _undeletes(random, scenario)
    if random.random() < _SLIPPING:
        make = random.choice((_same_backup, _resettled, _deleted_site, _promotions))
        added = make(random, scenario)
        touched = {step.server for step in added if isinstance(step, (Resettle, Slip, Promote))}
        if touched:
            # These servers, and the PEC that knows what became of them, keep their disks.
            steps = [s for s in steps if not _is_about(s, 0) and not _is_at(s, touched, scenario)]
        steps += added
    return scenario.with_steps(_in_order(steps))


def _is_at(step: Step, servers: set[int], scenario: Scenario) -> bool:
    """True for what happens to the disk of a server of these servers' sites."""
    sites = {scenario.servers[server].site for server in servers}
    return isinstance(step, (Crash, Restore, Backup, Join, Retire)) and (
        scenario.servers[step.server].site in sites
    )


def _undeletes(random: Random, scenario: Scenario) -> list[Step]:
    last, count = len(scenario.servers), random.choice((4, 12))
    kinds = Change.UNDELETE, Change.UNDELETE, Change.DELETE_QUEUE, Change.DELETE_USER
    return [
        Operate(
            random.uniform(0, scenario.fault_s),
            random.randrange(last),
            random.choice(kinds),
            random.getrandbits(32),
        )
        for _ in range(count)
    ]


def _same_backup(random: Random, scenario: Scenario) -> list[Step]:
    """An authority is restored twice from one backup, mostly when it hears nobody."""
    pscs = [i for i, plan in enumerate(scenario.servers) if plan.role is not Role.BSC]
    server, at = random.choice(pscs), random.uniform(0, scenario.fault_s / 2)
    life_s = scenario.settings.recovery_wait_s + random.choice((30.0, 300.0))
    alone = random.random() < 0.7
    heard = random.uniform(0, life_s)
    return [
        Backup(at, server),
        *_busy_at(random, server, at + 1, 4),
        *([Isolate(at + 10, server, 2 * life_s + heard)] if alone else []),
        Restore(at + 15, server, 1.0),
        *_busy_at(random, server, at + life_s, 6),
        Restore(at + life_s + 30, server, 1.0),
        *_busy_at(random, server, at + 2 * life_s + 20, 6),
    ]


def _busy_at(random: Random, server: int, at: float, count: int) -> list[Step]:
    kinds = Change.CREATE_QUEUE, Change.CREATE_USER, Change.UPDATE_QUEUE, Change.DELETE_QUEUE
    return [
        Operate(at + n / 4, server, random.choice(kinds), random.getrandbits(32))
        for n in range(count)
    ]


def _resettled(random: Random, scenario: Scenario) -> list[Step]:
    """A site is deleted and made again, once or twice."""
    alone = _lone_sites(scenario)
    if not alone:
        return []
    server, at = random.choice(alone), random.uniform(0, scenario.fault_s / 2)
    steps: list[Step] = [*_busy_at(random, server, at, 6), Resettle(at + 5, server)]
    if random.random() < 0.5:
        steps += [*_busy_at(random, server, at + 180, 6), Resettle(at + 200, server)]
    return [*steps, *_busy_at(random, server, at + 600, 6)]


def _deleted_site(random: Random, scenario: Scenario) -> list[Step]:
    """The site of a running server is deleted and undeleted, while clients go on there."""
    alone = _lone_sites(scenario)
    if not alone:
        return []
    server, at = random.choice(alone), random.uniform(0, scenario.fault_s / 2)
    for_s = random.choice((1.0, 60.0, 1800.0))
    return [
        *_busy_at(random, server, at, 6),
        Slip(at + random.choice((2.0, 30.0)), server, for_s),
        *_busy_at(random, server, at + for_s + 60, 6),
    ]


def _promotions(random: Random, scenario: Scenario) -> list[Step]:
    """The BSCs of a site become its PSC, one after the other; or the first one comes back."""
    sites = {plan.site for plan in scenario.servers if plan.role is Role.BSC and plan.site}
    if not sites:
        return []
    site = random.choice(sorted(sites))
    plans = enumerate(scenario.servers)
    bscs = [i for i, plan in plans if plan.role is Role.BSC and plan.site == site]
    at = random.uniform(0, scenario.fault_s / 2)
    steps: list[Step] = []
    psc = next(i for i, plan in enumerate(scenario.servers) if plan.site == site)
    back = random.random() < 0.5
    for server in (bscs[0], psc) if back else bscs:
        returns_s = random.choice((5.0, 100.0)) if back else None
        steps += [*_busy_at(random, server, at - 2, 4), Promote(at, server, returns_s)]
        at += random.choice((10.0, 200.0, 2000.0))
        if random.random() < 0.5:
            # It may take office, and nobody hears what it decides.
            steps.append(Isolate(at - 5, server, 600.0))
        steps += _busy_at(random, server, at + 2, 6)
        at += 20.0
    return [replace(step, at=max(0.0, step.at)) for step in steps]


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
    hostile = (_tricks, _lies, _overreaches)
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
    bscs = [server for server in bscs if server not in _administered(scenario)]
    if not bscs:
        return []
    liar, count = random.choice(bscs), random.choice((10, 30, 60))
    kinds, busy = [f for f in Falsehood if f not in OVERREACHES], random.random() < 0.5
    return [
        Lie(
            _moment(random, scenario.fault_s, busy),
            liar,
            random.choice(kinds),
            random.getrandbits(32),
        )
        for _ in range(count)
    ]


def _overreaches(random: Random, scenario: Scenario) -> list[Step]:
    """The lies of one PSC about objects of others; empty if there is none beside the PEC."""
    pscs = [i for i, plan in enumerate(scenario.servers) if plan.role is Role.PSC]
    pscs = [server for server in pscs if server not in _administered(scenario)]
    if not pscs:
        return []
    liar = random.choice(pscs)
    return [
        Lie(
            random.uniform(0, scenario.fault_s),
            liar,
            random.choice(OVERREACHES),
            random.getrandbits(32),
        )
        for _ in range(random.choice((3, 10)))
    ]


def _administered(scenario: Scenario) -> set[int]:
    """The servers of sites that go and come, or get another PSC; none of them is hostile."""
    steps = [step for step in scenario.steps if isinstance(step, (Resettle, Slip, Promote))]
    sites = {scenario.servers[step.server].site for step in steps}
    return {i for i, plan in enumerate(scenario.servers) if plan.site in sites}


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
        return replace(DEFAULTS, clock_skew_s=CLOCK_SKEW_S)
    return ReplicationSettings(
        clock_skew_s=CLOCK_SKEW_S,
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
    for make, share in (
        (_refused_commits, 0.3),
        (_empty_restore, 0.4),
        (_storm, 0.2),
        (_forgotten_deletions, 0.2),
    ):
        if random.random() < share:
            steps += make(random, scenario)
    steps = _retired(random, scenario, steps)
    return _in_order(steps)


def _in_order(steps: list[Step]) -> tuple[Step, ...]:
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


def _refused_commits(random: Random, scenario: Scenario) -> list[Step]:
    """Commits that fail in the busiest moments: during and right behind clients' operations."""
    last = len(scenario.servers)
    return [
        FailCommit(_moment(random, scenario.fault_s, True), random.randrange(last))
        for _ in range(random.choice((4, 12)))
    ]


def _empty_restore(random: Random, scenario: Scenario) -> list[Step]:
    """A PSC joins and is backed up before it knows anything; it loses its disk in office.

    It takes office without the answer of some server, so that all others synchronise anew: it may
    be lost while they do.
    """
    alone = _lone_sites(scenario)
    pscs = [i for i, plan in enumerate(scenario.servers) if plan.role is Role.PSC]
    if not alone or len(pscs) < 2:
        return []
    new = random.choice(alone)
    deaf = random.choice([psc for psc in pscs if psc != new])
    at = random.uniform(0, scenario.fault_s / 2)
    served = at + scenario.settings.recovery_wait_s + 10 * scenario.weather.max_delay_s
    heard = served + 60.0
    # It takes the PEC some messages to begin a full synchronisation, and many to end it.
    lost = heard + random.uniform(2, 10) * scenario.weather.max_delay_s
    return [
        Join(at, new),
        Backup(at, new),
        Cut(at, deaf, new, False, lost + 60.0 - at),
        Cut(served - 30.0, 0, new, False, heard - served + 30.0),
        *(
            Operate(served + n, new, Change.CREATE_QUEUES, random.getrandbits(32))
            for n in range(5, 50, 5)
        ),
        Restore(lost, new, random.choice((1.0, 60.0))),
    ]


def _forgotten_deletions(random: Random, scenario: Scenario) -> list[Step]:
    """The PEC loses deletions, and is restored when all servers have purged their tombstones.

    They purge after further changes, when a heartbeat has told them how far they may.
    """
    if scenario.settings.purge_buffer > _SMALL_BUFFER:
        return []
    at = random.uniform(0, scenario.fault_s / 2)

    def operate(start: float, count: int, *changes: Change) -> list[Step]:
        return [
            Operate(start + n, 0, random.choice(changes), random.getrandbits(32))
            for n in range(count)
        ]

    later = Change.CREATE_NETWORK, Change.UPDATE_NETWORK
    return [
        *operate(at, 8, Change.CREATE_USER),
        Backup(at + 20, 0),
        *operate(at + 30, 6, Change.DELETE_USER),
        *operate(at + 60, 24, *later),
        *operate(at + 1500, 24, *later),
        *operate(at + 3000, 24, *later),
        Restore(at + 3100, 0, 5.0),
    ]


def _lone_sites(scenario: Scenario) -> list[int]:
    """The PSCs whose sites have no other server; the PEC is none of them."""
    sites = [plan.site for plan in scenario.servers]
    return [
        index
        for index, plan in enumerate(scenario.servers)
        if plan.role is Role.PSC and sites.count(plan.site) == 1
    ]


def _storm(random: Random, scenario: Scenario) -> list[Step]:
    """Clients change the same queues at one authority, again and again, behind a broken line.

    The others get the changes in parts of replies while new ones come.
    """
    authority = random.choice(
        [i for i, plan in enumerate(scenario.servers) if plan.role is not Role.BSC]
    )
    other = random.choice([i for i in range(len(scenario.servers)) if i != authority])
    at = random.uniform(0, scenario.fault_s / 2)
    changes = (Change.UPDATE_QUEUE, Change.UPDATE_QUEUE, Change.CREATE_QUEUE, Change.DELETE_QUEUE)
    steps: list[Step] = [Cut(at, authority, other, False, 1400.0)]
    for start, count in ((at + 20.0, 20), (at + 1395.0, 40)):
        steps += [
            Operate(
                start + random.uniform(0, 10.0),
                authority,
                random.choice(changes),
                random.getrandbits(32),
            )
            for _ in range(count)
        ]
    return steps


def _retired(random: Random, scenario: Scenario, steps: list[Step]) -> list[Step]:
    """Deletes the site of one server at some time; nothing happens to the server afterwards."""
    alone = _lone_sites(scenario)
    if not alone or random.random() > 0.25:
        return steps
    retired, at = random.choice(alone), random.uniform(scenario.fault_s / 4, scenario.fault_s)
    kept = [s for s in steps if not _is_about(s, retired) or s.at + _RETIRING_S < at]
    return [*kept, Retire(at, retired)]


def _is_about(step: Step, server: int) -> bool:
    return isinstance(step, (Crash, Restore, Backup, Join)) and step.server == server


def _moves(random: Random, scenario: Scenario) -> list[Step]:
    """A machine moves from one site to another while a third is cut off from the first.

    The third site gets the new machine while the old one still has its name there.
    """
    pscs = [i for i, plan in enumerate(scenario.servers) if plan.role is not Role.BSC]
    if len(pscs) < 3:
        return []
    old, new, deaf = random.sample(pscs, 3)
    at, salt = random.uniform(0, scenario.fault_s / 2), random.getrandbits(32)
    for_s = random.choice((60.0, 600.0, 3000.0))
    crash = Crash(at + 0.7 * for_s, deaf, random.choice(list(CrashPoint)), 30.0)
    return [
        *([crash] if random.random() < 0.5 else []),
        Operate(at, old, Change.RECREATE_MACHINE, salt),
        Cut(at + 60, old, deaf, True, for_s),
        Operate(at + 65, old, Change.RECREATE_MACHINE, salt),
        Operate(at + 110, new, Change.RECREATE_MACHINE, salt),
        Operate(at + 111, new, Change.UPDATE_MACHINE, random.getrandbits(32)),
    ]
