"""The world of routed queues: rules hold, a seed is one run, and each bug is found."""

from __future__ import annotations

import pytest

from mqis.sim.mutations import MUTATIONS
from mqis.sim.queues.queue_scenario import (
    LASTING_S,
    Halt,
    PostMessages,
    QueueScenario,
    QueueStep,
    RoutedMachine,
    draw_queues,
)
from mqis.sim.runner import Options, run, run_seed
from mqis.sim.worlds import WorldName
from tools.simulation_doc import DOCUMENT, known

#: Two gates on either side.
DOUBLE = (
    RoutedMachine("gate0a", 0, True),
    RoutedMachine("gate0b", 0, True),
    RoutedMachine("host0", 0, False),
    RoutedMachine("gate1a", 1, True),
    RoutedMachine("gate1b", 1, True),
    RoutedMachine("host1", 1, False),
)
HOST0, HOST1 = 2, 5


def routed(*steps: QueueStep) -> QueueScenario:
    return QueueScenario(1, DOUBLE, ((0, 1, 1),), window=2, steps=steps, fault_s=600.0)


def test_rules_hold_and_faults_occur() -> None:
    counts: dict[str, int] = {}
    for seed in range(8):
        result = run_seed(seed, Options(world=WorldName.QUEUES))
        assert result.violation is None, seed
        for kind, number in result.counts.items():
            counts[kind] = counts.get(kind, 0) + number
    kinds = {"fault halt", "fault cut", "fault isolate", "fault break", "stranded", "duplicate"}
    assert kinds <= counts.keys()
    assert counts["arrived"] > 300


def test_a_seed_is_one_run() -> None:
    options = Options(world=WorldName.QUEUES, keep_lines=True)
    assert run_seed(3, options) == run_seed(3, options)
    assert run_seed(3, options).digest != run_seed(4, options).digest
    assert draw_queues(3) == draw_queues(3)


def test_messages_take_a_detour_when_a_gate_stops() -> None:
    """Those that the gate has acknowledged are lost with it, all others arrive in order."""
    scenario = routed(PostMessages(10.0, HOST0, HOST1, 9, 3, LASTING_S), Halt(10.1, 0, 300.0))
    result = run(scenario, Options(keep_lines=True))
    assert result.violation is None
    arrived = [line.split()[-1] for line in result.lines if " arrived " in line]
    numbers = [int(text.rpartition("\\")[2]) for text in arrived]
    assert len(numbers) >= 5
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("name", sorted(name for name in MUTATIONS if name.startswith("Q")))
def test_a_bug_is_found(name: str) -> None:
    """The seed that the document names finds it, and breaks the rule that it names."""
    count = known(DOCUMENT.read_text("utf-8"))[name]
    assert count.seeds is not None
    assert run_seed(count.seeds - 1, Options(world=WorldName.QUEUES)).violation is None
    found = run_seed(count.seeds - 1, Options(mutation=name)).violation
    assert found is not None
    assert found.rule == count.rule
