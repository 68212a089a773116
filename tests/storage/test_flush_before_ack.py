"""An acknowledgement leaves the process after the flush of what it acknowledges, never before.

A killed process cannot show that, because the kernel keeps what was never flushed; a trace of
system calls can. ``tools/harness/flush.py`` says what that proves.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools.harness.flush import traced


@pytest.fixture(scope="module", autouse=True)
def _can_trace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (Debian package strace)")
    probe = subprocess.run(["strace", "-qq", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"strace (Debian package strace) may not trace here: {probe.stderr.strip()}")


def test_every_acknowledgement_follows_the_flush_of_its_writes(tmp_path: Path) -> None:
    report = traced(tmp_path, groups=5)

    assert report.violations == []
    assert report.log.flushes >= 5


def test_also_where_the_log_is_folded_into_the_file(tmp_path: Path) -> None:
    """A thousand pages of log make a commit that also checkpoints, and the log start again."""
    report = traced(tmp_path, groups=60, writers=16)

    assert report.violations == []
    assert report.store.flushes >= 3, "at creation, in a checkpoint, at the end"


def test_a_store_that_does_not_flush_is_found(tmp_path: Path) -> None:
    report = traced(tmp_path, "--synchronous-off", groups=5)

    assert len(report.violations) >= report.acknowledgements
    assert "store.db-wal are not flushed" in report.violations[0]


def test_an_acknowledgement_before_the_commit_is_found(tmp_path: Path) -> None:
    report = traced(tmp_path, "--broken-early-ack", groups=5)

    assert len(report.violations) == report.acknowledgements
    assert "before anything was written" in report.violations[0]
