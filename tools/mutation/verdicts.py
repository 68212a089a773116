"""The verdicts on mutants, and their counts by table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tools.ledger import Ledger
from tools.mutation.records import Mutation

Fate = Literal["killed", "timeout", "survived", "invalid"]
#: The worse comes later: a row is as bad as the worst of its mutations.
_FATES: tuple[Fate, ...] = ("killed", "timeout", "invalid", "survived")
BINDING = frozenset({"MUST", "MUST NOT"})


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


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of one table by the fate of their mutations."""

    rows: int = 0
    killed: int = 0
    survived: int = 0
    invalid: int = 0
    unwritten: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.rows + other.rows,
            self.killed + other.killed,
            self.survived + other.survived,
            self.invalid + other.invalid,
            self.unwritten + other.unwritten,
        )


def tally(ledger: Ledger, verdicts: Iterable[Verdict]) -> dict[str, Tally]:
    """Counts the MUST and MUST NOT rows of each table, without waived ones and departures."""
    fates = worst(verdicts)
    left_out = ledger.waivers.keys() | ledger.departures.keys()
    counts: dict[str, Tally] = {}
    for row in ledger.requirements.values():
        if row.level in BINDING and row.id not in left_out:
            counts[row.table] = counts.get(row.table, Tally()) + _one(fates.get(row.id))
    return counts


def worst(verdicts: Iterable[Verdict]) -> dict[str, Fate]:
    """The fate of each row: that of its worst mutation."""
    fates: dict[str, Fate] = {}
    for verdict in verdicts:
        known = fates.get(verdict.row, verdict.fate)
        fates[verdict.row] = max(known, verdict.fate, key=_FATES.index)
    return fates


def _one(fate: Fate | None) -> Tally:
    if fate is None:
        return Tally(rows=1, unwritten=1)
    if fate in {"killed", "timeout"}:
        return Tally(rows=1, killed=1)
    return Tally(rows=1, survived=1) if fate == "survived" else Tally(rows=1, invalid=1)
