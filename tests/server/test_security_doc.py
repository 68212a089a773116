"""docs/security.md: every test that it names can be run as it is written there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", TEXT)


def test_every_test_that_is_named_can_be_run_as_it_is_written() -> None:
    """pytest itself finds each of them; an identifier that names nothing is an error to it."""
    assert len(NAMED) > 100
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *dict.fromkeys(NAMED)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    collected = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert set(NAMED) <= collected


def test_nothing_else_looks_like_a_test() -> None:
    """A name with a slip in it would be passed over."""
    assert len(re.findall(r"\btests/[\w/]+\.py", TEXT)) == len(NAMED)


def test_every_row_of_a_claim_has_a_test() -> None:
    """A table whose last column is called test has one in every row."""
    tables = re.findall(r"^\| .* test \|\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.M)
    assert len(tables) > 5
    for table in tables:
        for row in table.splitlines():
            assert "`tests/" in row.rsplit("|", 2)[1], row
