"""Fuzzes all targets for a time or a number of inputs.

    python -m fuzz [--seconds S | --inputs N] [--seed SEED] [TARGET ...]

A target may raise its own errors and no others. An input that takes longer than a second, or makes
the process grow, is a finding too. A finding is saved in .build/fuzz and ends the run with status
1; the same seed finds it again.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fuzz.mutate import mutated
from fuzz.targets import TARGETS, Target

SLOW_S = 1.0
#: More growth in a run of one target is a leak, not a cache that fills.
GROWTH_KB = 64 * 1024
FINDINGS = Path(".build/fuzz")
BATCH = 500


class Finding(Exception):
    """A target misbehaved."""


def one(target: Target, data: bytes) -> None:
    began = time.process_time()
    try:
        target.run(data)
    except target.answers:
        pass
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    if time.process_time() - began > SLOW_S:
        raise Finding(f"the input took {time.process_time() - began:.1f} s")


def keep(target: Target, data: bytes) -> Path:
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target.name}-{sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def budget(seconds: float | None, inputs: int | None) -> Iterator[int]:
    """Yields batch sizes until the process's CPU time or the inputs are used up; at least one."""
    deadline = None if seconds is None else time.process_time() + seconds
    for done in count(0, BATCH):
        if inputs is not None and done >= inputs:
            return
        if done and deadline is not None and time.process_time() >= deadline:
            return
        yield BATCH if inputs is None else min(BATCH, inputs - done)


def fuzz(target: Target, seed: int, seconds: float | None, inputs: int | None) -> Iterator[int]:
    """Runs the corpus unchanged, then mutations of it; yields the number of inputs run."""
    corpus, rng = target.corpus(), Random(f"{seed}/{target.name}")
    data = b""
    try:
        for data in corpus:
            one(target, data)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for batch in budget(seconds, inputs):
            for _ in range(batch):
                data = mutated(corpus, rng)
                one(target, data)
            yield batch
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > GROWTH_KB:
            raise Finding(f"the process grew by {grown // 1024} MiB")
    except Finding as finding:
        path = keep(target, data)
        cause = "".join(traceback.format_exception(finding.__cause__)) if finding.__cause__ else ""
        raise Finding(f"{target.name}: {finding}\ninput saved in {path}\n{cause}") from finding


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=float, help="CPU time for all targets together")
    parser.add_argument("--inputs", type=int, help="number of inputs for each target")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    unknown = set(options.targets) - set(known)
    if unknown:
        parser.error(
            f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(known)}"
        )
    chosen = [known[name] for name in options.targets] or list(TARGETS)
    seconds = None if options.seconds is None else options.seconds / len(chosen)
    if seconds is None and options.inputs is None:
        seconds = 60 / len(chosen)
    total = 0
    columns = (TextColumn("{task.description:>14}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for target in chosen:
            task = progress.add_task(target.name, total=options.inputs)
            try:
                for batch in fuzz(target, options.seed, seconds, options.inputs):
                    total += batch
                    progress.advance(task, batch)
            except Finding as finding:
                print(finding, file=sys.stderr)
                return 1
    print(f"fuzz: {total:,} inputs over {len(chosen)} targets, seed {options.seed}: no finding")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
