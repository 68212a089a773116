"""The results of mutants: tables for the terminal, JSON, and a page of the docs in two parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tools.mutation.chance import AIMS, Judged
from tools.mutation.verdicts import Tally, Verdict

PAGE = Path("docs/conformance/mutants.md")
_COLUMNS = ("rows", "proved", "partly", "unproved")
_HEAD = ("rows", "proved", "one of two", "none")
_FATES = ("drawn", "killed", "never ended", "survived", "equivalent", "rate", "aim")
_RANDOM = "## Random mutations\n"

_INTRODUCTION = """\
# Mutants

Written by `make mutants` and `make mutants RANDOM=1000 WRITE=1`; do not edit it.

## Mutations of rows

A mutation is a small edit of the product that breaks what one row of a table demands
([README.md](README.md#mutations)). It is killed if a test that names the row fails then, or never
ends. A row with level MUST or MUST NOT needs two different ones, a FACT needs one. The table counts
the rows that need them: *proved* are those whose mutations were killed on the code as it is.
"""
_OF_CHANCE = """\

Edits by operators at random places, judged by the tests that execute them
([README.md](README.md#random-mutations)). *Equivalent* ones change nothing that anybody could
notice; `tests/mutations/random/equivalent.toml` has the reason of each. The rate leaves them out.
"""


def totals(counts: Mapping[str, Tally]) -> Tally:
    return sum(counts.values(), Tally())


def terminal_table(counts: Mapping[str, Tally]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Rows and their mutations", show_footer=True)
    table.add_column("table", footer="total", no_wrap=True)
    for name, head in zip(_COLUMNS, _HEAD, strict=True):
        table.add_column(head, justify="right", footer=str(getattr(totals(counts), name)))
    for name, tally in counts.items():
        table.add_row(name, *_cells(tally))
    return table


def page(counts: Mapping[str, Tally], mutations: int, when: str, old: str) -> str:
    """The page with a new first part; the second stays as it is in ``old``."""
    lines = [_INTRODUCTION, f"| table | {' | '.join(_HEAD)} |", "|---|" + "---:|" * len(_HEAD)]
    lines += [f"| `{name}` | {' | '.join(_cells(tally))} |" for name, tally in counts.items()]
    lines.append(f"| total | {' | '.join(_cells(totals(counts)))} |")
    lines += ["", f"{mutations} mutations are recorded. Last judged {when}.", ""]
    _, found, random = old.partition(_RANDOM)
    return "\n".join(lines) + (f"\n{_RANDOM}{random}" if found else "")


def page_of_chance(verdicts: Sequence[Judged], seed: int, when: str, old: str) -> str:
    """The page with a new second part."""
    first = old.partition(_RANDOM)[0].rstrip("\n")
    lines = [
        _OF_CHANCE,
        f"Seed {seed}, {when}.",
        "",
        f"| package | {' | '.join(_FATES)} |",
        "|---|" + "---:|" * len(_FATES),
    ]
    lines += [f"| `{rate.package}` | {' | '.join(rate.cells)} |" for rate in rates(verdicts)]
    lines += ["", *_survivors(verdicts)]
    return f"{first}\n\n{_RANDOM}" + "\n".join(lines).rstrip("\n") + "\n"


def _survivors(verdicts: Iterable[Judged]) -> list[str]:
    alive = [v for v in verdicts if v.fate in {"survived", "unreached"}]
    if not alive:
        return []
    return ["Survivors:", "", *(f"- {told(verdict)}" for verdict in alive)]


def told(verdict: Judged) -> str:
    """One line about a random mutation: where, what, and its fate."""
    where = f"`{verdict.file}:{verdict.line}` {verdict.function}"
    edit = f"{verdict.operator}: `{_short(verdict.before)}` to `{_short(verdict.after)}`"
    return f"{where}, {edit} ({verdict.fate})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


@dataclass(frozen=True, slots=True)
class Rate:
    """How many random mutations of a package the tests killed."""

    package: str
    fates: tuple[str, ...]

    @property
    def percent(self) -> float:
        counting = [fate for fate in self.fates if fate not in {"equivalent", "invalid"}]
        dead = sum(fate in {"killed", "timeout"} for fate in counting)
        return 100 * dead / len(counting) if counting else 100.0

    @property
    def cells(self) -> list[str]:
        count = self.fates.count
        alive = count("survived") + count("unreached")
        numbers = [len(self.fates), count("killed"), count("timeout"), alive, count("equivalent")]
        aim = f"{AIMS[self.package]} %" if self.package in AIMS else ""
        return [*map(str, numbers), f"{self.percent:.1f} %", aim]


def rates(verdicts: Iterable[Judged]) -> list[Rate]:
    """The rates of all packages, and of all of them together."""
    known = list(verdicts)
    found = [Rate(name, tuple(v.fate for v in known if v.package == name)) for name in AIMS]
    return [*(rate for rate in found if rate.fates), Rate("total", tuple(v.fate for v in known))]


def chance_table(verdicts: Iterable[Judged]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Random mutations")
    for name in ("package", *_FATES):
        table.add_column(name, justify="left" if name == "package" else "right", no_wrap=True)
    for rate in rates(verdicts):
        table.add_row(rate.package, *rate.cells)
    return table


def as_json(counts: Mapping[str, Tally], verdicts: Iterable[Verdict]) -> dict[str, Any]:
    return {
        "tables": {name: asdict(tally) for name, tally in counts.items()},
        "verdicts": [asdict(verdict) for verdict in verdicts],
    }


def _cells(tally: Tally) -> list[str]:
    return [str(getattr(tally, name)) for name in _COLUMNS]
