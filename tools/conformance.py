"""Prints which requirements the tests prove, which are waived and which are open.

Usage: python tools/conformance.py [--json | --open TABLE]

Results of a full test run of exactly this tree are reused; otherwise the tests are run first, with
their output on stderr. Exit status: 0; 1 if tests fail or the README's numbers are wrong; 2 if
there are no results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.claims import wrong_claims
from tools.ledger import (
    LEVELS,
    RESULTS,
    TABLES,
    Count,
    Counts,
    LedgerError,
    Requirement,
    Results,
    as_json,
    check_waivers_needed,
    count,
    covered_ids,
    load_results,
    load_tables,
    load_waivers,
    open_rows,
)
from tools.mutation.records import load_mutations, rows_of
from tools.mutation.verdicts import BINDING
from tools.worktree import TreeState, tree_state

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 116

MUTATIONS_REQUIRED = False
"""True: a MUST or MUST NOT row without a recorded mutation (tests/mutations) is open, whatever its
tests say. It stays False until docs/conformance/mutants.md lists few rows as not yet written."""


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
        raise LedgerError("the tests did not finish; see their output above")
    return results


def current_results(root: Path) -> Results:
    results = load_results(root / RESULTS)
    if results is not None and is_current(results, tree_state(root)):
        return results
    return run_tests(root)


def with_mutation(
    covered: set[str], requirements: Mapping[str, Requirement], mutated: set[str]
) -> set[str]:
    """The covered rows that have a mutation, or whose level demands none."""
    return {id_ for id_ in covered if id_ in mutated or requirements[id_].level not in BINDING}


def percentage(total: Count) -> str:
    """The percentage of covered requirements among those not waived, rounded down."""
    wanted = total.covered + total.open
    return f"{total.covered * 1000 // wanted / 10:.1f} %" if wanted else "-"


def _cell(figures: Count | None) -> Text:
    if figures is None:
        return Text("")
    style = "yellow" if figures.open else "green"
    return Text(f"{figures.covered}/{figures.open}/{figures.waived}", style=style)


def _total(figures: Iterable[Count]) -> Count:
    return sum(figures, Count())


def summary_table(counts: Counts) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Requirements: covered/open/waived", show_footer=True)
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


def open_table(name: str, rows: Iterable[Requirement]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=f"Open requirements of {name}")
    table.add_column("id", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("summary")
    for row in rows:
        table.add_row(Text(row.id), row.level, Text(row.summary))
    return table


def report(root: Path, *, json_only: bool, open_of: str | None) -> int:
    requirements = load_tables(root / TABLES)
    tables = {row.table for row in requirements.values()}
    if open_of is not None and open_of not in tables:
        raise LedgerError(f"there is no table {open_of!r}; there are {', '.join(sorted(tables))}")
    waivers = load_waivers(root / TABLES, requirements)
    results = current_results(root)
    covered = covered_ids(results.tests.values())
    check_waivers_needed(waivers, covered)
    if MUTATIONS_REQUIRED:
        covered = with_mutation(covered, requirements, rows_of(load_mutations(root, requirements)))
    counts = count(requirements, covered, waivers)
    # A pipe has no width, so it gets a fixed one.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if json_only:
        print(json.dumps(as_json(counts), indent=2))
    elif open_of is not None:
        rows = open_rows(requirements, covered, waivers)
        console.print(open_table(open_of, (row for row in rows if row.table == open_of)))
    else:
        console.print(summary_table(counts))
    for nodeid in results.failed:
        print(f"failed: {nodeid}", file=sys.stderr)
    claims = [] if results.lacking else list(wrong_claims(_readme(root), counts))
    for claim in claims:
        print(claim, file=sys.stderr)
    return 1 if results.failed or claims else 0


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
