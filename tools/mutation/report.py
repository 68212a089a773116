"""The results of a run of mutants: a table for the terminal, JSON, and a page of the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tools.mutation.verdicts import Tally, Verdict

PAGE = Path("docs/conformance/mutants.md")
_COLUMNS = ("rows", "killed", "survived", "invalid", "unwritten")
_HEAD = ("rows", "killed", "survived", "invalid", "not yet written")

_INTRODUCTION = """\
# Mutants

Written by `make mutants WRITE=1`; do not edit it. A mutation is a small edit of the product that
breaks what one row of a table demands ([README.md](README.md#mutations)). It is *killed* if a test
that names the row fails then, or never ends; it *survived* if those tests pass. The table counts
the rows with level MUST or MUST NOT that are neither waived nor departed from.
"""


def totals(counts: Mapping[str, Tally]) -> Tally:
    return sum(counts.values(), Tally())


def terminal_table(counts: Mapping[str, Tally]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Mutants of MUST rows", show_footer=True)
    table.add_column("table", footer="total", no_wrap=True)
    for name, head in zip(_COLUMNS, _HEAD, strict=True):
        table.add_column(head, justify="right", footer=str(getattr(totals(counts), name)))
    for name, tally in counts.items():
        table.add_row(name, *_cells(tally))
    return table


def page(counts: Mapping[str, Tally], verdicts: Sequence[Verdict], mutations: int) -> str:
    """The page; it has nothing in it that differs from run to run on the same tree."""
    lines = [_INTRODUCTION, f"| table | {' | '.join(_HEAD)} |", "|---|" + "---:|" * len(_HEAD)]
    lines += [f"| `{name}` | {' | '.join(_cells(tally))} |" for name, tally in counts.items()]
    lines.append(f"| total | {' | '.join(_cells(totals(counts)))} |")
    others = len({v.row for v in verdicts}) - sum(t.rows - t.unwritten for t in counts.values())
    lines += ["", f"{mutations} mutations; {others} rows of other levels have one too."]
    for fate, title in (("survived", "Survived"), ("invalid", "Invalid")):
        rows = [v for v in verdicts if v.fate == fate]
        if rows:
            lines += ["", f"## {title}", ""]
            lines += [f"- {v.row} ({v.mutation})" for v in rows]
    return "\n".join(lines) + "\n"


def as_json(counts: Mapping[str, Tally], verdicts: Iterable[Verdict]) -> dict[str, Any]:
    return {
        "tables": {name: asdict(tally) for name, tally in counts.items()},
        "verdicts": [asdict(verdict) for verdict in verdicts],
    }


def _cells(tally: Tally) -> list[str]:
    return [str(getattr(tally, name)) for name in _COLUMNS]
