"""The entry point: runs one seed, or many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from tempfile import TemporaryDirectory
from time import process_time
from traceback import extract_tb
from typing import TypeVar

from mqis.sim.mutations import MUTATIONS, mutated
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.scenario import Scenario
from mqis.sim.worlds import (
    WORLDS,
    AnyScenario,
    RunnableWorld,
    WorldName,
    build_world,
    with_steps,
    world_of,
)

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run besides its seed."""

    #: The rule to disable, see ``mutations``.
    mutation: str | None = None
    #: The indexes of the scenario's steps to run; None: all.
    steps: tuple[int, ...] | None = None
    #: The directory for the servers' journals; None: no journals.
    journal: Path | None = None
    keep_lines: bool = False
    #: The world; None: that of the mutation.
    world: WorldName | None = None

    @property
    def world_name(self) -> WorldName:
        return self.world or world_of(self.mutation)


PLAIN = Options()


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run; ``violation`` is None if all rules held."""

    seed: int
    digest: str
    violation: Violation | None
    #: Simulated seconds: from the last fault until all agreed, and altogether.
    healed_s: float
    simulated_s: float
    messages: int
    counts: Counter[str] = field(default_factory=Counter)
    lines: tuple[str, ...] = ()
    #: Processor time of the run, which differs between equal runs.
    seconds: float = field(default=0.0, compare=False)


def scenario_of(seed: int, options: Options) -> AnyScenario:
    scenario = WORLDS[options.world_name].draw(seed)
    if options.steps is not None:
        scenario = with_steps(scenario, options.steps)
    if options.journal is not None and isinstance(scenario, Scenario):
        scenario = replace(scenario, journaled=True)
    return scenario


def run_seed(seed: int, options: Options = PLAIN) -> RunResult:
    return run(scenario_of(seed, options), options)


def run(scenario: AnyScenario, options: Options = PLAIN) -> RunResult:
    with mutated(options.mutation):
        return run_world(
            scenario.seed,
            lambda trace, directory: build_world(scenario, trace, directory, options.journal),
            keep_lines=options.keep_lines,
        )


def run_world(
    seed: int, build: Callable[[SimTrace, Path], RunnableWorld], *, keep_lines: bool = False
) -> RunResult:
    """Runs a world, whose files are in a directory that is deleted afterwards."""
    began = process_time()
    trace = SimTrace(keep=keep_lines)
    violation = None
    with TemporaryDirectory(prefix="mqis-sim-") as directory:
        world = build(trace, Path(directory))
        with closing(world):
            try:
                world.run()
            except Violation as found:
                violation = found
            except Exception as error:  # an unexpected error is a violation too
                where = extract_tb(error.__traceback__)[-1]
                at = f"{Path(where.filename).name}:{where.lineno}"
                violation = Violation("no error", f"{type(error).__name__} at {at}: {error}")
            if violation is not None:
                trace.note(world.now, "violation", str(violation))
    return RunResult(
        seed,
        trace.digest,
        violation,
        world.healed_s,
        world.now,
        world.messages,
        trace.counts,
        tuple(trace.lines or ()),
        process_time() - began,
    )


@dataclass(frozen=True, slots=True)
class SeedCount:
    """The number of seeds that it took to find a mutation, and the rule that broke."""

    name: str
    #: None if no seed found it.
    seeds: int | None
    rule: str = ""
    #: The number of seeds that were run.
    tried: int = 0

    @property
    def shown(self) -> str:
        return f"none of {self.tried}" if self.seeds is None else str(self.seeds)


def seeds_until_found(name: str, seeds: range) -> SeedCount:
    """Runs seeds with a mutation until a rule breaks."""
    for count, seed in enumerate(seeds, start=1):
        violation = run_seed(seed, Options(mutation=name)).violation
        if violation is not None:
            return SeedCount(name, count, violation.rule, count)
    return SeedCount(name, None, tried=len(seeds))


def find_all(seeds: range, *, jobs: int = 1) -> Iterator[SeedCount]:
    """Yields for every mutation, in their order, how many seeds find it."""
    yield from _mapped(partial(seeds_until_found, seeds=seeds), MUTATIONS, jobs, 1)


def run_many(
    seeds: Iterable[int], options: Options = PLAIN, *, jobs: int = 1
) -> Iterator[RunResult]:
    """Yields the results in the order of the seeds; the caller may stop early."""
    yield from _mapped(partial(run_seed, options=options), seeds, jobs, 4)


def _mapped(work: Callable[[_T], _R], inputs: Iterable[_T], jobs: int, chunk: int) -> Iterator[_R]:
    """Yields the results of many runs in the order of the inputs, from several processes."""
    if jobs <= 1:
        yield from map(work, inputs)
        return
    # Spawn: a fork would inherit this process's tracing and threads.
    # Ctrl-C reaches all processes of a terminal: this one ends the others, which say nothing.
    others = active_children()
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=signal, initargs=(SIGINT, SIG_IGN)
    )
    try:
        yield from pool.map(work, inputs, chunksize=chunk)
    except (GeneratorExit, KeyboardInterrupt):
        for worker in active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        # Its thread is waited for: if that ends while Python ends, Python reports an error.
        pool.shutdown(cancel_futures=True)


def minimised(seed: int, rule: str, options: Options) -> tuple[int, ...]:
    """Reduces a failing seed to few steps that break the same rule; returns their indexes."""
    first = options.steps or tuple(
        range(len(scenario_of(seed, replace(options, steps=None)).steps))
    )

    def fails(chosen: tuple[int, ...]) -> bool:
        steps = tuple(first[index] for index in chosen)
        found = run_seed(seed, replace(options, steps=steps, keep_lines=False)).violation
        return found is not None and found.rule == rule

    return tuple(first[index] for index in fewest(len(first), fails))


# --- Reduces a failing scenario to few steps that still break the same rule -----------------------

#: The limit of tries; each is a whole run.
MAX_TRIES = 120


def fewest(count: int, fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Returns the indexes of the steps that are needed to fail, within ``MAX_TRIES`` tries.

    Delta debugging: leaves out halves, then quarters and so on, as long as the run still fails.
    """
    kept = tuple(range(count))
    parts = 2
    tries = 0
    while kept and tries < MAX_TRIES:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if fails(fewer):
                kept, parts = fewer, max(2, parts - 1)
                break
            if tries >= MAX_TRIES:
                return kept
        else:
            if size <= 1:
                return kept
            parts = min(len(kept), 2 * parts)
    return kept
