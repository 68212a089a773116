"""Applies the recorded mutations to copies of the project, and runs the tests of their rows.

Usage: python tools/mutants.py [--only NAME ...] [--shard 1/4] [--sample 40] [--seed N] [--jobs 2]
                               [--limit 60] [--json | --write | --check]

NAME is a table (mqds-server), a file of tests/mutations without its suffix, a mutation of it
(mqds-server:3), a row, or the rows of a section (MQDS-3.1.4.2). Exit status: 0 if every mutant that
ran was killed; 1 if one survived or is invalid; 2 if the files are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from rich.console import Console
from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ledger import Ledger, LedgerError, load_ledger
from tools.mutation.pool import Judge
from tools.mutation.records import Choice, Mutation, MutationError, edited_file, load_mutations
from tools.mutation.report import PAGE, as_json, page, terminal_table
from tools.mutation.verdicts import Verdict, tally

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
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("mutations", total=len(mutations))

        def tell(verdicts: Sequence[Verdict]) -> None:
            bar.advance(task)
            for verdict in verdicts:
                if not verdict.dead:
                    text = f"{verdict.fate}: {verdict.mutation} at {verdict.row}: {verdict.detail}"
                    print(f"{text} {verdict.test}".rstrip(), file=sys.stderr, flush=True)

        return Judge(options.root, options.jobs, options.limit).judge(mutations, tell)


def run(options: argparse.Namespace) -> int:
    root: Path = options.root
    ledger = load_ledger(root)
    choice = Choice(tuple(options.only), options.shard, options.sample, options.seed)
    mutations = choice.of(load_mutations(root, ledger.requirements), ledger.requirements)
    if not mutations:
        raise LedgerError("no mutation has such a name, table or row")
    if options.check:
        return check(root, mutations)
    if options.write and not choice.everything:
        raise LedgerError("--write needs a run of all mutations")
    began = time.monotonic()
    verdicts = judge(options, mutations)
    show(options, ledger, verdicts, mutations)
    alive = sum(not verdict.dead for verdict in verdicts)
    took = time.monotonic() - began
    seed = f", seed {choice.seed}" if choice.sample is not None else ""
    text = f"{len(mutations)} mutations in {took:.0f} s{seed}; not killed: {alive}"
    print(text, file=sys.stderr)
    return 1 if alive else 0


def show(
    options: argparse.Namespace,
    ledger: Ledger,
    verdicts: Sequence[Verdict],
    mutations: Sequence[Mutation],
) -> None:
    counts = tally(ledger, verdicts)
    if options.json:
        print(json.dumps(as_json(counts, verdicts), indent=1))
        return
    if options.verbose:
        for verdict in verdicts:
            print(
                f"{verdict.fate}\t{verdict.mutation}\t{verdict.row}\t{verdict.test}\t{verdict.detail}"
            )
    if options.write:
        (options.root / PAGE).write_text(page(counts, verdicts, len(mutations)), "utf-8")
    if not options.only and options.sample is None and options.shard[1] == 1:
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
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--write", action="store_true", help=f"write {PAGE}")
    form.add_argument("--check", action="store_true", help="only see whether the edits still fit")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project")
    try:
        return run(parser.parse_args(arguments))
    except LedgerError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
