"""The ratchet, on a report that coverage.py itself made and on small ones made by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.coverage_floor import Coverage, main, read_report

MODULE = """
def sign(x):
    if x < 0:
        return -1
    return 1
"""


def summary(
    covered_lines: int, lines: int, covered_branches: int, branches: int
) -> dict[str, object]:
    return {
        "summary": {
            "covered_lines": covered_lines,
            "num_statements": lines,
            "covered_branches": covered_branches,
            "num_branches": branches,
        }
    }


class Ratchet:
    """Report and floor in a directory, and the command over them."""

    def __init__(self, directory: Path) -> None:
        self.report = directory / "coverage.json"
        self.floor = directory / "floor.json"

    def covering(self, files: dict[str, dict[str, object]]) -> None:
        self.report.write_text(json.dumps({"files": files}), encoding="utf-8")

    def standing_at(self, wire: float, protocol: float) -> None:
        self.floor.write_text(json.dumps({"wire": wire, "protocol": protocol}), encoding="utf-8")

    def run(self, *arguments: str) -> int:
        return main(["--report", str(self.report), "--floor", str(self.floor), *arguments])

    def floors(self) -> dict[str, float]:
        value: dict[str, float] = json.loads(self.floor.read_text(encoding="utf-8"))
        return value


@pytest.fixture
def ratchet(tmp_path: Path) -> Ratchet:
    """wire at 83.33 % (a 70 %, b 90 %), protocol at 100 %."""
    made = Ratchet(tmp_path)
    made.covering(
        {
            "src/mqis/wire/a.py": summary(6, 8, 1, 2),
            "src/mqis/wire/deep/b.py": summary(12, 12, 6, 8),
            "src/mqis/protocol/c.py": summary(3, 3, 0, 0),
            "src/mqis/runtime/d.py": summary(0, 50, 0, 50),
        }
    )
    made.standing_at(83.3, 100.0)
    return made


def test_at_the_floor_passes(ratchet: Ratchet, capsys: pytest.CaptureFixture[str]) -> None:
    assert ratchet.run() == 0
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines() if line.strip().startswith("mqis/")] == [
        ["mqis/wire", "83.3", "83.3", "5"],
        ["mqis/protocol", "100.0", "100.0", "0"],
    ]
    assert "--raise" not in printed


def test_below_the_floor_fails_naming_the_worst_files(
    ratchet: Ratchet, capsys: pytest.CaptureFixture[str]
) -> None:
    ratchet.standing_at(83.4, 100.0)
    assert ratchet.run() == 1
    printed = capsys.readouterr().out
    assert "mqis/wire fell below its floor" in printed
    assert "mqis/protocol fell" not in printed
    assert printed.index("wire/a.py: 70.0 %, 3 ") < printed.index("wire/deep/b.py: 90.0 %, 2 ")
    assert "runtime" not in printed


def test_each_package_has_its_own_floor(ratchet: Ratchet) -> None:
    ratchet.covering(
        {
            "src/mqis/wire/a.py": summary(100, 100, 0, 0),
            "src/mqis/protocol/c.py": summary(9, 10, 0, 0),
        }
    )
    ratchet.standing_at(0.0, 90.1)
    assert ratchet.run() == 1
    ratchet.standing_at(0.0, 90.0)
    assert ratchet.run() == 0


@pytest.mark.parametrize(("wire", "hinted"), [(82.8, True), (82.9, False)])
def test_hint_from_half_a_percent(
    ratchet: Ratchet, capsys: pytest.CaptureFixture[str], wire: float, hinted: bool
) -> None:
    ratchet.standing_at(wire, 100.0)
    assert ratchet.run() == 0
    assert ("coverage_floor.py --raise" in capsys.readouterr().out) == hinted


def test_raise_rounds_down(ratchet: Ratchet) -> None:
    ratchet.standing_at(0.0, 0.0)
    assert ratchet.run("--raise") == 0
    assert ratchet.floors() == {"wire": 83.3, "protocol": 100.0}
    assert ratchet.run() == 0


def test_raise_never_lowers(ratchet: Ratchet) -> None:
    ratchet.standing_at(95.0, 50.0)
    assert ratchet.run("--raise") == 1
    assert ratchet.floors() == {"wire": 95.0, "protocol": 100.0}


def test_almost_all_is_not_all() -> None:
    assert str(Coverage(99_999, 100_000)) == "99.9"
    assert str(Coverage(0, 0)) == "100.0"


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"src/mqis/wire/a.py": summary(1, 1, 0, 0)}, "no file of mqis/protocol"),
        (
            {"src/mqis/wire/a.py": {"summary": {"covered_lines": 1, "num_statements": 1}}},
            "src/mqis/wire/a.py: coverage was measured without branches",
        ),
    ],
)
def test_unusable_report_is_refused(
    ratchet: Ratchet,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, dict[str, object]],
    named: str,
) -> None:
    ratchet.covering(files)
    assert ratchet.run() == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("floor", ['{"wire": 1.0}', "nothing", None])
def test_unusable_floor_is_refused(ratchet: Ratchet, floor: str | None) -> None:
    if floor is None:
        ratchet.floor.unlink()
    else:
        ratchet.floor.write_text(floor, encoding="utf-8")
    assert ratchet.run() == 2


def test_agrees_with_coverage_itself(tmp_path: Path) -> None:
    """coverage.py measures one package of each name; its own percentage is ours."""
    for name in ("mqis", "mqis/wire", "mqis/protocol"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "mqis/wire/m.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "run.py").write_text("from mqis.wire.m import sign\nsign(1)\n", encoding="utf-8")

    for arguments in (["run", "--branch", "--source=mqis", "run.py"], ["json", "-q"]):
        command = [sys.executable, "-m", "coverage", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, env={"PYTHONPATH": str(tmp_path)})
    report = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))

    (measured,) = [c for n, c in read_report(report)["wire"].items() if n.endswith("m.py")]
    expected = report["files"]["mqis/wire/m.py"]["summary"]["percent_covered"]
    assert measured == Coverage(covered=4, total=6)
    assert measured.covered / measured.total * 100 == pytest.approx(expected)
