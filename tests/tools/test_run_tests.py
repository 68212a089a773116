"""All tests in parts: none is left out, and what they recorded becomes one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tools.ledger import CaseResult, Results
from tools.parts import parts
from tools.run_tests import RUN, command, environment, merge

ROOT = Path(__file__).resolve().parents[2]


def results(commit: str, *nodeids: str) -> Results:
    tests = {nodeid: CaseResult((), "passed", False) for nodeid in nodeids}
    return Results(commit, None, False, "3", tests)


def test_every_test_is_in_exactly_one_part() -> None:
    listed = [path for part in parts(ROOT).values() for path in part.paths]
    assert len(listed) == len(set(listed))
    for test in (ROOT / "tests").rglob("test_*.py"):
        if "slow" in test.parts:  # make engines
            continue
        holders = [path for path in listed if test.is_relative_to(path)]
        assert len(holders) == 1, test


def test_every_test_file_holds_tests() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    assert [p for p in files if "def test_" not in p.read_text(encoding="utf-8")] == []


def test_parts_of_one_tree_are_merged() -> None:
    merged = merge({"a": results("c", "a1", "a2"), "b": results("c", "b1")})
    assert merged is not None
    assert merged.full
    assert sorted(merged.tests) == ["a1", "a2", "b1"]


def test_a_missing_part_or_another_tree_makes_no_whole() -> None:
    assert merge({"a": results("c", "a1"), "b": None}) is None
    assert merge({"a": results("c", "a1"), "b": results("d", "b1")}) is None


def test_the_layers_with_a_floor_are_the_ones_that_are_traced() -> None:
    lines = {name: command(name, part, coverage=True) for name, part in parts(ROOT).items()}
    traced = [name for name, line in lines.items() if "coverage" in line]
    assert traced == ["layers", "interfaces"]
    assert {str(ROOT / "tests/wire"), str(ROOT / "tests/protocol")} <= set(lines["layers"])
    assert "coverage" not in command("layers", parts(ROOT)["layers"], coverage=False)


def test_bytecode_is_kept_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("MQIS_TEST_PATIENCE", "4")
    found = environment(Path("/tree"))
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert found["PYTHONPYCACHEPREFIX"] == "/tree/.build/pycache"
    assert found["MQIS_TEST_PATIENCE"] == "4"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_tests_have_started(tmp_path: Path, number: signal.Signals) -> None:
    """Also a server that has left the process group; nobody else's."""
    program = f"""
import os, signal, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tools.run_tests import end_all, environment
started = subprocess.Popen(["sleep", "600"], env=environment(Path()), start_new_session=True)
signal.signal({int(number)}, end_all)
print(started.pid, flush=True)
signal.pause()
"""
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, RUN: "1"})
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        started = int(run.stdout.readline())
        run.send_signal(number)
        assert run.wait() == 128 + number
        wait_until(lambda: not _runs(started))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        run.kill()
        run.wait()


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text("ascii")
    except OSError:
        return False
