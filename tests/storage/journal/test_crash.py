"""kill -9 between commit, copy, flush and trim; and the search finds a loss where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tools.harness.journal import JournalCrasher

QUIET = Console(quiet=True)


@pytest.mark.slow
def test_every_committed_record_is_there_once(tmp_path: Path) -> None:
    crasher = JournalCrasher(tmp_path, seed=30)

    assert crasher.run(8, QUIET) == []
    assert crasher.rounds == 8
    assert crasher.damaged >= 2
    assert crasher.acknowledged >= 100


@pytest.mark.slow
def test_trimming_before_copying_is_found(tmp_path: Path) -> None:
    crasher = JournalCrasher(tmp_path, seed=31, worker_options=["--broken-early-trim"])

    faults = crasher.run(10, QUIET)

    assert any(fault.startswith("lost: ") for fault in faults), faults
