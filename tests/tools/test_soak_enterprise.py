"""A slice of tools/soak_enterprise.py: load and kills on what ``mqis up`` runs; and its judges."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from rich.console import Console

from mqis.services.enterprise.nodes import NodePlace, Nodes
from tools import soak_enterprise
from tools.replication_chaos import Ledger
from tools.soak_enterprise import Memory, lost, memory_faults, resident, soak


@pytest.mark.slow
def test_some_seconds_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_enterprise, "KILL_EVERY_S", (2.0, 3.0))
    outcome = asyncio.run(soak(tmp_path, 8.0, seed=9, show=Console(quiet=True)))
    assert outcome.faults == []
    ledger, done = outcome.load.ledger, outcome.load.done
    assert ledger.kills > 0
    assert outcome.restarts > 0
    assert ledger.acknowledged == done["create"] + done["update"] + done["delete"] > 50
    assert all(outcome.load.through[node.name] for node in outcome.load.nodes)
    assert outcome.memory.range_mb("ams-dir1")[0] > 10


def test_what_was_acknowledged_and_is_not_there_is_found() -> None:
    ledger = Ledger()
    ledger.done("C14\\kept", None)
    ledger.done("C14\\lost", "7")
    ledger.maybe("C14\\open", "8")
    assert lost(ledger, {}) == ["C14\\lost is None, but was acknowledged as ['7']"]


def lives(step: int) -> Memory:
    """Two lives of a server, each growing by ``step`` bytes a second once it is warm."""
    memory = Memory()
    for pid, size in ((1, 50_000_000), (2, 80_000_000)):
        seconds = range(0, 200, 2)
        memory.lives.setdefault("a", {})[pid] = [(float(s), size + s * step) for s in seconds]
    return memory


def test_the_slope_is_that_within_lives() -> None:
    assert lives(0).slope("a") == 0.0
    assert lives(1000).slope("a") == pytest.approx(1000.0)
    assert Memory().slope("a") is None
    assert lives(0).longest_s("a") == 198.0


def test_memory_that_grows_is_a_fault() -> None:
    place = NodePlace("a", "psc", "Delft", "127.0.0.1", 1, 2, 3, 4, 5, *("",) * 5)
    nodes = Nodes("Acme", (place,))
    assert memory_faults(lives(0), nodes) == []
    assert memory_faults(lives(100_000), nodes) == ["a: its memory grows by 360 MB an hour"]


def test_this_process_has_memory() -> None:
    size = resident(os.getpid())
    assert size is not None
    assert size > 10_000_000
