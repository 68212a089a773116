"""Slices of ``make chaos`` and ``make soak``: servers under load that are killed and cut off."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.console import Console

from tools.harness.directory import MIX, soak_and_kill
from tools.harness.directory import soak as soak_directory
from tools.harness.enterprise import Course, chaos_course, trouble

SEED = 4


def test_forty_clients(tmp_path: Path) -> None:
    report, faults = asyncio.run(soak_directory(tmp_path / "soak.db", 40, 3.0, SEED))
    assert faults == []
    assert set(report.times) == set(MIX)
    assert report.operations > 200


def test_killed_under_load(tmp_path: Path) -> None:
    report, faults = asyncio.run(soak_and_kill(tmp_path / "soak.db", 40, 1.5, SEED))
    assert faults == []
    assert report.operations > 50


def test_a_replicated_enterprise_in_trouble(tmp_path: Path) -> None:
    course = chaos_course(changes=100_000, seconds=9)
    outcome = asyncio.run(trouble(tmp_path, course, 20, Console(quiet=True)))
    assert outcome.faults == []
    ledger = outcome.load.ledger
    assert ledger.acknowledged > 0  # how many depends on the machine
    assert ledger.kills > 0
    assert ledger.cuts > 0


def test_a_supervised_enterprise_under_load(tmp_path: Path) -> None:
    course = Course(8.0, kill_every_s=(2.0, 3.0))
    outcome = asyncio.run(trouble(tmp_path, course, 9, Console(quiet=True)))
    assert outcome.faults == []
    ledger, done = outcome.load.ledger, outcome.load.done
    assert ledger.kills > 0
    assert outcome.restarts > 0
    # The number depends on the machine: a slow one does few changes in that time.
    assert ledger.acknowledged == done["create"] + done["change"] + done["delete"] > 0
