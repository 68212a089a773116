"""An outage: a replica that lacks many objects, another whose export is empty, and other faults.

Part of ``make engines``; ``make proof OUTAGE=100000`` does it in full size.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from mqis.lab.generate import GeneratePlan
from tools.pipeline_proof import prove

PLAN = GeneratePlan(
    sites=6, machines=12, queues=30, changes=60, seed=1, faults=1, outage=300, segments=3
)


def test_each_object_that_is_missing_is_told_with_its_cause(
    spark: SparkSession, tmp_path: Path
) -> None:
    proof = prove(PLAN, tmp_path, "1g", Console(quiet=True))
    made = json.loads((tmp_path / "made" / "manifest.json").read_text("ascii"))
    missing = [fault for fault in made["faults"] if fault["difference"] == "missing"]
    assert len([fault for fault in missing if fault["cause"] == "never_sent"]) >= PLAN.outage
    assert len([fault for fault in missing if fault["cause"] == "corrupted"]) >= PLAN.outage
    assert proof.judged
    assert [one for one in proof.judged if one.missed or one.surplus] == []
