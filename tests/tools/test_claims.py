"""The README's claims match the counted numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.claims import SPECIFICATIONS, figures, wrong_claims
from tools.ledger import TABLES, Count, load_tables

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {
    "mqsd": {"MUST": Count(57, departs=3, open=1), "MAY": Count(covered=9, waived=2)},
    "mqds-client": {"MUST": Count(covered=1000)},
    "mqds-server": {"MUST": Count(covered=300, open=1)},
}


def test_figures_are_of_all_rows_of_a_specification() -> None:
    assert figures(COUNTS, SPECIFICATIONS["MS-MQDS"]) == Count(1300, 0, 1, 0)
    assert figures(COUNTS, SPECIFICATIONS["MS-MQSD"]) == Count(66, 3, 1, 2)


@pytest.mark.parametrize(
    ("readme", "wrong"),
    [
        ("| MS-MQDS | x | 1,300 | 0 | 1 | 0 | y |\n| MS-MQSD | x | 66 | 3 | 1 | 2 | y |\n", []),
        (
            "| MS-MQDS, MS-RPCE | 1,300 | 0 | 1 | 0 |\n| MS-MQSD | 67 | 2 | 1 | 2 |\n",
            ["has 67 covered, 2 departs, 1 open, 2 waived, but the ledger has 66 covered, 3"],
        ),
        ("| MS-MQDS | x |\n| MS-MQSD | 66 | 3 | 1 | 2 |\n", ["no numbers"]),
        ("| MS-MQSD | 66 | 3 | 1 | 2 |\n", ["no numbers"]),
        ("| MS-MQDS | 1300 | 1 |\n| MS-MQSD | 66 | 3 | 1 | 2 |\n", ["no numbers"]),
    ],
)
def test_rows_that_say_otherwise(readme: str, wrong: list[str]) -> None:
    found = list(wrong_claims(readme, COUNTS))
    assert len(found) == len(wrong)
    assert all(text in claim for text, claim in zip(wrong, found, strict=True))


@pytest.mark.parametrize(
    ("numbers", "right"),
    [
        ("66 | 3 | 1 | 2", True),
        ("67 | 3 | 0 | 2", True),
        ("68 | 3 | -1 | 2", False),
        ("67 | 3 | 1 | 2", False),
        ("65 | 3 | 2 | 2", False),
    ],
)
def test_skipped_tests_leave_room_for_their_rows_alone(numbers: str, *, right: bool) -> None:
    counts = {"mqsd": COUNTS["mqsd"]}
    possible = {"mqsd": {"MUST": Count(58, 3), "MAY": Count(covered=9, waived=2)}}
    found = list(wrong_claims(f"| MS-MQSD | {numbers} |\n", counts, possible))
    assert (not found) is right


def test_every_table_of_requirements_is_of_a_specification() -> None:
    tables = {row.table for row in load_tables(ROOT / TABLES).values()}
    assert tables == {table for names in SPECIFICATIONS.values() for table in names}
