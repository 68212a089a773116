"""The examples of docs/routing.md run as they stand."""

from __future__ import annotations

from pathlib import Path

from tests.docs.documents import blocks, run, text_of

TEXT = text_of("routing.md")


def test_the_example_runs(tmp_path: Path) -> None:
    done = run(blocks(TEXT, "sh")[0], tmp_path)
    text = done.stdout
    assert text.startswith(blocks(TEXT, "text")[0]), "what the document shows is what is printed"
    assert "cost 50 instead of 30 (+20)" in text
    assert (tmp_path / "route.svg").read_text("utf-8").startswith("<svg")


def test_the_library_example_runs() -> None:
    imports, arrays = blocks(TEXT, "python")
    names: dict[str, object] = {}
    exec(imports + arrays, names)
    assert getattr(names["worst"], "number", None) is not None
