"""CONTRIBUTING.md names files, targets and requirements that exist."""

from __future__ import annotations

import re
import tomllib

import pytest

from mqis import __version__
from tests.docs.documents import ROOT

TEXT = re.sub(r"^```.*?^```", "", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.S | re.M)
QUOTED = [word for quoted in re.findall(r"`([^`\n]+)`", TEXT) for word in quoted.split()]
#: Directories whose names begin a path; a path elsewhere is a file of the root.
TOP = r"src|tests|tools|docs|fuzz|bench|deploy|requirements|examples|\.ci"
PATHS = sorted(
    word for word in set(QUOTED) if re.fullmatch(rf"(?:{TOP})/[\w./-]*|[\w-]+\.(?:md|toml)", word)
)


@pytest.mark.parametrize("path", PATHS)
def test_a_named_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_paths_are_found() -> None:
    """A pattern that matches too little would let the test above pass without files."""
    modules = [path for path in PATHS if path.startswith("src/") and path.endswith(".py")]
    assert len(modules) > 20
    quoted = {word for word in QUOTED if re.search(r"/\w+\.(?:py|md|csv|tsv|json)$", word)}
    assert quoted <= set(PATHS)


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = set(re.findall(r"`make ([a-z]+)", TEXT))
    assert named
    assert named <= targets


def test_named_requirements_exist() -> None:
    tables = "".join(path.read_text("utf-8") for path in (ROOT / "docs/conformance").glob("*.tsv"))
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"\b(?:MQDS|MQDSRP|MQSD|MQBR|CMP)-[2-4][\d.]*-\d+", text))
    assert named
    assert named <= set(re.findall(r"^(\S+)\t", tables, re.M))


def test_both_places_have_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == __version__
