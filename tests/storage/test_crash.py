"""Acknowledged writes survive kill -9; and the search for lost ones finds them where there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tools.harness.store import Crasher, Kill

ROOT = Path(__file__).resolve().parents[2]
QUIET = Console(quiet=True)


@pytest.mark.slow
def test_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    summary = Crasher(tmp_path, seed=20).run(10, QUIET)

    assert summary.faults == []
    assert summary.rounds == 10
    assert {Kill.of_round(number) for number in range(1, 11)} == set(Kill)
    assert summary.killed_busy >= 5
    assert summary.acknowledged >= 100


@pytest.mark.slow
def test_acknowledging_before_the_commit_is_found(tmp_path: Path) -> None:
    crasher = Crasher(tmp_path, seed=21, worker_options=["--broken-early-ack"])

    summary = crasher.run(20, QUIET)

    assert any(fault.startswith("lost: ") for fault in summary.faults), summary


def test_a_worker_that_fails_is_reported(tmp_path: Path) -> None:
    """Not taken for a kill that came early."""
    (tmp_path / "store.db").write_bytes(b"not a database, but long enough to look at" * 100)

    summary = Crasher(tmp_path, seed=22).run(1, QUIET)

    (fault,) = summary.faults
    assert "ended by itself" in fault
    assert "is not an mqis store" in fault


@pytest.mark.slow
def test_the_command_tells_its_seed_and_fails_on_a_loss(tmp_path: Path) -> None:
    good = _command(tmp_path, "--rounds=1", "--seed=23")
    broken = _command(tmp_path, "--rounds=20", "--seed=24", "--worker-option=--broken-early-ack")

    assert good.returncode == 0, good.stdout
    assert "seed 23" in good.stdout
    assert "1 rounds, " in good.stdout
    assert broken.returncode == 1, broken.stdout
    assert "lost: " in broken.stdout
    assert "seed 24; the files are in " in broken.stdout


def _command(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.harness", "store", f"--directory={directory}", *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
