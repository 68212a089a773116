"""The walk-through of docs/rpc.md is a program that runs."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.waiting import in_time

DOC = Path(__file__).resolve().parents[2] / "docs" / "rpc.md"


def test_the_walk_through_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOC.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 4
    module = ModuleType("walkthrough")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def run(code: str) -> None:
        exec(compile(code, str(DOC), "exec", dont_inherit=True), module.__dict__)

    async def both() -> None:
        run("\n".join(blocks[:3]).replace("2105", "0"))  # which may be taken
        serving = asyncio.create_task(module.serve())
        while not (said := capsys.readouterr().out):
            await asyncio.sleep(0.01)
        run(blocks[3].replace("2105", said.strip()))
        await module.call()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(in_time(both()))

    assert capsys.readouterr().out.strip() == "SumGiven(total=6)"
