"""Links between documents lead somewhere, to their headings as well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mqis
from tests.docs.documents import ROOT

PACKAGE = Path(mqis.__file__).parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def anchors(page: Path) -> set[str]:
    """Of every heading, as Git forges make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_module_that_is_named_exists(page: Path) -> None:
    """As `protocol/clock` or, with something in it, `protocol/clock.pause_after`."""
    for name in re.findall(r"`([a-z]+/[a-z_/]+(?:\.[A-Za-z_]+)?)`", page.read_text("utf-8")):
        path, _, within = name.partition(".")
        if not (PACKAGE / path.partition("/")[0]).is_dir() or (PACKAGE / name).exists():
            continue
        files = [PACKAGE / f"{path}.py", PACKAGE / path / "__init__.py"]
        there = next((file for file in files if file.exists()), None)
        assert there, name
        assert within == "py" or within in there.read_text("utf-8"), name
