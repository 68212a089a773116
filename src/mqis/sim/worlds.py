"""The worlds of the simulation: what each of them draws from a seed, and how a run is built.

``replication`` is a whole enterprise of directory servers, ``queues`` are routed messages between
sites, ``archive`` is a journal with its archive on failing disks. A mutation belongs to the world
that finds it, by its first letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from mqis.sim import coverage
from mqis.sim.archive import archive_world as archive
from mqis.sim.archive.archive_scenario import ArchiveScenario, draw_archive
from mqis.sim.archive.archive_world import ArchiveWorld
from mqis.sim.directed import directed
from mqis.sim.queues import queue_world as queues
from mqis.sim.queues.queue_scenario import QueueScenario, draw_queues
from mqis.sim.queues.queue_world import QueueWorld
from mqis.sim.run_trace import SimTrace
from mqis.sim.scenario import Scenario, draw
from mqis.sim.world import World

AnyScenario = Scenario | QueueScenario | ArchiveScenario


class RunnableWorld(Protocol):
    """One run of any world."""

    #: Simulated seconds: altogether, and from the last fault until everything was right again.
    now: float
    healed_s: float

    @property
    def messages(self) -> int: ...

    def run(self) -> None:
        """Performs the run; ``Violation`` if a rule does not hold."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WorldKind:
    """``faults`` and ``decisions`` are what a run counts, with the words of a summary."""

    draw: Callable[[int], AnyScenario]
    faults: Mapping[str, str]
    decisions: Mapping[str, str]
    #: The first letters of its mutations.
    mutations: str


class WorldName(StrEnum):
    REPLICATION = "replication"
    QUEUES = "queues"
    ARCHIVE = "archive"


WORLDS: dict[WorldName, WorldKind] = {
    WorldName.REPLICATION: WorldKind(
        lambda seed: directed(seed) or draw(seed), coverage.FAULTS, coverage.DECISIONS, "ESB"
    ),
    WorldName.QUEUES: WorldKind(draw_queues, queues.FAULTS, queues.DECISIONS, "Q"),
    WorldName.ARCHIVE: WorldKind(draw_archive, archive.FAULTS, archive.DECISIONS, "A"),
}


def world_of(mutation: str | None) -> WorldName:
    """The world that a mutation belongs to."""
    letter = (mutation or "E")[0]
    return next(
        (n for n, kind in WORLDS.items() if letter in kind.mutations), WorldName.REPLICATION
    )


def build_world(
    scenario: AnyScenario, trace: SimTrace, directory: Path, journal: Path | None
) -> RunnableWorld:
    """Builds the world of a scenario; its files are in ``directory``."""
    match scenario:
        case QueueScenario():
            return QueueWorld(scenario, trace)
        case ArchiveScenario():
            return ArchiveWorld(scenario, trace, directory)
        case Scenario():
            return World(scenario, trace, directory, journal)


def with_steps(scenario: AnyScenario, indexes: tuple[int, ...]) -> AnyScenario:
    chosen: Any = tuple(scenario.steps[index] for index in indexes)
    return scenario.with_steps(chosen)
