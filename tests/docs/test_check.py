"""The table of docs/check.md is complete."""

from __future__ import annotations

from mqis.protocol.hygiene.checks import Check
from tests.docs.documents import text_of

TEXT = text_of("check.md")


def test_every_check_is_in_the_table() -> None:
    listed = [line.split("`")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(check.label for check in Check)
