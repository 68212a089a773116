"""docs/tutorial.md, from its first command to its last, in one shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.documents import blocks, run, text_of
from tests.waiting import DEADLINE_S


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_everything_in_it_runs(tmp_path: Path) -> None:
    script = "\n".join(blocks(text_of("tutorial.md"), "sh"))
    ended = "trap 'mqis down >/dev/null 2>&1 || true' EXIT\n"
    shown = run(ended + script, tmp_path, timeout_s=3 * DEADLINE_S).stdout
    assert "created queue C14\\testq (" in shown
    assert "change forwarded" in shown
    assert "cost 50 instead of 30 (+20)" in shown
