"""A slice of ``make stranger``: what does not depend on the speed of the machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tools.stranger.__main__ import REFUSALS, besiege
from tools.stranger.attacks import DISCOVERY, KINDS, MONITORING, QUEUE

SEED = 5


def test_an_administrator_beside_strangers(tmp_path: Path) -> None:
    outcome = asyncio.run(besiege(tmp_path, 20.0, SEED))
    # No restart, the bound of the memory, every read answered, every refusal counted.
    assert outcome.faults() == []
    assert all(outcome.tally.taken[kind] > 0 for kind in KINDS)
    assert len(outcome.loaded.read_ms) > 0
    assert len(outcome.loaded.logon_ms) > 1
    # Strangers were refused, else it shows nothing.
    assert list(REFUSALS) == ["RPC", QUEUE, DISCOVERY, MONITORING]
    assert all(outcome.counted_at(port) > 0 for port in REFUSALS)
    assert outcome.seen("RPC") > 0
