"""The judge of tools/replication_chaos.py finds lost changes and replicas that differ."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tools.chaos_enterprise import Enterprise
from tools.replication_chaos import Ledger, wrong


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
