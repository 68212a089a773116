"""The program of docs/routing.md runs as it stands."""

from __future__ import annotations

from tests.docs.documents import blocks, text_of

TEXT = text_of("routing.md")


def test_the_library_example_runs() -> None:
    imports, arrays = blocks(TEXT, "python")
    names: dict[str, object] = {}
    exec(imports + arrays, names)
    assert getattr(names["worst"], "number", None) is not None
