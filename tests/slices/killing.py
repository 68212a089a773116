"""Slices of ``make chaos`` and ``make soak``: servers under load that are killed and cut off."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from tools import soak_enterprise
from tools.directory_soak import MIX, soak_and_kill
from tools.directory_soak import soak as soak_directory
from tools.replication_chaos import chaos
from tools.soak_enterprise import soak

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
    outcome = asyncio.run(chaos(tmp_path / "run", 100_000, 9, seed=20, signing="require"))
    assert outcome.faults == []
    ledger = outcome.ledger
    assert ledger.acknowledged > 0  # how many depends on the machine
    assert ledger.kills > 0
    assert ledger.cuts > 0


def test_a_supervised_enterprise_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak_enterprise, "KILL_EVERY_S", (2.0, 3.0))
    outcome = asyncio.run(soak(tmp_path, 8.0, seed=9, show=Console(quiet=True)))
    assert outcome.faults == []
    ledger, done = outcome.load.ledger, outcome.load.done
    assert ledger.kills > 0
    assert outcome.restarts > 0
    # The number depends on the machine: a slow one does few changes in that time.
    assert ledger.acknowledged == done["create"] + done["update"] + done["delete"] > 0
    through = [node.name for node in outcome.load.nodes if outcome.load.through[node.name]]
    assert len(through) > 1
    assert outcome.memory.range_mb("ams-dir1")[0] > 10
