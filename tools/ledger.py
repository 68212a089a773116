"""The conformance ledger: requirement tables, waivers and test results, loaded and counted.

``tests/plugins/conformance.py`` writes the results, ``tools/conformance.py`` shows the counts;
docs/conformance/README.md has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

TABLES = Path("docs/conformance")
RESULTS = Path(".build/conformance.json")
WAIVERS = "waivers.tsv"

COLUMNS = ("id", "spec", "section", "level", "role", "kind", "summary", "ambiguity")
WAIVER_COLUMNS = ("id", "reason")
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "FACT")

Outcome = Literal["passed", "failed", "skipped"]


class LedgerError(Exception):
    """A table, a waiver or a result file is wrong; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """The columns of a row that the ledger needs; the others are for readers."""

    table: str
    id: str
    level: str
    summary: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The requirements that one test (or case of a parametrised test) claims, and its outcome."""

    ids: tuple[str, ...]
    outcome: Outcome
    interop: bool


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one full run of the tests; ``commit`` and ``dirty`` identify the tree."""

    commit: str | None
    dirty: str | None
    full: bool
    python: str
    tests: Mapping[str, CaseResult]

    @property
    def failed(self) -> list[str]:
        return [nodeid for nodeid, test in self.tests.items() if test.outcome == "failed"]

    @property
    def lacking(self) -> bool:
        """True if tests that count were skipped, because a program or a right was missing."""
        return any(t.ids and not t.interop and t.outcome == "skipped" for t in self.tests.values())


@dataclass(frozen=True, slots=True)
class Count:
    covered: int = 0
    open: int = 0
    waived: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.covered + other.covered, self.open + other.open, self.waived + other.waived
        )


Counts = dict[str, dict[str, Count]]


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a table, each with its file and line. A tab always separates; no quoting."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or tuple(lines[0].split("\t")) != columns:
        raise LedgerError(f"{path}:1: the header is not {', '.join(columns)}")
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise LedgerError(f"{path}:{number}: {len(cells)} cells, {len(columns)} expected")
        yield f"{path}:{number}", dict(zip(columns, cells, strict=True))


def load_tables(directory: Path) -> dict[str, Requirement]:
    """All requirements by id; each ``*.tsv`` except the waivers is a table."""
    requirements: dict[str, Requirement] = {}
    for path in sorted(directory.glob("*.tsv")):
        if path.name == WAIVERS:
            continue
        for place, row in _rows(path, COLUMNS):
            if not row["id"] or not row["summary"]:
                raise LedgerError(f"{place}: id or summary is empty")
            if row["level"] not in LEVELS:
                raise LedgerError(f"{place}: {row['level']!r} is not one of {', '.join(LEVELS)}")
            if row["id"] in requirements:
                raise LedgerError(f"{place}: {row['id']} occurs twice")
            requirements[row["id"]] = Requirement(
                path.stem, row["id"], row["level"], row["summary"]
            )
    if not requirements:
        raise LedgerError(f"{directory}: no requirement tables")
    return requirements


def load_waivers(directory: Path, requirements: Mapping[str, Requirement]) -> dict[str, str]:
    """The reasons of waived requirements, by id."""
    waivers: dict[str, str] = {}
    for place, row in _rows(directory / WAIVERS, WAIVER_COLUMNS):
        if row["id"] not in requirements:
            raise LedgerError(f"{place}: {row['id']!r} is in no table")
        if row["id"] in waivers:
            raise LedgerError(f"{place}: {row['id']} is waived twice")
        if not row["reason"].strip():
            raise LedgerError(f"{place}: {row['id']} is waived without a reason")
        waivers[row["id"]] = row["reason"]
    return waivers


def load_results(path: Path) -> Results | None:
    """The results of the last full run; None if there are none or they cannot be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        tests = {
            nodeid: CaseResult(tuple(test["ids"]), test["outcome"], test["interop"])
            for nodeid, test in raw["tests"].items()
        }
        return Results(raw["commit"], raw["dirty"], raw["full"], raw["python"], tests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def results_of(root: Path, part: str) -> Path:
    """The file with the results of one part of the tests."""
    return (root / RESULTS).with_suffix(f".{part}.json")


def save_results(path: Path, results: Results) -> None:
    """Writes the results atomically: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(results), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def covered_ids(tests: Iterable[CaseResult]) -> set[str]:
    """The ids that passing tests prove; interop tests do not count, as they may be skipped."""
    return {id_ for t in tests if t.outcome == "passed" and not t.interop for id_ in t.ids}


def open_rows(
    requirements: Mapping[str, Requirement], covered: set[str], waivers: Mapping[str, str]
) -> list[Requirement]:
    return [r for r in requirements.values() if r.id not in covered and r.id not in waivers]


def check_waivers_needed(waivers: Mapping[str, str], covered: set[str]) -> None:
    if needless := sorted(covered & waivers.keys()):
        raise LedgerError(
            f"{WAIVERS}: tests prove these requirements, remove their waivers: "
            f"{', '.join(needless)}"
        )


def count(
    requirements: Mapping[str, Requirement], covered: set[str], waivers: Mapping[str, str]
) -> Counts:
    """The counts by table and level; levels in their usual order, only those that occur."""
    counts: Counts = {}
    for level in LEVELS:
        for row in requirements.values():
            if row.level == level:
                levels = counts.setdefault(row.table, {})
                levels[level] = levels.get(level, Count()) + _one(row, covered, waivers)
    return dict(sorted(counts.items()))


def _one(row: Requirement, covered: set[str], waivers: Mapping[str, str]) -> Count:
    if row.id in covered:
        return Count(covered=1)
    return Count(waived=1) if row.id in waivers else Count(open=1)


def as_json(counts: Counts) -> dict[str, dict[str, dict[str, int]]]:
    return {t: {lv: asdict(c) for lv, c in levels.items()} for t, levels in counts.items()}
