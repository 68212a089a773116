"""The conformance ledger: requirement tables, departures, waivers and test results, counted.

``tests/plugins/conformance.py`` writes the results, ``tools/conformance.py`` shows the counts;
docs/conformance/README.md has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Literal

from tools.errata import errata_numbers

TABLES = Path("docs/conformance")
ERRATA = Path("docs/errata.md")
RESULTS = Path(".build/conformance.json")
WAIVERS = "waivers.tsv"
DEPARTURES = "departures.tsv"
UNBREAKABLE = "unbreakable.tsv"
#: Files beside the tables that are none.
OTHERS = (DEPARTURES, WAIVERS, UNBREAKABLE, "kills.tsv")

COLUMNS = ("id", "spec", "section", "level", "role", "kind", "summary", "ambiguity")
WAIVER_COLUMNS = ("id", "reason")
DEPARTURE_COLUMNS = ("id", "erratum", "reason")
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "FACT")

Outcome = Literal["passed", "failed", "skipped", "xfailed"]
State = Literal["covered", "departs", "open", "waived"]


class LedgerError(Exception):
    """A table, a departure, a waiver or a result file is wrong; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """The columns of a row that the ledger needs; the others are for readers."""

    table: str
    id: str
    level: str
    summary: str


@dataclass(frozen=True, slots=True)
class Departure:
    """A requirement that mqis deliberately does not follow, and the erratum that says why."""

    id: str
    erratum: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The requirements, and what is said about those that no test has to prove."""

    requirements: Mapping[str, Requirement]
    departures: Mapping[str, Departure]
    waivers: Mapping[str, str]
    #: Facts that no edit of the product can break, with the reason of each.
    unbreakable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The requirements that one test (or case of a parametrised test) claims, and its outcome.

    ``ids`` are those that it proves, ``departs`` those whose departure it proves.
    """

    ids: tuple[str, ...]
    outcome: Outcome
    interop: bool
    departs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proved:
    """The ids that tests prove: as the row says, and as its departure says."""

    covered: frozenset[str]
    departs: frozenset[str]


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


@dataclass(frozen=True, slots=True)
class Count:
    covered: int = 0
    departs: int = 0
    open: int = 0
    waived: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


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
    """All requirements by id; each ``*.tsv`` but a few is a table."""
    requirements: dict[str, Requirement] = {}
    for path in sorted(directory.glob("*.tsv")):
        if path.name in OTHERS:
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


def load_ledger(root: Path) -> Ledger:
    """The tables, departures and waivers of a project; a row is not both departed and waived."""
    requirements = load_tables(root / TABLES)
    departures = load_departures(root, requirements)
    waivers = load_waivers(root / TABLES, requirements)
    if both := sorted(departures.keys() & waivers.keys()):
        raise LedgerError(f"{WAIVERS}: {', '.join(both)} is in {DEPARTURES} too; choose one")
    return Ledger(requirements, departures, waivers, load_unbreakable(root, requirements))


def load_waivers(directory: Path, requirements: Mapping[str, Requirement]) -> dict[str, str]:
    """The reasons of waived requirements, by id."""
    rows = _reasoned(directory / WAIVERS, WAIVER_COLUMNS, requirements, "waived")
    return {row["id"]: row["reason"] for row in rows}


def load_unbreakable(root: Path, requirements: Mapping[str, Requirement]) -> dict[str, str]:
    """The facts that no edit can break, with their reasons, by id."""
    path = root / TABLES / UNBREAKABLE
    if not path.exists():
        return {}
    found = {}
    for row in _reasoned(path, WAIVER_COLUMNS, requirements, "unbreakable"):
        if (level := requirements[row["id"]].level) != "FACT":
            raise LedgerError(f"{path}: {row['id']} has level {level}; only facts may be here")
        found[row["id"]] = row["reason"]
    return found


def load_departures(root: Path, requirements: Mapping[str, Requirement]) -> dict[str, Departure]:
    """The departures by id. Each names an erratum of docs/errata.md."""
    path, page = root / TABLES / DEPARTURES, root / ERRATA
    if not path.exists():
        return {}
    known = errata_numbers(page.read_text(encoding="utf-8")) if page.exists() else set()
    departures = {}
    for row in _reasoned(path, DEPARTURE_COLUMNS, requirements, "departed from"):
        if row["erratum"] not in known:
            raise LedgerError(
                f"{path}: {row['id']} names erratum {row['erratum']!r}, "
                f"which {ERRATA} does not have"
            )
        departures[row["id"]] = Departure(row["id"], row["erratum"], row["reason"])
    return departures


def _reasoned(
    path: Path, columns: tuple[str, ...], requirements: Mapping[str, Requirement], state: str
) -> Iterator[dict[str, str]]:
    """The rows of a table about requirements: each is of a known one, once, with a reason."""
    seen = set()
    for place, row in _rows(path, columns):
        if row["id"] not in requirements:
            raise LedgerError(f"{place}: {row['id']!r} is in no table")
        if row["id"] in seen:
            raise LedgerError(f"{place}: {row['id']} is {state} twice")
        if not row["reason"].strip():
            raise LedgerError(f"{place}: {row['id']} is {state} without a reason")
        seen.add(row["id"])
        yield row


def load_results(path: Path) -> Results | None:
    """The results of the last full run; None if there are none or they cannot be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        tests = {
            nodeid: CaseResult(
                tuple(test["ids"]), test["outcome"], test["interop"], tuple(test["departs"])
            )
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


def proved(tests: Iterable[CaseResult], *, if_skipped: bool = False) -> Proved:
    """The ids that passing tests prove; with ``if_skipped`` also those of skipped tests.

    Interop tests do not count, because they need another implementation.
    """
    outcomes = {"passed", "skipped"} if if_skipped else {"passed"}
    counting = [t for t in tests if t.outcome in outcomes and not t.interop]
    return Proved(
        frozenset(id_ for t in counting for id_ in t.ids),
        frozenset(id_ for t in counting for id_ in t.departs),
    )


def state_of(id_: str, ledger: Ledger, proofs: Proved) -> State:
    """The state of a row. A departure counts as one only if a test proves it."""
    if id_ in ledger.departures:
        return "departs" if id_ in proofs.departs else "open"
    if id_ in proofs.covered:
        return "covered"
    return "waived" if id_ in ledger.waivers else "open"


def open_rows(ledger: Ledger, proofs: Proved) -> list[Requirement]:
    rows = ledger.requirements.values()
    return [row for row in rows if state_of(row.id, ledger, proofs) == "open"]


def check_waivers_needed(waivers: Mapping[str, str], covered: Iterable[str]) -> None:
    if needless := sorted(waivers.keys() & set(covered)):
        raise LedgerError(
            f"{WAIVERS}: tests prove these requirements, remove their waivers: "
            f"{', '.join(needless)}"
        )


def count(ledger: Ledger, proofs: Proved) -> Counts:
    """The counts by table and level; levels in their usual order, only those that occur."""
    counts: Counts = {}
    for level in LEVELS:
        for row in ledger.requirements.values():
            if row.level == level:
                levels = counts.setdefault(row.table, {})
                one = Count(**{state_of(row.id, ledger, proofs): 1})
                levels[level] = levels.get(level, Count()) + one
    return dict(sorted(counts.items()))


def as_json(counts: Counts) -> dict[str, dict[str, dict[str, int]]]:
    return {t: {lv: asdict(c) for lv, c in levels.items()} for t, levels in counts.items()}
