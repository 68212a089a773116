"""Runs seeds of the mirror's world, with or without a bug."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context

from mqis.sim.mutations import replaced
from mqis.sim.runner import RunResult, SeedCount, run_world
from tests.sim.mirror.mutations import BUGS
from tests.sim.mirror.scenario import MirrorScenario, draw_mirror
from tests.sim.mirror.world import MirrorWorld


def run_scenario(
    scenario: MirrorScenario, mutation: str | None = None, *, keep_lines: bool = False
) -> RunResult:
    with nullcontext() if mutation is None else replaced(BUGS[mutation][1]):
        return run_world(
            scenario.seed,
            lambda trace, directory: MirrorWorld(scenario, trace, directory),
            keep_lines=keep_lines,
        )


def run_seed(seed: int, mutation: str | None = None, *, keep_lines: bool = False) -> RunResult:
    return run_scenario(draw_mirror(seed), mutation, keep_lines=keep_lines)


def run_many(seeds: range, jobs: int) -> Iterator[RunResult]:
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(run_seed, seeds, chunksize=4)


def seeds_until_found(name: str, seeds: range) -> SeedCount:
    """Runs seeds with a bug until a rule breaks."""
    for count, seed in enumerate(seeds, start=1):
        violation = run_seed(seed, name).violation
        if violation is not None:
            return SeedCount(name, count, violation.rule, count)
    return SeedCount(name, None, tried=len(seeds))


def find_all(seeds: range, jobs: int, names: tuple[str, ...] = tuple(BUGS)) -> Iterator[SeedCount]:
    """Yields for every bug, in their order, how many seeds find it."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(partial(seeds_until_found, seeds=seeds), names)
