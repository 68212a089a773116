"""docs/logs.md names the events that there are, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mqis.runtime import changelog

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "logs.md"


def written() -> set[str]:
    tree = ast.parse(Path(changelog.__file__).read_text(encoding="utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = (c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "_write")
    return {ast.literal_eval(call.args[0]) for call in named}


def test_its_events_are_those_that_are_written() -> None:
    rows = re.findall(r"^\| `(change \w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == written()
    assert len(rows) == len(written()) == 6
