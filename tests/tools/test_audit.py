"""The verdict of ``make audit``; pip-audit itself succeeds even if no service answered."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import audit


def entry(name: str, *, skipped: bool = False, vulns: tuple[str, ...] = ()) -> dict[str, Any]:
    if skipped:
        return {"name": name, "skip_reason": "not found"}
    found = [{"id": id_, "fix_versions": ["2.0"]} for id_ in vulns]
    return {"name": name, "version": "1.0", "vulns": found}


@pytest.mark.parametrize(
    ("entries", "status", "told"),
    [
        ([entry("a"), entry("b")], 0, "2 packages, none with a known vulnerability"),
        ([entry("a"), entry("b", vulns=("CVE-1",))], 1, "b 1.0: CVE-1; fixed in 2.0"),
        ([entry("a"), entry("b", skipped=True)], 2, "not checked: b"),
        ([entry("a", skipped=True)], 2, "the vulnerability service does not answer"),
        ([], 2, "the vulnerability service does not answer"),
    ],
)
def test_what_a_report_means(entries: list[dict[str, Any]], status: int, told: str) -> None:
    report = audit.Report()
    report.add({"dependencies": entries})
    text, code = report.summary()
    assert code == status
    assert text.startswith(told)


def test_no_report_at_all_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "pip-audit"
    broken.write_text(f"#!{sys.executable}\nimport sys; sys.exit('no network')\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    assert audit.main(str(broken), ["a.lock", "b.lock"]) == 2
    assert capsys.readouterr().out.count("\n") == 1
