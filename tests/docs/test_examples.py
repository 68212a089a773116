"""Short examples that stand at the head of a document run in the order in which they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import ROOT, commands, run, text_of


def script(text: str, *wanted: str) -> str:
    """Those of its commands that begin like this."""
    lines = [line for line in commands(text) if line.startswith(wanted)]
    assert all(any(line.startswith(start) for line in lines) for start in wanted), text
    return "\n".join(lines)


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory file with which docs/commands.md begins."""
    directory = tmp_path_factory.mktemp("tour")
    done = run(script(text_of("commands.md"), "mqis tour", "mqis lookup"), directory)
    assert "ams-app1\\audit" in done.stdout
    (directory / "demo.db").rename(directory / "enterprise.db")
    return directory


def test_the_readme(tour: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    wanted = ("mqis lookup queue -s", "mqis get", "mqis export", "mqis store", "mqis decode")
    done = run(script(text, *wanted), tour)
    assert "ams-app1\\payments" in done.stdout
    assert "S-1-5-32-544" in done.stdout
    assert (tour / "directory.jsonl").stat().st_size > 0


def test_stores_and_exports(tour: Path, tmp_path: Path) -> None:
    export = f"mqis export directory.jsonl --store {tour / 'enterprise.db'}\n"
    done = run(
        export
        + script(text_of("stores.md"), "mqis import", "mqis store check --store site.db")
        + "\n"
        + script(text_of("export.md"), "mqis export", "mqis import"),
        tmp_path,
    )
    assert "ok: 1 enterprise, 3 sites" in done.stdout
    assert (tmp_path / "copy.db").stat().st_size > 0


def test_comparing(tmp_path: Path) -> None:
    done = run(script(text_of("diff.md"), "mqis tour", "mqis export", "mqis diff monday"), tmp_path)
    assert "monday.jsonl -> sqlite:demo.db: no differences" in done.stdout
    assert "no differences" in (tmp_path / "diff.html").read_text("utf-8")


def test_an_estate(tmp_path: Path) -> None:
    """The demonstration has findings, so ``check`` and ``routes`` may exit with 1."""
    lines = [line.partition("  #")[0] for line in commands(text_of("estate.md"))]
    text = "\n".join(f"{line} || test $? = 1" for line in lines)
    done = run(text, tmp_path)
    assert "estate.jsonl -> sqlite:new.db: no differences" in done.stdout
    assert "<svg" in (tmp_path / "estate.svg").read_text("utf-8")


def test_simulations(tmp_path: Path) -> None:
    twenty, traced, literal, insecure, bug = commands(text_of("simulation.md"))
    assert "--seeds 20" in twenty
    done = run(twenty.replace("--seeds 20", "--seeds 2"), tmp_path)
    assert "2 seeds in" in done.stdout
    assert "seed 4" in run(traced, tmp_path).stdout
    assert "--mutate E" in literal  # which tests/cli/test_sim.py runs
    assert "--mutate S" in insecure  # and tests/sim/test_hostility.py
    assert "--mutate B" in bug  # and tests/sim/test_bugs.py
