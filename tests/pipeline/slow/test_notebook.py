"""The notebook runs from a clean kernel, and what is kept of its outputs is small.

Part of ``make engines``.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.waiting import DEADLINE_S

NOTEBOOK = Path(__file__).parents[3] / "examples" / "pipeline" / "estate.ipynb"
MOST_BYTES = 200_000


def outputs_of(notebook: nbformat.NotebookNode) -> str:
    return "".join(str(cell.get("outputs", "")) for cell in notebook.cells)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=int(4 * DEADLINE_S), kernel_name="python3")
    client.execute(env=dict(os.environ), cwd=str(tmp_path))
    told = outputs_of(notebook)
    assert "planted faults" in told
    assert told.count("<svg") >= 3
    assert len(told) < MOST_BYTES


def test_kept_outputs_are_small() -> None:
    assert NOTEBOOK.stat().st_size < MOST_BYTES
