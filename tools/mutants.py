"""Applies mutations to copies of the project, and runs the tests that have to notice them.

Recorded ones are judged by the tests of their rows, random ones by the tests that execute the line.

Usage: python tools/mutants.py [--only NAME ...] [--shard 1/4] [--sample 40] [--seed N] [--jobs 2]
                               [--limit 60] [--all] [--json | --check]
       python tools/mutants.py --random 40 [--only PACKAGE ...] [--seed N] [--shard 1/4] [--write]

The kills are kept in docs/conformance/kills.tsv: only what has none there for the code as it is
runs again, unless --all says otherwise. NAME is a table (mqds-server), a file of tests/mutations
without its suffix, a mutation of it (mqds-server:3), a row, or the rows of a section
(MQDS-3.1.4.2). Exit status: 0 if every mutant that ran was killed, or was a random one; 1 if one
survived or is invalid; 2 if the files are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from random import SystemRandom

from rich.console import Console
from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ledger import LedgerError, load_ledger
from tools.mutation.chance import AIMS, ChanceJudge, Judged, KeptVerdicts, draw
from tools.mutation.kills import Kills, load_kills, save_kills
from tools.mutation.pool import Judge
from tools.mutation.reached import Reached
from tools.mutation.records import Choice, Mutation, MutationError, edited_file, load_mutations
from tools.mutation.report import (
    PAGE,
    as_json,
    chance_table,
    page,
    page_of_chance,
    terminal_table,
    told,
)
from tools.mutation.verdicts import Tally, Verdict, tally
from tools.worktree import tree_state

ROOT = Path(__file__).resolve().parents[1]


def shard(text: str) -> tuple[int, int]:
    """The second of four for ``2/4``."""
    number, _, shards = text.partition("/")
    if not (number.isdigit() and shards.isdigit() and 1 <= int(number) <= int(shards)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard such as 1/4")
    return int(number), int(shards)


def names(text: str) -> list[str]:
    return [name for name in text.replace(",", " ").split() if name]


def check(root: Path, mutations: Sequence[Mutation]) -> int:
    """Prints the mutations whose edit no longer fits the source."""
    failed = 0
    for mutation in mutations:
        try:
            edited_file(root, mutation)
        except MutationError as error:
            failed = 1
            print(f"{mutation.name} ({', '.join(mutation.rows)}): {error}", file=sys.stderr)
    return failed


def judge(options: argparse.Namespace, mutations: Sequence[Mutation]) -> list[Verdict]:
    """Judges them with a progress bar; a verdict that is not the wanted one is printed at once."""
    with progress(len(mutations)) as advance:

        def tell(verdicts: Sequence[Verdict]) -> None:
            advance()
            for verdict in verdicts:
                if not verdict.dead:
                    text = f"{verdict.fate}: {verdict.mutation} at {verdict.row}: {verdict.detail}"
                    print(f"{text} {verdict.test}".rstrip(), file=sys.stderr, flush=True)

        return Judge(options.root, options.jobs, options.limit).judge(mutations, tell)


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("mutations", total=total)
        yield lambda: bar.advance(task)


def run(options: argparse.Namespace) -> int:
    """Judges recorded mutations; by default those whose kill is not on record for this code."""
    root: Path = options.root
    ledger = load_ledger(root)
    choice = Choice(tuple(options.only), options.shard, options.sample, options.seed)
    recorded = load_mutations(root, ledger.requirements)
    mutations = choice.of(recorded, ledger.requirements)
    if not mutations:
        raise LedgerError("no mutation has such a name, table or row")
    if options.check:
        return check(root, mutations)
    kills = Kills(root, recorded, load_kills(root))
    if choice.sample is None and not options.all:
        mutations = [mutation for mutation in mutations if not kills.of(mutation)]
    began = time.monotonic()
    verdicts = judge(options, mutations) if mutations else []
    after = kills.after(root, mutations, verdicts)
    counts = tally(ledger, Kills(root, recorded, after).by_row())
    if choice.sample is None:
        save_kills(root, after)
        old = read(root / PAGE)
        (root / PAGE).write_text(page(counts, len(recorded), when(root), old), "utf-8")
    show(options, counts, verdicts)
    alive = sum(not verdict.dead for verdict in verdicts)
    took = time.monotonic() - began
    seed = f", seed {choice.seed}" if choice.sample is not None else ""
    text = f"{len(mutations)} of {len(recorded)} mutations in {took:.0f} s{seed}"
    print(f"{text}; not killed: {alive}", file=sys.stderr)
    return 1 if alive else 0


def run_random(options: argparse.Namespace) -> int:
    """Judges mutations at random places. Survivors are told and are no failure."""
    root: Path = options.root
    reached = Reached(root)
    if not reached:
        raise LedgerError("nobody knows which tests execute which lines: 'make reached' finds out")
    packages = options.only or list(AIMS)
    if unknown := set(packages) - AIMS.keys():
        raise LedgerError(f"{', '.join(unknown)} is no package of {', '.join(AIMS)}")
    drawn = draw(root, options.seed, options.random, packages, reached)
    number, shards = options.shard
    drawn = drawn[number - 1 :: shards]
    began = time.monotonic()
    kept = KeptVerdicts(root, options.seed)
    known = [(chance, kept.kill_of(chance)) for chance in drawn]
    left = [chance for chance, verdict in known if verdict is None]
    with progress(len(left)) as advance:

        def tell(verdict: Judged) -> None:
            advance()
            kept.add(verdict)
            if options.verbose or verdict.fate in {"survived", "unreached"}:
                print(f"{told(verdict)}: {verdict.detail}", file=sys.stderr, flush=True)

        verdicts = ChanceJudge(root, options.jobs, options.limit).judge(left, tell) if left else []
    verdicts = [verdict for _, verdict in known if verdict is not None] + verdicts
    if options.json:
        print(json.dumps([asdict(verdict) for verdict in verdicts], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 100).print(chance_table(verdicts))
    if options.write:
        old = read(root / PAGE)
        text = page_of_chance(verdicts, options.seed, when(root), old)
        (root / PAGE).write_text(text, "utf-8")
    took = time.monotonic() - began
    text = f"{len(verdicts)} random mutations in {took:.0f} s, seed {options.seed}"
    print(text, file=sys.stderr)
    return 0


def when(root: Path) -> str:
    """The day and the commit, for the page."""
    commit = tree_state(root).commit
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return f"on {day}, commit {commit[:8]}" if commit else f"on {day}"


def read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def show(
    options: argparse.Namespace, counts: dict[str, Tally], verdicts: Sequence[Verdict]
) -> None:
    if options.json:
        print(json.dumps(as_json(counts, verdicts), indent=1))
        return
    if options.verbose:
        for verdict in verdicts:
            print(
                f"{verdict.fate}\t{verdict.mutation}\t{verdict.row}\t{verdict.test}\t{verdict.detail}"
            )
    if not options.only and options.sample is None:
        Console(width=None if sys.stdout.isatty() else 100).print(terminal_table(counts))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=names, default=[], metavar="NAME", help="with commas")
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="1/4")
    parser.add_argument("--sample", type=int, metavar="40", help="a random choice of so many")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="workers")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one test")
    parser.add_argument("--verbose", action="store_true", help="print every verdict")
    parser.add_argument("--all", action="store_true", help="also those with a kill on record")
    parser.add_argument("--random", type=int, metavar="40", help="so many at random places")
    parser.add_argument("--write", action="store_true", help=f"random ones: write {PAGE}")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--check", action="store_true", help="only see whether the edits still fit")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project")
    try:
        options = parser.parse_args(arguments)
        return run(options) if options.random is None else run_random(options)
    except LedgerError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
