"""What the tour reads of its own output, and what it compares that with."""

from __future__ import annotations

import tomllib
from io import StringIO

import pytest
from rich.console import Console

from mqis.cli.output import table
from mqis.cli.tour.console import matrix
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.pipeline import expected_tiles, full_copies, undone
from mqis.cli.tour.reading import read_page, shown_route, table_rows
from mqis.cli.tour.routing import cheapest_cost
from mqis.cli.tour.slip import named_queues
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.plan import parse_plan
from mqis.wire.errors import MqisError

ROUTE = (
    "ams-desk1 to C14: 3 hops, cost 30",
    "  ams-desk1 -> ams-dir1",
    "  ams-dir1 -> ber-dir1  over Amsterdam - Berlin, leased line, cost 10",
    "  ber-dir1 -> C14  over Berlin - Chicago, cost 20",
)
REPORT = """<!doctype html><title>t</title><h1>Meridian: state of the directory</h1>
<section><h2>In short</h2><p class='verdict warn'>Needs attention</p><ol class=findings>
<li class=warn><b>Replicas skipped changes in 2 places.</b><br><span class=first>First: see.</span>
</li>
<li class=good><b>All 5 servers hold the same directory.</b></li></ol></section>
<section><h2>Inventory</h2><div class=cards>
<div class='card '><b>5</b><span>directory servers</span></div>
<div class='card bad'><b>1,602</b><span>changes</span></div></div></section>
<section><h2>All differences</h2><p class=good>None.</p></section>
<section><h2>Messages and synchronisations</h2><details><summary>3 rows</summary><table>
<thead><tr><th>server</th><th>peer</th><th>already purged</th><th>full resynchronisations</th></tr>
</thead><tbody><tr><td>psc</td><td>bsc</td><td>1</td><td>0</td></tr>
<tr><td>bsc</td><td>psc</td><td>0</td><td>1</td></tr>
<tr><td>psc</td><td>pec</td><td>0</td><td>2</td></tr></tbody></table></details></section>"""
CONSOLE = """<h1>Meridian</h1><p class="lead">At a glance.</p>
<p class="note bad" role="status" data-live="sentence">ber-dir2 is stopped</p>
<table class="matrix"><caption>Partitions by servers <small>- the last number</small></caption>
<thead><tr><th scope="col">Partition</th><th scope="col">a <span class="tag">PEC</span></th>
<th scope="col">b <span class="tag">BSC</span></th></tr></thead><tbody>
<tr><th scope="row">Berlin<br><small>of a</small></th>
<td><span>authority</span> <span>2f</span></td>
<td><span>equal</span> <span>2f</span></td></tr>
<tr><th scope="row">Chicago<br><small>of a</small></th>
<td><span>authority</span> <span>3</span></td>
<td><span>3 behind</span> <span>1</span></td></tr></tbody></table>"""


def guide(out: StringIO) -> Guide:
    made = Guide(Console(file=out, width=100))
    made.step("Sites", "the sites")
    return made


def test_a_tick_needs_what_was_expected() -> None:
    out = StringIO()
    guide(out).confirm_equal("2 sites", ["a", "b"], ["a", "b"])
    assert "✓ 2 sites" in out.getvalue()


def test_a_failure_names_the_step_what_was_seen_and_what_was_expected() -> None:
    out = StringIO()
    with pytest.raises(MqisError) as failed:
        guide(out).confirm_equal("3 sites", ["a"], ["a", "b"])
    assert str(failed.value) == (
        "step 1, Sites: this does not hold: 3 sites; saw ['a'], expected ['a', 'b']"
    )
    assert "✓" not in out.getvalue()


def test_shown_tables_are_read_as_they_are_on_the_screen() -> None:
    made = table("site", "authority", "machines")
    made.add_row("Amsterdam", "ams dir", "7")
    made.add_row("Berlin", "ber-dir1", "1")
    out = StringIO()
    lines = guide(out).show(made)
    assert table_rows(lines) == [["Amsterdam", "ams dir", "7"], ["Berlin", "ber-dir1", "1"]]
    assert all(line in out.getvalue() for line in lines)


def test_a_route_is_read_with_its_steps() -> None:
    shown = shown_route(ROUTE)
    assert shown is not None
    assert (shown.hops, shown.cost, shown.summed_cost, shown.is_connected) == (3, 30, 30, True)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((*ROUTE[:3], ROUTE[3].replace("20", "25")), (30, 35, True)),
        ((ROUTE[0], ROUTE[1], ROUTE[3]), (30, 20, False)),
        ((ROUTE[0], *ROUTE[1:3]), (30, 10, False)),
    ],
    ids=["wrong cost", "step left out", "does not arrive"],
)
def test_a_wrong_route_is_seen(lines: tuple[str, ...], told: tuple[int, int, bool]) -> None:
    shown = shown_route(lines)
    assert shown is not None
    assert (shown.cost, shown.summed_cost, shown.is_connected) == told


def test_no_route_is_none() -> None:
    assert shown_route(["ams-desk1 to C14: no route"]) is None
    assert shown_route([]) is None


def test_the_cheapest_way_may_be_a_detour() -> None:
    costs = {frozenset("AB"): 10, frozenset("BC"): 20, frozenset("AC"): 50}
    assert cheapest_cost(costs, "A", "C") == 30
    del costs[frozenset("AB")]
    assert cheapest_cost(costs, "A", "C") == 50
    assert cheapest_cost({frozenset("AB"): 10}, "A", "C") is None


def test_a_report_is_read_as_a_person_does() -> None:
    page = read_page(REPORT)
    assert page.heading == "Meridian: state of the directory"
    assert (page.verdict, page.tone) == ("Needs attention", "warn")
    assert page.sentences == [
        "Replicas skipped changes in 2 places.",
        "All 5 servers hold the same directory.",
    ]
    assert page.tiles == {"directory servers": "5", "changes": "1,602"}
    assert page.tables["All differences"] == []
    assert [row["peer"] for row in page.tables["Messages and synchronisations"]] == [
        *("bsc", "psc", "pec"),
    ]


def test_only_servers_that_were_told_of_a_purge_were_healed() -> None:
    """A new authority copies partitions too, before it goes into service."""
    assert full_copies(read_page(REPORT)) == {("bsc", "psc"): 1}


def test_the_console_is_read_as_a_person_does() -> None:
    page = read_page(CONSOLE)
    assert (page.heading, page.verdict, page.tone) == ("Meridian", "ber-dir2 is stopped", "bad")
    assert matrix(page) == {"a": 2, "b": 1}


def test_tiles_follow_from_the_plan() -> None:
    tiles = expected_tiles(parse_plan(tomllib.loads(EXAMPLE)), 1602)
    assert (tiles["directory servers"], tiles["machines"], tiles["queues"]) == ("5", "8", "3")
    assert (tiles["changes"], tiles["skipped or repeated"]) == ("1,602", "0")


def test_what_was_made_again_was_undone() -> None:
    changes = [
        ("kept", "create", 1),
        ("gone", "create", 2),
        ("back", "create", 3),
        ("gone", "delete", 4),
        ("back", "delete", 5),
        ("back", "create", 6),
        ("back", "update", 7),
    ]
    assert undone(changes) == 1


def test_the_queues_that_go_first_are_named() -> None:
    lines = [
        "2 queues would be orphaned and will be deleted first: queue C14\\testq, queue C14\\orders",
        "1 link will stay without it: link x",
    ]
    assert named_queues(lines) == ["C14\\orders", "C14\\testq"]
