"""The world of a mirror: rules hold, a seed is one run, and each bug is found."""

from __future__ import annotations

from collections import Counter
from statistics import median

import pytest

from tests.sim.mirror.edits import Edit
from tests.sim.mirror.mutations import BUGS
from tests.sim.mirror.runs import run_scenario, run_seed
from tests.sim.mirror.scenario import Happening, MirrorFault, MirrorScenario, MirrorStep, Round
from tests.sim.mirror.scenario import draw_mirror as draw
from tests.sim.mirror.world import FAULTS
from tools.simulation_doc import DOCUMENT, known

LISTED = {name: found for name, found in known(DOCUMENT.read_text("utf-8")).items() if name in BUGS}
#: The seeds that find the bugs, and one that restores a controller and restarts the mirror.
SEEDS = sorted({found.tried - 1 for found in LISTED.values()} | {45})


def test_rules_hold_and_faults_occur() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        result = run_seed(seed)
        assert result.violation is None, seed
        counts += result.counts
    assert [kind for kind in FAULTS if not counts[kind]] == []
    assert counts["round"] > 80
    assert counts["failed"] > 10


def test_a_seed_is_one_run() -> None:
    assert run_seed(3, keep_lines=True) == run_seed(3, keep_lines=True)
    assert run_seed(3).digest != run_seed(4).digest
    assert draw(3) == draw(3)


@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_bug_is_found(name: str) -> None:
    """The seed that the document names finds it, and breaks the rule that it names."""
    count = LISTED[name]
    assert count.seeds is not None
    found = run_seed(count.seeds - 1, name).violation
    assert found is not None
    assert found.rule == count.rule


def test_few_seeds_find_a_bug() -> None:
    assert median(count.tried for count in LISTED.values()) < 10


# --- what the first runs found in the mirror ------------------------------------------------------


def outcome(*steps: MirrorStep, dirsync: bool = False, deleted: bool = True) -> object:
    """The rule that breaks, each time in three ways to choose the objects; None if all hold."""
    for salt in range(3):
        salted = tuple(
            Happening(step.what, salt, step.heard) if isinstance(step, Happening) else step
            for step in steps
        )
        result = run_scenario(MirrorScenario(salt, dirsync, deleted, steps=salted))
        if result.violation is not None:
            return result.violation
    return None


def edits(*what: Edit) -> Happening:
    return Happening(what, 0)


def fault(what: MirrorFault) -> Happening:
    return Happening(what, 0)


@pytest.mark.parametrize("exchange", [Edit.SWAP_QUEUES, Edit.SHIFT_QUEUES, Edit.SWAP_COMPUTERS])
def test_names_that_are_exchanged_between_two_rounds(exchange: Edit) -> None:
    queues = edits(*[Edit.ADD_QUEUE] * 8)
    assert outcome(queues, Round(), edits(exchange), Round()) is None


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("dirsync", [True, False])
@pytest.mark.parametrize(
    ("lost", "again"),
    [(MirrorFault.BARE, MirrorFault.SHOWN), (MirrorFault.BLIND, MirrorFault.SIGHTED)],
)
def test_objects_that_change_while_they_cannot_be_read(
    lost: MirrorFault, again: MirrorFault, dirsync: bool, deleted: bool
) -> None:
    changed = edits(Edit.LABEL, Edit.LABEL, Edit.CHANGE_LINK, Edit.RENAME_QUEUE)
    steps = Round(), fault(lost), changed, Round(), fault(again), Round()
    assert outcome(*steps, dirsync=dirsync, deleted=deleted) is None


@pytest.mark.parametrize("right", [MirrorFault.DELETED, MirrorFault.DIRSYNC])
def test_a_right_that_goes_and_comes_back(right: MirrorFault) -> None:
    gone = edits(Edit.DELETE_QUEUE, Edit.DELETE_USER, Edit.DELETE_LINK)
    steps = Round(), fault(right), gone, Round(), fault(right), edits(Edit.DELETE_MACHINE), Round()
    assert outcome(*steps, dirsync=right is MirrorFault.DIRSYNC) is None


def test_a_name_that_becomes_free_goes_to_the_one_that_waits_for_it() -> None:
    steps = Round(), edits(Edit.ADD_TWIN), Round(), edits(Edit.DELETE_COMPUTER), Round()
    assert outcome(*steps) is None
    assert outcome(*steps, deleted=False) is None
