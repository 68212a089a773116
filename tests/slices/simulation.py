"""A slice of ``mqis sim``: some seeds hold, and together meet every kind of fault."""

from __future__ import annotations

from collections import Counter

from mqis.sim.coverage import missing
from mqis.sim.runner import run_many

#: A slice of what the command runs in thousands. Seed 47 deletes a site and brings it back.
SEEDS = (*range(24), 47)


def test_many_seeds_hold_and_meet_every_fault() -> None:
    counts: Counter[str] = Counter()
    for result in run_many(SEEDS, jobs=2):
        assert result.violation is None, f"mqis sim --seed {result.seed}: {result.violation}"
        counts.update(result.counts)
    assert missing(counts) == []
