"""A slice of tools/replication_chaos.py: real servers, killed and cut off, come out equal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tools.chaos_enterprise import Enterprise
from tools.replication_chaos import Ledger, chaos, wrong


@pytest.mark.slow
def test_some_seconds_of_trouble(tmp_path: Path) -> None:
    outcome = asyncio.run(chaos(tmp_path / "run", 100_000, 9, seed=20, signing="require"))
    assert outcome.faults == []
    ledger = outcome.ledger
    assert ledger.acknowledged > 0  # how many depends on the machine
    assert ledger.kills > 0
    assert ledger.cuts > 0


def test_a_lost_change_and_a_difference_are_found(tmp_path: Path) -> None:
    """The judge itself: stores that nobody has served yet differ, and lack what was promised."""

    async def run() -> None:
        enterprise = await Enterprise.build(tmp_path / "run", "none")
        try:
            assert len(enterprise.differences()) == 4
            ledger = Ledger()
            ledger.done("ams-dir1\\q", "label")
            ledger.maybe("ams-dir1\\r", "label")
            found = wrong(ledger, enterprise.servers["ams-dir1"])
            assert found == [
                "ams-dir1\\q is None, but was acknowledged as ['label']",
            ]
        finally:
            await enterprise.close()

    asyncio.run(run())
