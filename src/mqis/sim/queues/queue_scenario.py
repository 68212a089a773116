"""The scenario of one run with routed queues: sites, machines, messages and faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.snapshot import Snapshot
from mqis.sim.scenario import CALM, Weather
from mqis.sim.steps import Cut, Isolate
from mqis.wire.guid import Guid

#: Lifetimes of messages: those that outlive all faults, and those that may expire before.
LASTING_S, BRIEF_S = 20_000, 60


@dataclass(frozen=True, slots=True)
class PostMessages:
    """A machine sends messages to a queue of another one, all at once."""

    at: float
    source: int
    target: int
    count: int
    priority: int
    lifetime_s: int


@dataclass(frozen=True, slots=True)
class Halt:
    """A queue manager stops and loses its memory; it starts again after ``down_s``."""

    at: float
    server: int
    down_s: float


QueueStep = PostMessages | Halt | Cut | Isolate


@dataclass(frozen=True, slots=True)
class RoutedMachine:
    name: str
    site: int
    #: True for a routing server that is a gate of its site.
    gate: bool

    @property
    def guid(self) -> Guid:
        return Guid(self.name.encode().ljust(16, b"\1"))


@dataclass(frozen=True, slots=True)
class QueueScenario:
    """Everything that determines a run."""

    seed: int
    machines: tuple[RoutedMachine, ...]
    #: Two sites and the cost of the link between them.
    links: tuple[tuple[int, int, int], ...] = ()
    #: Messages that a session sends before one is acknowledged.
    window: int = 64
    weather: Weather = CALM
    steps: tuple[QueueStep, ...] = ()
    fault_s: float = 0.0

    def with_steps(self, steps: tuple[QueueStep, ...]) -> QueueScenario:
        return replace(self, steps=steps)

    @property
    def cast(self) -> str:
        return " ".join(machine.name for machine in self.machines)

    @property
    def conditions(self) -> tuple[str, ...]:
        return f"links {self.links}, window {self.window}", f"weather {self.weather}"

    def snapshot(self) -> Snapshot:
        """The directory that all machines know."""
        sites = sorted({machine.site for machine in self.machines})
        objects: list[RoutingObject] = []
        for site in sites:
            gates = (m.guid for m in self.machines if m.gate and m.site == site)
            objects.append(RoutingSite(_site(site), f"site{site}", tuple(sorted(gates))))
        for machine in self.machines:
            place = (_site(machine.site),)
            objects.append(RoutingQueueManager(machine.guid, machine.name, place, machine.gate))
        for number, (first, second, cost) in enumerate(self.links):
            identifier = Guid(f"link{number}".encode().ljust(16, b"\1"))
            objects.append(Link(identifier, _site(first), _site(second), cost))
        return Snapshot.make(objects)


def _site(number: int) -> Guid:
    return Guid(f"site{number}".encode().ljust(16, b"\1"))


def draw_queues(seed: int) -> QueueScenario:
    """Draws a scenario: two to four sites, most of them with two gates, and a machine in each."""
    random = Random(f"{seed}/queues")
    sites = random.randint(2, 4)
    machines: list[RoutedMachine] = []
    for site in range(sites):
        gates = "ab" if random.random() < 0.7 else "a"
        machines += (RoutedMachine(f"gate{site}{letter}", site, True) for letter in gates)
        machines.append(RoutedMachine(f"host{site}", site, False))
    links = [(random.randrange(site), site, random.randint(1, 9)) for site in range(1, sites)]
    if sites > 2 and random.random() < 0.5:
        first, second = sorted(random.sample(range(sites), 2))
        links.append((first, second, random.randint(1, 9)))
    duration_s = random.uniform(600.0, 2400.0)
    steps = sorted(_steps(random, tuple(machines), duration_s), key=lambda step: step.at)
    weather = Weather(
        loss=random.choice((0.0, 0.0, 0.05, 0.3)), max_delay_s=random.choice((0.02, 0.5, 3.0))
    )
    window = random.choice((2, 4, 8, 64))
    return QueueScenario(
        seed, tuple(machines), tuple(links), window, weather, tuple(steps), duration_s
    )


def _steps(
    random: Random, machines: tuple[RoutedMachine, ...], duration_s: float
) -> list[QueueStep]:
    """Bursts of messages, some of them with a fault on their way while they travel."""
    hosts = [index for index, machine in enumerate(machines) if not machine.gate]
    gates = [index for index, machine in enumerate(machines) if machine.gate]
    steps: list[QueueStep] = []
    for _ in range(random.randint(4, 14)):
        at = random.uniform(0.0, duration_s)
        source, target = random.sample(hosts, 2)
        for _ in range(random.randint(1, 3)):
            count, priority = random.randint(1, 12), random.choice((3, 3, 3, 0, 7))
            lifetime_s = BRIEF_S if random.random() < 0.1 else LASTING_S
            steps.append(PostMessages(at, source, target, count, priority, lifetime_s))
            at += random.choice((0.0, 0.1, 1.0))
        if random.random() < 0.8:
            near = [gate for gate in gates if machines[gate].site == machines[source].site]
            victim = random.choice(near if random.random() < 0.6 else gates)
            steps.append(_fault(random, at + random.uniform(0.0, 3.0), source, victim))
    return steps


def _fault(random: Random, at: float, source: int, victim: int) -> QueueStep:
    for_s = random.choice((2.0, 20.0, 120.0, 400.0))
    kind = random.random()
    if kind < 0.5:
        return Halt(at, victim, for_s)
    if kind < 0.8:
        return Cut(at, source, victim, random.random() < 0.3, for_s)
    return Isolate(at, victim, for_s)
