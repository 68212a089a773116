"""The verdicts on mutants, the mutations that a row needs, and counts by table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tools.ledger import Ledger, Requirement
from tools.mutation.records import Mutation

Fate = Literal["killed", "timeout", "survived", "invalid"]
#: Different mutations of which the tests of a row must notice each, by the row's level.
NEEDED = {"MUST": 2, "MUST NOT": 2, "FACT": 1}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fate of one mutation at the tests of one row, and the test that decided it."""

    mutation: str
    row: str
    fate: Fate
    test: str = ""
    detail: str = ""

    @property
    def dead(self) -> bool:
        return self.fate in {"killed", "timeout"}


def verdicts_for(mutation: Mutation, fate: Fate, detail: str) -> list[Verdict]:
    """The same verdict for each row of the mutation."""
    return [Verdict(mutation.name, row, fate, detail=detail) for row in mutation.rows]


def needed(row: Requirement, ledger: Ledger) -> int:
    """The number of killed mutations without which the row is open."""
    return 0 if row.id in ledger.unbreakable else NEEDED.get(row.level, 0)


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of one table that need mutations, by how many of them were killed."""

    rows: int = 0
    proved: int = 0
    partly: int = 0
    unproved: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.rows + other.rows,
            self.proved + other.proved,
            self.partly + other.partly,
            self.unproved + other.unproved,
        )


def tally(ledger: Ledger, kills: Mapping[str, int]) -> dict[str, Tally]:
    """Counts the rows of each table, without waived ones and departures."""
    left_out = ledger.waivers.keys() | ledger.departures.keys()
    counts: dict[str, Tally] = {}
    for row in ledger.requirements.values():
        if row.id not in left_out and (wanted := needed(row, ledger)):
            one = _one(wanted, kills.get(row.id, 0))
            counts[row.table] = counts.get(row.table, Tally()) + one
    return counts


def _one(wanted: int, killed: int) -> Tally:
    if killed >= wanted:
        return Tally(rows=1, proved=1)
    return Tally(rows=1, partly=1) if killed else Tally(rows=1, unproved=1)
