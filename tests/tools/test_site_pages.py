"""The pages of the documentation site: their links, and that all of them are in its menu."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from tools.site_pages import collect, page_names, site_text

NAMES = {
    "README.md": "index.md",
    "docs/routing.md": "routing.md",
    "docs/conformance/README.md": "conformance/README.md",
    "docs/console.png": "console.png",
}


@pytest.mark.parametrize(
    ("source", "text", "shown"),
    [
        ("README.md", "see [routes](docs/routing.md#gates)", "see [routes](routing.md#gates)"),
        ("README.md", "![it](docs/console.png)", "![it](console.png)"),
        ("docs/routing.md", "[home](../README.md)", "[home](index.md)"),
        ("docs/conformance/README.md", "[r](../routing.md)", "[r](../routing.md)"),
        ("docs/routing.md", "by [`hops.py`](../src/mqis/hops.py) alone", "by `hops.py` alone"),
        ("docs/routing.md", "[a](https://example.org/x.py)", "[a](https://example.org/x.py)"),
        ("docs/routing.md", "[below](#gates)", "[below](#gates)"),
    ],
)
def test_links(source: str, text: str, shown: str) -> None:
    assert site_text(text, source, NAMES) == shown


def test_code_is_not_changed() -> None:
    text = "```\n[x](../src/a.py)\n```\n[x](../src/a.py)\n"
    assert site_text(text, "docs/routing.md", NAMES) == "```\n[x](../src/a.py)\n```\nx\n"


def test_every_page_is_in_the_menu(tmp_path: Path) -> None:
    """mkdocs checks this too, but only where somebody builds the site."""
    collect(ROOT, tmp_path)
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    for page in sorted(tmp_path.rglob("*.md")):
        assert f": {page.relative_to(tmp_path).as_posix()}\n" in menu, page.name
    assert {*page_names(ROOT).values(), "reference.md"} == {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
