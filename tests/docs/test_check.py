"""The examples of docs/check.md run as they stand, and its tables are complete."""

from __future__ import annotations

from pathlib import Path

from mqis.protocol.hygiene.checks import Check
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("check.md")


def test_the_examples_print_what_the_document_shows(tmp_path: Path) -> None:
    printed = run("".join(blocks(TEXT, "sh")), tmp_path).stdout.splitlines()
    for block in blocks(TEXT, "text"):
        for line in block.splitlines():
            assert line in printed


def test_every_check_is_in_the_table() -> None:
    listed = [line.split("`")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(check.label for check in Check)
