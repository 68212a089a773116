"""Prints which requirements the tests prove, which mqis departs from, and the open and waived ones.

Usage: python tools/conformance.py [--json | --open TABLE]

Results of a full test run of exactly this tree are reused; otherwise the tests are run first, with
their output on stderr. Exit status: 0; 1 if tests fail, a departure has no passing test or the
README's numbers are wrong; 2 if there are no results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import astuple, replace
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.claims import wrong_claims
from tools.ledger import (
    DEPARTURES,
    LEVELS,
    RESULTS,
    Count,
    Counts,
    Ledger,
    LedgerError,
    Requirement,
    Results,
    as_json,
    check_waivers_needed,
    count,
    load_ledger,
    load_results,
    open_rows,
    proved,
)
from tools.mutation.kills import Kills, load_kills
from tools.mutation.records import Mutation, load_mutations
from tools.mutation.verdicts import needed
from tools.worktree import TreeState, tree_state

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 116


def is_current(results: Results | None, tree: TreeState) -> bool:
    """Returns whether these are results of all tests of exactly this tree."""
    if results is None or not results.full or not tree.known:
        return False
    return TreeState(results.commit, results.dirty) == tree


def run_tests(root: Path) -> Results:
    """Runs all tests; only results of this run count."""
    path = root / RESULTS
    path.unlink(missing_ok=True)
    in_parts = root / "tools" / "run_tests.py"
    command = [sys.executable, *([str(in_parts)] if in_parts.exists() else ["-m", "pytest"])]
    subprocess.run(command, cwd=root, stdout=sys.stderr, check=False)
    results = load_results(path)
    if results is None:
        raise LedgerError("the tests did not finish; see .build/tests-*.log")
    return results


def current_results(root: Path) -> Results:
    results = load_results(root / RESULTS)
    if results is not None and is_current(results, tree_state(root)):
        return results
    return run_tests(root)


def with_mutations(covered: Set[str], ledger: Ledger, kills: Mapping[str, int]) -> frozenset[str]:
    """The covered rows of which as many mutations were killed as their level demands."""
    rows = ledger.requirements
    return frozenset(id_ for id_ in covered if kills.get(id_, 0) >= needed(rows[id_], ledger))


def percentage(total: Count) -> str:
    """The percentage of covered requirements among those not waived, rounded down."""
    wanted = total.covered + total.departs + total.open
    return f"{total.covered * 1000 // wanted / 10:.1f} %" if wanted else "-"


def _cell(figures: Count | None) -> Text:
    if figures is None:
        return Text("")
    style = "yellow" if figures.open else "green"
    return Text("/".join(map(str, astuple(figures))), style=style)


def _total(figures: Iterable[Count]) -> Count:
    return sum(figures, Count())


def summary_table(counts: Counts) -> Table:
    table = Table(
        box=SIMPLE_HEAD, title="Requirements: covered/departs/open/waived", show_footer=True
    )
    everything = _total(c for levels in counts.values() for c in levels.values())
    table.add_column("table", footer="total", no_wrap=True)
    for level in LEVELS:
        footer = _total(levels.get(level, Count()) for levels in counts.values())
        table.add_column(level, justify="right", footer=_cell(footer), no_wrap=True)
    table.add_column("total", justify="right", footer=_cell(everything), no_wrap=True)
    table.add_column("covered", justify="right", footer=percentage(everything), no_wrap=True)
    for name, levels in counts.items():
        total = _total(levels.values())
        cells = [_cell(levels.get(level)) for level in LEVELS]
        table.add_row(name, *cells, _cell(total), percentage(total))
    return table


def open_table(
    name: str, rows: Iterable[Requirement], ledger: Ledger, kills: Mapping[str, int]
) -> Table:
    table = Table(box=SIMPLE_HEAD, title=f"Open requirements of {name}")
    table.add_column("id", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("mutations", no_wrap=True)
    table.add_column("summary")
    for row in rows:
        killed, wanted = kills.get(row.id, 0), needed(row, ledger)
        told = f"{killed} of {wanted}" if killed < wanted else "enough"
        table.add_row(Text(row.id), row.level, told, Text(row.summary))
    return table


def report(root: Path, *, json_only: bool, open_of: str | None) -> int:
    ledger = load_ledger(root)
    tables = {row.table for row in ledger.requirements.values()}
    if open_of is not None and open_of not in tables:
        raise LedgerError(f"there is no table {open_of!r}; there are {', '.join(sorted(tables))}")
    results = current_results(root)
    proofs = proved(results.tests.values())
    check_waivers_needed(ledger.waivers, proofs.covered)
    mutations = load_mutations(root, ledger.requirements)
    kills = Kills(root, mutations, load_kills(root)).by_row()
    proofs = replace(proofs, covered=with_mutations(proofs.covered, ledger, kills))
    counts = count(ledger, proofs)
    # A pipe has no width, so it gets a fixed one.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if json_only:
        print(json.dumps(as_json(counts), indent=2))
    elif open_of is not None:
        rows = (row for row in open_rows(ledger, proofs) if row.table == open_of)
        console.print(open_table(open_of, rows, ledger, kills))
    else:
        console.print(summary_table(counts))
    errors = list(faults(root, ledger, results, counts))
    for line in [*missed(ledger, results), *outdated(root, mutations), *errors]:
        print(line, file=sys.stderr)
    return 1 if errors else 0


def faults(root: Path, ledger: Ledger, results: Results, counts: Counts) -> Iterator[str]:
    """What must not be: failed tests, departures that no test proves, wrong numbers."""
    yield from (f"failed: {nodeid}" for nodeid in results.failed)
    possible = proved(results.tests.values(), if_skipped=True)
    for id_ in sorted(ledger.departures.keys() - possible.departs):
        yield f"{DEPARTURES}: {id_} has no passing test marked departs({id_!r})"
    yield from wrong_claims(_readme(root), counts, count(ledger, possible))


def missed(ledger: Ledger, results: Results) -> Iterator[str]:
    """The rows that are open because the tests that claim them were skipped."""
    now = {row.id for row in open_rows(ledger, proved(results.tests.values()))}
    full = open_rows(ledger, proved(results.tests.values(), if_skipped=True))
    for id_ in sorted(now - {row.id for row in full}):
        yield f"open: only skipped tests claim {id_}"


def outdated(root: Path, mutations: Sequence[Mutation]) -> Iterator[str]:
    """Tells how many mutations have no kill on record for the code as it is."""
    kills = Kills(root, mutations, load_kills(root))
    if old := sum(not kills.of(mutation) for mutation in mutations):
        yield (
            f"{old} of {len(mutations)} mutations have not been killed on the code as it is: "
            "'make mutants' judges them"
        )


def _readme(root: Path) -> str:
    path = root / "README.md"
    return path.read_text("utf-8") if path.exists() else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Reports the requirements that the tests prove.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the counts as JSON only")
    form.add_argument("--open", metavar="TABLE", help="list the open rows of one table")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project to report on")
    options = parser.parse_args(arguments)
    try:
        return report(options.root, json_only=options.json, open_of=options.open)
    except LedgerError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
