"""The commands that docs/capture.md starts with run as they stand, and so does its program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, blocks, run, text_of

TEXT = text_of("capture.md")


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (script,) = blocks(TEXT, "sh")
    shown = run(f"export PYTHONPATH='{ROOT}'\n{script}", tmp_path).stdout
    assert "dscomm in rpc" in shown
    assert re.search(r"mqdsrp +ChangePropagation create pec1\\orders", shown)
    rows = [json.loads(line) for line in (tmp_path / "oletx.jsonl").read_text().splitlines()]
    assert {row["protocol"] for row in rows} == {"ixnremote", "cmp"}

    monkeypatch.chdir(tmp_path)
    (program,) = blocks(TEXT, "python")
    exec(compile(program, "docs/capture.md", "exec"), {})
    assert "mqdsrp ChangePropagation create pec1\\orders" in capsys.readouterr().out
