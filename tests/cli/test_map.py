"""``mqis map`` and the picture of ``mqis route``, from a store and an export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.commands import process, run

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def links(picture: ElementTree.Element, kind: str = "link") -> list[ElementTree.Element]:
    return [p for p in picture.iter(f"{SVG}path") if kind in p.get("class", "").split()]


def titles(elements: list[ElementTree.Element]) -> list[str]:
    return [element.findtext(f"{SVG}title", "") for element in elements]


def test_a_map(demo_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    done = run("map", "--svg", path, "--store", demo_store)
    assert done.stdout == f"wrote {path}: 3 sites, 3 links\n"
    picture = ElementTree.parse(path).getroot()
    shown = texts(picture)

    assert {"Amsterdam", "Berlin", "Chicago", "10", "20", "50", "◆ ams-route1"} <= set(shown)
    assert "◆ ams-dir1 PEC" in shown, "directory servers have their role, as in the console"
    assert len(links(picture)) == 3
    assert not [p for p in picture.iter() if "on" in p.get("class", "").split()]
    source = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in source
    assert source.count("http") == 1, "nothing is loaded from elsewhere"


def test_a_store_and_its_export_give_the_same_picture(demo_store: Path, tmp_path: Path) -> None:
    export, first, second = (tmp_path / name for name in ("a.jsonl", "a.svg", "b.svg"))
    assert run("export", export, "--store", demo_store).exit_code == 0
    assert run("map", "--svg", first, "--store", demo_store).exit_code == 0
    assert run("map", "--svg", second, "--directory", export).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_the_chosen_path_stands_out(demo_store: Path, tmp_path: Path) -> None:
    path, other = tmp_path / "route.svg", tmp_path / "map.svg"
    ends = "--from", "ams-desk1", "--to", "chi-app1"
    run("route", "ams-desk1", "chi-app1", "--store", demo_store, "--svg", path)
    assert run("map", *ends, "--store", demo_store, "--svg", other).exit_code == 0
    for picture in (ElementTree.parse(path).getroot(), ElementTree.parse(other).getroot()):
        lines = links(picture, "on")
        assert [title.partition(", cost")[0] for title in titles(lines)] == [
            "Amsterdam - Berlin (leased line)",
            "Berlin - Chicago (transatlantic fibre)",
        ]
        assert all(line.get("marker-end") == "url(#head)" for line in lines)
        assert "ams-desk1 to chi-app1, cost 30" in texts(picture)


def test_a_link_that_failed_is_dashed(demo_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    ends = "--from", "ams-desk1", "--to", "chi-app1"
    without = "--without", "Berlin:Chicago"
    assert run("map", *ends, *without, "--store", demo_store, "--svg", path).exit_code == 0
    picture = ElementTree.parse(path).getroot()
    assert len(links(picture, "on")) == 1
    (off,) = titles(links(picture, "off"))
    assert off == "Berlin - Chicago (transatlantic fibre), cost 20, switched off"
    assert "ams-desk1 to chi-app1, cost 50" in texts(picture)


def test_the_map_for_programs(demo_store: Path) -> None:
    done = run("map", "--json", "--store", demo_store)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert {site["name"] for site in found["sites"]} == {"Amsterdam", "Berlin", "Chicago"}
    assert {link["cost"] for link in found["links"]} == {10, 20, 50}
    assert found["summary"] == "3 sites, 3 links, 20 machines"
    assert found["most_load"] is None


def test_busy_links_are_thick(demo_store: Path, traffic: Path) -> None:
    done = run("map", "--json", "--store", demo_store, "--tables", traffic)
    found = {link["name"]: link for link in json.loads(done.stdout)["links"]}
    busy = found["Amsterdam - Berlin (leased line)"]
    quiet = found["Amsterdam - Chicago (satellite)"]
    assert (busy["load"], quiet["load"]) == (900.0, 100.0)
    assert busy["width"] > 2 * found["Berlin - Chicago (transatlantic fibre)"]["width"]
    assert busy["width"] > quiet["width"]


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    """The table that 'mqis pipeline traffic' writes."""
    pyarrow = pytest.importorskip("pyarrow", reason="the pipeline is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    place = tmp_path / "tables" / "traffic" / "v000001"
    place.mkdir(parents=True)
    (place.parent / "CURRENT").write_text("v000001\n", encoding="ascii")
    columns = {
        "kind": ["link", "link", "gate"],
        "name": ["Amsterdam - Berlin", "Amsterdam - Chicago", "ams-dir1"],
        "messages": [900.0, 100.0, 5000.0],
    }
    parquet.write_table(pyarrow.table(columns), place / "part-0.parquet")
    return tmp_path / "tables"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ((), 2, "give --svg FILE"),
        (("--json", "--from", "ams-desk1"), 2, "--from and --to belong together"),
        (("--json", "--from", "nobody", "--to", "Berlin"), 1, "no machine and no site 'nobody'"),
        (("--json", "--without", "nowhere"), 1, "there is no such link"),
        (("--json", "--tables", "/nowhere"), 1, "run 'mqis pipeline traffic'"),
    ],
)
def test_what_is_wrong_is_said(
    demo_store: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run("map", *arguments, "--store", demo_store)
    assert done.exit_code == status
    assert words in " ".join((done.output + str(done.exception)).replace("│", " ").split())


def test_a_picture_that_cannot_be_written(demo_store: Path, tmp_path: Path) -> None:
    done = process("map", "--svg", tmp_path / "no" / "map.svg", "--store", demo_store)
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr
