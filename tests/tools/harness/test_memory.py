"""The judge of the scenario ``soak`` for memory that grows."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from mqis.config.nodes import NodePlace, Nodes
from tools.harness.memory import FULL, Memory, Sample, memory_faults
from tools.harness.processes import resident


def lives(step: int, rate: int = 1000) -> Memory:
    """Two lives, each growing by ``step`` bytes a second, and wildly while caches fill."""
    memory = Memory()
    for pid, size in ((1, 50_000_000), (2, 80_000_000)):
        samples = [Sample(s, size + s * step, s * rate) for s in range(0, 200, 2)]
        filling = [
            replace(sample, size=int(sample.changes) * 4000)
            for sample in samples
            if sample.changes <= FULL
        ]
        memory.lives.setdefault("a", {})[pid] = filling + samples[len(filling) :]
    return memory


def test_the_slope_is_that_of_full_caches() -> None:
    assert lives(0).slope("a") == 0.0
    assert lives(1000).slope("a") == pytest.approx(1000.0)
    assert lives(1000, rate=10).slope("a") is None
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
