"""The examples of docs/routing.md run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "routing.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.S | re.M)


def test_the_example_runs(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    done = subprocess.run(
        ["bash", "-euc", blocks("sh")[0]],
        cwd=tmp_path,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.startswith(blocks("text")[0]), "what the document shows is what is printed"
    assert "cost 50 instead of 30 (+20)" in text
    assert (tmp_path / "route.svg").read_text("utf-8").startswith("<svg")


def test_the_library_example_runs() -> None:
    imports, arrays = blocks("python")
    names: dict[str, object] = {}
    exec(imports + arrays, names)
    assert getattr(names["worst"], "number", None) is not None
