"""A simulated enterprise that follows the letter of one rule: the audit sees what came of it.

Part of ``make engines``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.sim.mutations import mutated
from mqis.sim.violation import Violation
from tests.pipeline.test_sim import audited, look, simulated


def test_a_rule_back_to_the_letter_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """Without tombstones what was deleted stays where the deletion was not heard (E12)."""
    with mutated("E12"), simulated(13, tmp_path) as world:
        world._suffer()
        with pytest.raises(Violation):
            world._heal()
        seen = look(world, tmp_path / "seen")
    assert seen.wrong
    found, _ = audited(spark, tmp_path / "journals", seen, tmp_path / "tables")
    assert found == seen.wrong
