"""The program of docs/capture.md runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import ROOT, blocks, run, text_of


def test_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(f"PYTHONPATH='{ROOT}':${{PYTHONPATH:-}} python -m examples.capture msmq.pcap", tmp_path)
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(text_of("capture.md"), "python")
    exec(compile(program, "docs/capture.md", "exec"), {})
    assert "mqdsrp ChangePropagation create pec1\\orders" in capsys.readouterr().out
