"""docs/security.md: every test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_every_claim_names_a_test_that_is_there() -> None:
    assert len(NAMED) > 40
    missing = [
        f"{file}::{name}"
        for file, name in NAMED
        if not (ROOT / file).exists() or name not in names_in(ROOT / file)
    ]
    assert missing == []


def test_every_row_of_a_claim_has_a_test() -> None:
    """A table whose last column is called test has one in every row."""
    for table in re.findall(r"^\| .* test \|\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.M):
        for row in table.splitlines():
            assert "`tests/" in row.rsplit("|", 2)[1], row
