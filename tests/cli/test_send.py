"""``mqis send``: from a store and from an export."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import process, run

WAY = ["ams-desk1", "ams-dir1", "ber-dir1", "chi-dir1", "chi-app1"]


def as_json(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    done = run("send", *arguments, "--json")
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def names(machines: list[dict[str, str]]) -> list[str]:
    return [machine["name"] for machine in machines]


@pytest.fixture(scope="module")
def export(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "directory.jsonl"
    assert run("export", path, "--store", demo_store).exit_code == 0
    return path


def test_travelled_beside_explained(demo_store: Path) -> None:
    done = run("send", "ams-desk1", "chi-app1", "--store", demo_store)

    assert done.exit_code == 0, done.output
    first, format_name, *lines = done.stdout.splitlines()
    assert first.startswith("ams-desk1 to chi-app1: arrived after 4 hops")
    assert format_name.strip().startswith("as PRIVATE=")
    for number, (here, there) in enumerate(pairwise(WAY)):
        row = next(line.split() for line in lines if line.startswith(f"{number + 1} "))
        way = [here, "->", there]
        assert row == [str(number + 1), str(number), *way, *way]
    assert lines[-1] == "the travelled path is the explained one"


def test_json(demo_store: Path) -> None:
    found = as_json("ams-desk1", "chi-app1", "--store", demo_store)

    assert (found["arrived"], found["equal"], found["failure"]) == (True, True, None)
    assert names(found["travelled"]) == names(found["explained"]) == WAY
    assert [hop["count"] for hop in found["hops"]] == [0, 1, 2, 3]
    assert [hop["next"]["name"] for hop in found["hops"]] == WAY[1:]


def test_without_a_link(demo_store: Path) -> None:
    arguments = "ams-desk1", "chi-app1", "--without", "berlin:chicago", "--store", demo_store
    found = as_json(*arguments)

    assert names(found["travelled"]) == ["ams-desk1", "ams-dir1", "chi-dir1", "chi-app1"]
    assert found["equal"]
    (link,) = found["without"]
    assert link in run("lookup", "link", "--store", demo_store, "--json").stdout


@pytest.mark.parametrize("where", ["store", "export"])
def test_to_a_public_queue(demo_store: Path, export: Path, where: str) -> None:
    source = ("--store", demo_store) if where == "store" else ("--directory", export)
    found = as_json("ber-desk1", "CHI-APP1\\orders", *source)

    assert names(found["travelled"]) == ["ber-desk1", "ber-dir1", "chi-dir1", "chi-app1"]
    assert found["queue"].startswith("PUBLIC=")
    assert found["equal"]


def test_no_way(demo_store: Path) -> None:
    cut = "--without", "berlin:chicago", "--without", "amsterdam:chicago"
    done = run("send", "ams-desk1", "chi-app1", *cut, "--store", demo_store)

    assert done.exit_code == 1
    assert "ams-desk1 to chi-app1: did not arrive" in done.stdout
    assert "no further: site Chicago cannot be reached over any link" in done.stdout
    assert done.stdout.splitlines()[-1] == "the travelled path is the explained one"


def test_what_is_not_there(demo_store: Path, export: Path) -> None:
    for place in (("--store", demo_store), ("--directory", export)):
        done = process("send", "ams-desk1", "chi-app1\\nothing", *place)
        assert done.returncode == 1
        assert b"there is no queue 'chi-app1\\\\nothing' in the directory" in done.stderr
    done = process("send", "ams-desk1", "nobody", "--store", demo_store)
    assert b"there is no machine and no site 'nobody'" in done.stderr
