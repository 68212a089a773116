"""The README's claims match the counted numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.claims import SPECIFICATIONS, figures, wrong_claims
from tools.ledger import TABLES, CaseResult, Count, Results, load_tables

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {
    "mqsd": {"MUST": Count(covered=60, open=1), "MAY": Count(covered=9, waived=2)},
    "mqds-client": {"MUST": Count(covered=1000)},
    "mqds-server": {"MUST": Count(covered=300, open=1)},
}


def test_figures_are_of_all_rows_of_a_specification() -> None:
    assert figures(COUNTS, SPECIFICATIONS["MS-MQDS"]) == "1,300 of 1,301"
    assert figures(COUNTS, SPECIFICATIONS["MS-MQSD"]) == "69 of 72"


@pytest.mark.parametrize(
    ("readme", "wrong"),
    [
        ("| MS-MQDS | x | 1,300 of 1,301 | y |\n| MS-MQSD | x | 69 of 72 | y |\n", []),
        ("| MS-MQDS, MS-RPCE | 1,300 of 1,301 |\n| MS-MQSD | 70 of 72 |\n", ["70 of 72"]),
        ("| MS-MQDS | x |\n| MS-MQSD | 69 of 72 |\n", ["no numbers"]),
        ("| MS-MQSD | 69 of 72 |\n", ["no numbers"]),
    ],
)
def test_rows_that_say_otherwise(readme: str, wrong: list[str]) -> None:
    found = list(wrong_claims(readme, COUNTS))
    assert len(found) == len(wrong)
    assert all(text in claim for text, claim in zip(wrong, found, strict=True))


def test_every_table_of_requirements_is_of_a_specification() -> None:
    tables = {row.table for row in load_tables(ROOT / TABLES).values()}
    assert tables == {table for names in SPECIFICATIONS.values() for table in names}


@pytest.mark.parametrize(
    ("result", "lacking"),
    [
        (CaseResult(("A-1",), "skipped", interop=False), True),
        (CaseResult(("A-1",), "skipped", interop=True), False),
        (CaseResult((), "skipped", interop=False), False),
        (CaseResult(("A-1",), "passed", interop=False), False),
    ],
)
def test_skipped_tests_that_would_count(result: CaseResult, *, lacking: bool) -> None:
    assert Results(None, None, True, "3", {"a": result}).lacking is lacking
