"""Tables of the documents are read at a glance: a longer row is a paragraph in a box."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs.documents import ROOT

#: Characters of a row that a reader sees: of a link its text.
LONGEST = 200
#: Rows that are still longer, by page: lists of names, commands and results of others for the most
#: part. A number may only become smaller.
ALLOWED = {
    "README.md": 3,
    "docs/client.md": 1,
    "docs/diff.md": 1,
    "docs/estate.md": 2,
    "docs/glossary.md": 1,
    "docs/interop.md": 4,
    "docs/metrics.md": 3,
    "docs/pipeline.md": 3,
    "docs/server.md": 1,
    "docs/upgrading.md": 3,
}
#: Pages whose rows are records and no prose: the files of a section, the tests of a claim, a
#: departure from a text.
LISTS = {
    "docs/protocols.md": "the files and tests of each section, written by tools/protocols_doc.py",
    "docs/security.md": "each claim with the tests that perform the attack, in full",
    "docs/errata.md": "what the text says beside what mqis does; tools/errata.py reads the rows",
}


def long_rows(text: str) -> int:
    outside = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    rows = re.findall(r"^\|.*$", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", outside), re.M)
    return sum(len(row) > LONGEST for row in rows)


def test_rows_are_short() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    found = Counter(
        {page.relative_to(ROOT).as_posix(): long_rows(page.read_text("utf-8")) for page in pages}
    )
    for name in LISTS:
        assert found.pop(name) > 0, f"{name} needs no exception any more"
    assert {name: number for name, number in found.items() if number} == ALLOWED


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ("| " + "x" * 195 + " |", 0),
        ("| " + "x" * 197 + " |", 1),
        ("| [x](" + "y" * 300 + ") |", 0),
        ("```\n| " + "x" * 300 + " |\n```", 0),
    ],
)
def test_what_counts_as_long(row: str, number: int) -> None:
    assert long_rows(row + "\n") == number
