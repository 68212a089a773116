"""Whole runs: rules hold, a seed is one run, and the rules of the text break something."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.replication.server_identity import Role
from mqis.sim.administrator import SimAdministrator
from mqis.sim.mutations import MUTATIONS, mutated
from mqis.sim.runner import Options, minimised, run, run_seed
from mqis.sim.scenario import MAX_SERVERS, Scenario, Weather, draw, enterprise
from mqis.sim.steps import Change, Crash, CrashPoint, Join, Operate, Restore, Step
from mqis.storage.journal.journal_reader import Segment
from tools.simulation_doc import DOCUMENT, known


def test_an_enterprise_without_faults_agrees() -> None:
    result = run(Scenario(1, enterprise((1, 0, 2))))
    assert result.violation is None
    assert result.healed_s <= 5


def test_queue_managers_over_connections_agree_too() -> None:
    operations = tuple(Operate(float(n), n % 4, Change.CREATE_QUEUE, n) for n in range(30))
    scenario = Scenario(
        2, enterprise((1, 1)), weather=Weather(loss=0.1), steps=operations, streams=True, fault_s=60
    )
    result = run(scenario)
    assert result.violation is None
    assert result.counts["connected"] > 3
    assert result.counts["fault loss"] > 0


def test_sqlite_stores_agree_and_come_back_from_backups() -> None:
    seed = next(s for s in range(1000) if _restores(draw(s)) and len(draw(s).servers) < 5)
    result = run(replace(draw(seed), sqlite=True, streams=False))
    assert result.violation is None


def _restores(scenario: Scenario) -> bool:
    return any(isinstance(step, Restore) for step in scenario.steps)


@pytest.mark.parametrize("name", sorted(name for name in MUTATIONS if name.startswith("E")))
def test_a_literal_rule_is_seen(name: str) -> None:
    """The seed that the document names finds it, and breaks the rule that it names."""
    finding = known(DOCUMENT.read_text(encoding="utf-8"))[name]
    assert finding.seeds is not None
    violation = run_seed(finding.seeds - 1, Options(mutation=name)).violation
    assert violation is not None
    assert violation.rule == finding.rule


def test_a_mutation_ends_with_its_context() -> None:
    before = run_seed(4).digest
    with mutated("E09"):
        assert run_seed(4).violation is not None
    assert run_seed(4).digest == before
    with pytest.raises(ValueError, match="E99"), mutated("E99"):
        pass


def test_an_error_is_a_finding_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_administrator: SimAdministrator, _index: int) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(SimAdministrator, "join", broken)
    violation = run_seed(4).violation
    assert violation is not None
    assert violation.rule == "no error"
    assert "KeyError at test_runs.py:" in str(violation)


def test_a_failing_seed_is_reduced_to_steps_that_fail_by_themselves() -> None:
    options = Options(mutation="E12")
    failing = run_seed(0, options)
    assert failing.violation is not None
    chosen = minimised(failing.seed, failing.violation.rule, options)
    assert len(chosen) < len(draw(failing.seed).steps) / 2
    again = run_seed(failing.seed, replace(options, steps=chosen))
    assert again.violation is not None
    assert again.violation.rule == failing.violation.rule


_DIGESTS = """
from mqis.sim.runner import run_seed
print([run_seed(seed).digest for seed in (4, 14, 22)])
"""


def test_hashes_do_not_matter() -> None:
    assert [draw(seed).is_attacked for seed in (4, 14, 22)] == [False, True, True]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_lines_do_not_change_a_run() -> None:
    plain, kept = run_seed(22), run_seed(22, Options(keep_lines=True))
    assert plain.digest == kept.digest
    assert plain.lines == ()
    assert len(kept.lines) > 50


def test_journals_are_written(tmp_path: Path) -> None:
    result = run_seed(4, Options(journal=tmp_path))
    assert result.violation is None
    names = {plan.name for plan in draw(4).servers}
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == names
    segments = sorted((tmp_path / "PEC").glob("segment-*"))
    assert sum(1 for path in segments for _ in Segment.load(path).entries()) > 20


# --- scenarios ------------------------------------------------------------------------------------


def test_scenarios_are_drawn_alike_and_within_limits() -> None:
    drawn = [draw(seed) for seed in range(300)]
    assert drawn == [draw(seed) for seed in range(300)]
    for scenario in drawn:
        assert 2 <= len(scenario.servers) <= MAX_SERVERS
        assert scenario.servers[0].role is Role.PEC
        assert [step.at for step in scenario.steps] == sorted(step.at for step in scenario.steps)
    assert any(len(scenario.servers) > 12 for scenario in drawn)
    assert {scenario.streams for scenario in drawn} == {True, False}
    kinds = {type(step).__name__ for scenario in drawn for step in scenario.steps}
    assert kinds == {
        "Operate", "Crash", "FailCommit", "Cut", "Isolate", "Clog", "Backup", "Restore", "Join",
        "Stranger", "Lie", "Retire", "Resettle", "Slip", "Promote",
    }  # fmt: skip


def in_time(*steps: Step) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.at))


@pytest.mark.parametrize("point", list(CrashPoint))
def test_a_crash_at_each_point_is_survived(point: CrashPoint) -> None:
    operations = [Operate(10.0 + n, 1, Change.CREATE_QUEUE, n) for n in range(20)]
    steps = in_time(Crash(14.5, 1, point, 30.0), *operations)
    result = run(Scenario(7, enterprise((0, 1)), steps=steps, fault_s=120))
    assert result.violation is None
    assert result.counts[f"fault crash {point}"] == 1


def test_a_server_joins_an_enterprise_at_work() -> None:
    operations = [Operate(float(n), 0, Change.CREATE_NETWORK, n) for n in range(20)]
    steps = in_time(Join(9.5, 2), *operations)
    result = run(Scenario(8, enterprise((0, 0, 0)), steps=steps, fault_s=60))
    assert result.violation is None
    assert result.counts["late join"] == 1
