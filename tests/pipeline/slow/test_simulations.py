"""Simulated enterprises that healed, and that follow the letter of one rule: the audit agrees.

Part of ``make engines``; the one that is stopped half-way is part of ``make slices``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.tables import TableDirectory
from mqis.sim.complete_replicas import CompletenessCheck
from mqis.sim.equal_digests import DigestCheck
from mqis.sim.mutations import mutated
from mqis.sim.run_trace import Violation
from mqis.wire.errors import MqisError
from tests.pipeline.slow.test_simulated import Run, audited, check_rebuilt, look, run, simulated

__all__ = ["run"]


def test_a_healed_seed_differs_in_nothing(spark: SparkSession, run: Run, tmp_path: Path) -> None:
    assert not run.end.wrong
    assert audited(spark, run.retained, run.end, tmp_path) == (set(), set())
    tables = TableDirectory(spark, tmp_path)
    assert check_rebuilt(tables, run.end).snapshots
    with pytest.raises(MqisError, match="neither reaches back"):
        rebuild(tables, tmp_path / "nothing.jsonl", at_time=run.begin)
    assert not (tmp_path / "nothing.jsonl").exists()


def test_a_rule_back_to_the_letter_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without tombstones what was deleted stays where the deletion was not heard (E12).

    The simulation's own checks of every step are off: they would end it at the first deletion,
    before its servers had the time to agree, and the audit is about what they never agree on.
    """
    monkeypatch.setattr(CompletenessCheck, "check", lambda *_: None)
    monkeypatch.setattr(DigestCheck, "committed", lambda *_: None)
    with mutated("E12"), simulated(13, tmp_path) as world:
        world._run_fault_phase()
        with pytest.raises(Violation, match="liveness: after all faults"):
            world._run_healing_phase()
        seen = look(world, tmp_path / "seen")
    assert seen.wrong
    found, _ = audited(spark, tmp_path / "journals", seen, tmp_path / "tables")
    assert found == seen.wrong
