"""The way in: run a seed, or many of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from mqis.sim.scenario import Scenario, draw
from mqis.sim.trace import Trace
from mqis.sim.violation import Violation
from mqis.sim.world import World


@dataclass(frozen=True, slots=True)
class Result:
    """What came out of one run; ``violation`` None: all rules held."""

    seed: int
    digest: str
    violation: Violation | None
    #: Simulated seconds, until all agreed after the last fault and altogether.
    healed_s: float
    simulated_s: float
    messages: int
    counts: Counter[str] = field(default_factory=Counter)
    lines: tuple[str, ...] = ()


def run_seed(seed: int, *, keep_lines: bool = False) -> Result:
    return run(draw(seed), keep_lines=keep_lines)


def run(scenario: Scenario, *, keep_lines: bool = False) -> Result:
    trace = Trace(keep=keep_lines)
    violation = None
    with TemporaryDirectory(prefix="mqis-sim-") as directory:
        world = World(scenario, trace, Path(directory))
        try:
            world.run()
        except Violation as found:
            violation = found
            trace.note(world.now, "violation", str(found))
    return Result(
        scenario.seed,
        trace.digest,
        violation,
        world.healed_s,
        world.now,
        world.traffic.messages,
        trace.counts,
        tuple(trace.lines or ()),
    )
