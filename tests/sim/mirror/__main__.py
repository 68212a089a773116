"""Runs the mirror's world: ``python -m tests.sim.mirror --seeds 100``, or ``--mutate all``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from statistics import median

from tests.sim.mirror.mutations import BUGS
from tests.sim.mirror.runs import find_all, run_many, run_seed
from tests.sim.mirror.world import FAULTS

_ALL = "all"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mirror", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="the number of seeds")
    parser.add_argument("--seed", type=int, help="run this one only, and print its steps")
    parser.add_argument("--mutate", choices=(*BUGS, _ALL), help="put a bug in; all: count seeds")
    given = parser.parse_args()
    if given.seed is not None:
        return _one(given.seed, None if given.mutate == _ALL else given.mutate)
    if given.mutate is not None:
        return _find(range(given.seeds), given.mutate)
    return _many(range(given.seeds))


def _one(seed: int, mutation: str | None) -> int:
    result = run_seed(seed, mutation, keep_lines=True)
    print(*result.lines, sep="\n")
    return int(result.violation is not None)


def _many(seeds: range) -> int:
    counts: Counter[str] = Counter()
    for result in run_many(seeds, os.cpu_count() or 1):
        if result.violation is not None:
            print(f"seed {result.seed}: {result.violation}")
            print(f"again: python -m tests.sim.mirror --seed {result.seed}")
            return 1
        counts.update(result.counts)
    rounds = counts["round"], counts["failed"], counts["killed"]
    print(f"{len(seeds)} mirrors hold; rounds: {rounds[0]} done, {rounds[1]} failed, {rounds[2]} "
          "killed")  # fmt: skip
    for kind in FAULTS:
        print(f"{counts[kind]:6}  {kind}")
    return 0


def _find(seeds: range, name: str) -> int:
    numbers = []
    for found in find_all(seeds, os.cpu_count() or 1, tuple(BUGS) if name == _ALL else (name,)):
        print(f"{found.name}  {found.shown:>4}  {BUGS[found.name][0]}: {found.rule}", flush=True)
        numbers.append(len(seeds) + 1 if found.seeds is None else found.seeds)
    print(f"the median is {median(numbers):g} seeds")
    return int(max(numbers) > len(seeds))


if __name__ == "__main__":
    sys.exit(main())
