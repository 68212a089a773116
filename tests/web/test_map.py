"""The map without JavaScript: its tables, its data and its picture, over plain HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mqis import web
from mqis.config.stores import open_store
from mqis.lab import demo
from tests.cli.commands import run
from tests.web.asking import Answer, Visitor
from tests.web.enterprise import PEC
from tests.web.estates import HOSTILE, console_of, make_estate
from tests.web.network import EstatePlan

ROUTE = "/map?from=ams-desk1&to=chi-app1"
TRAFFIC = {
    "kind": ["link", "link"],
    "name": ["Amsterdam - Berlin", "Amsterdam - Chicago"],
    "messages": [900.0, 12.0],
}


def links_by_name(answer: Answer) -> dict[str, str]:
    found = re.findall(r'name="off" value="([^"]+)"[^>]*> <span>([^<]+?)</span>', answer.html)
    return {name: link for link, name in found}


def state_of(answer: Answer) -> dict[str, Any]:
    found = re.search(r"data-map-state>(.*?)</script>", answer.html)
    assert found is not None
    state: dict[str, Any] = json.loads(found[1])
    return state


# --- the demonstration ----------------------------------------------------------------------------


def test_a_route_is_drawn_and_explained(administrator: Visitor) -> None:
    answer = administrator.get(ROUTE)
    assert "ams-desk1 to chi-app1: 4 hops, cost 30" in answer.text
    state = state_of(answer)
    assert len(state["route"]) == 2
    assert len(state["sites"]) == 3
    assert answer.text.count("on the route") == 5, "two links and three sites, in words"
    assert "over Amsterdam - Berlin, leased line, cost 10" in answer.text
    assert "by way of Amsterdam - Chicago: cost 50, 20 more" in answer.text
    assert "◆ ams-dir1 PEC" in answer.text


def test_a_link_that_is_off_changes_the_route_and_says_for_whom(administrator: Visitor) -> None:
    links = links_by_name(administrator.get("/map"))
    berlin_chicago = links["Berlin - Chicago (transatlantic fibre)"]
    answer = administrator.get(f"{ROUTE}&off={berlin_chicago}")
    assert "ams-desk1 to chi-app1: 3 hops, cost 50" in answer.text
    assert "cost 50 instead of 30 (+20)" in answer.text
    assert "4 pairs of sites rerouted 0 pairs cut off" in answer.text
    assert "Berlin Chicago and back 20 60" in answer.text
    assert answer.html.count(" checked") == 1
    assert "Switch on Berlin - Chicago (transatlantic fibre)" in answer.text
    satellite = links["Amsterdam - Chicago (satellite)"]
    cut = administrator.get(f"{ROUTE}&off={berlin_chicago}&off={satellite}")
    assert "no route" in cut.text
    assert "4 pairs cut off" in cut.text
    assert "No further: " in cut.text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("from=nobody&to=chi-app1", "there is no machine and no site 'nobody'"),
        ("off=00000000-0000-0000-0000-000000000001", "there is no link"),
        ("off=%3Cscript%3E", "there is no link '<script>'"),
        ("&".join(["off=x"] * 80), "at most 64 links"),
    ],
)
def test_what_is_not_on_the_map_is_said(visitor: Visitor, query: str, told: str) -> None:
    for path in ("/map", "/map.svg"):
        answer = visitor.get(f"{path}?{query}")
        assert answer.status == 404
        assert told in answer.text
        assert "<script>" not in answer.html.replace("<script src", "").replace("<script type", "")


def test_nothing_of_a_hidden_site_is_in_data_or_picture(
    visitor: Visitor, administrator: Visitor
) -> None:
    """Anonymous users may read machines, but no site of the demonstration."""
    for path in ("/map", "/map/data", "/map.svg"):
        hidden, shown = visitor.get(path), administrator.get(path)
        assert hidden.status == shown.status == 200
        assert "Amsterdam" in shown.html
        assert "Amsterdam" not in hidden.html
    assert visitor.get("/map/data?server=nobody").status == 404


def test_the_picture_is_that_of_the_command(tmp_path: Path) -> None:
    store = demo_store(tmp_path)
    options = "--from", "ams-desk1", "--to", "chi-app1", "--store", store
    assert run("map", "--svg", tmp_path / "map.svg", *options).exit_code == 0
    data = run("map", "--json", "--store", store).stdout
    with console_of(store) as url:
        visitor = Visitor(url)
        picture = visitor.get("/map.svg?from=ams-desk1&to=chi-app1")
        assert picture.headers["Content-Type"] == "image/svg+xml"
        assert "sandbox" in picture.headers["Content-Security-Policy"]
        assert picture.body == (tmp_path / "map.svg").read_bytes()
        assert json.loads(visitor.get("/map/data").body) == json.loads(data)


def test_loads_are_shown_to_administrators_alone(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the pipeline is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    place = tmp_path / "tables" / "traffic" / "v000001"
    place.mkdir(parents=True)
    (place.parent / "CURRENT").write_text("v000001\n", encoding="ascii")
    parquet.write_table(pyarrow.table(TRAFFIC), place / "part-0.parquet")
    store = demo_store(tmp_path)
    with console_of(store, tmp_path / "tables") as url:
        visitor = Visitor(url)
        links = json.loads(visitor.get("/map/data").body)["links"]
        assert {link["load"] for link in links} == {900.0, 12.0, 0.0}
        assert max(links, key=lambda link: link["width"])["cost"] == 10
        assert "Amsterdam - Berlin (leased line) 10 900" in visitor.get("/map").text
        (place / "part-0.parquet").write_bytes(b"no table")
        assert visitor.get("/map").status == 200, "a damaged table is no reason for no map"
    with console_of(store, tmp_path / "tables", guest="S-1-5-11") as url:
        visitor = Visitor(url)
        assert {link["load"] for link in json.loads(visitor.get("/map/data").body)["links"]} == {
            None
        }
        assert "Messages" not in visitor.get("/map").text


def demo_store(directory: Path) -> Path:
    path = directory / "demo.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    return path


# --- a real estate --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    plan = EstatePlan(130, 250)
    path = make_estate(tmp_path_factory.mktemp("estate") / "estate.db", plan, hostile=True)
    with console_of(path) as url:
        yield Visitor(url)


def test_tables_have_pages_and_a_search(estate: Visitor) -> None:
    page = estate.get("/map")
    assert "130 sites, 250 links, 130 machines" in page.text
    assert len(links_by_name(page)) == 100
    assert "page 1 of 3" in page.text
    found = estate.get("/map?find=berlin-01")
    assert "1 site with “berlin-01”" in found.text
    assert len(links_by_name(found)) == found.text.count("Berlin-01") - 1 > 0
    assert len(state_of(found)["found"]) == 1
    assert state_of(page)["found"] == []
    for odd in ("links=99", "links=0", "sites=-1", "links=x", "find=%00%ff"):
        assert estate.get(f"/map?{odd}").status == 200


def test_a_link_that_is_off_stays_off_on_other_pages(estate: Visitor) -> None:
    """The form sends hidden fields for links that its page of the table does not show."""
    link = next(iter(links_by_name(estate.get("/map?links=3")).values()))
    first = estate.get(f"/map?off={link}")
    assert f'name="off" value="{link}" checked' in first.html, "links that are off come first"
    other = estate.get(f"/map?off={link}&links=2")
    assert f'type="hidden" form="map-form" name="off" value="{link}"' in other.html
    assert f"off={link}&amp;links=1" in other.html, "and so do the links to other pages"


@pytest.mark.req("SEC-12-13")
def test_a_name_is_never_markup(estate: Visitor) -> None:
    for path in ("/map", "/map?find=img", "/map.svg"):
        answer = estate.get(path)
        assert "<img src=x" not in answer.html
        assert "&lt;img src=x" in answer.html
        assert "49" not in re.findall(r"7\*7|\b49\b", answer.html)
    data = estate.get("/map/data")
    assert data.headers["Content-Type"] == "application/json"
    assert data.headers["X-Content-Type-Options"] == "nosniff"
    assert HOSTILE in {site["name"] for site in json.loads(data.body)["sites"]}


def test_a_page_without_javascript_has_the_picture(estate: Visitor) -> None:
    page = estate.get("/map?from=Berlin&to=Chicago-02")
    image = re.search(r'<noscript><p class="picture"><img src="([^"]+)"', page.html)
    assert image is not None
    picture = estate.get(image[1].replace("&amp;", "&"))
    assert picture.status == 200
    assert 'class="link on"' in picture.html


def test_the_map_of_another_server_is_asked_for_by_name(administrator: Visitor) -> None:
    page = administrator.get(f"/map?server={PEC}")
    assert f'data-source="/map/data?server={PEC}"' in page.html


def test_the_library_is_the_recorded_one() -> None:
    static = Path(web.__file__).parent / "static"
    recorded = (static / "README.md").read_text(encoding="utf-8")
    source = (static / "cytoscape.min.js").read_bytes()
    assert sha256(source).hexdigest() in recorded
    version = re.search(r"Cytoscape\.js\]\(\S+\) (\d+\.\d+\.\d+)", recorded)
    assert version is not None
    assert f'"{version[1]}"'.encode() in source
    assert "MIT" in recorded
    assert b"Permission is hereby granted" in (static / "cytoscape.LICENSE.txt").read_bytes()
