"""The report: its three sentences, its words, and names that try to break its page."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from mqis.cli.tour.reading import read_page
from mqis.findings import Gravity
from mqis.pipeline.report.content import ReportContent
from mqis.pipeline.report.findings import findings
from mqis.pipeline.report.page import headings, html_page
from mqis.pipeline.report.wording import ADVICE, CAUSES, TABLES
from mqis.pipeline.transforms.causes import Cause

MOMENT = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)
GUID = "0f0e0d0c-0001-0002-0003-000000000004"


def difference(cause: str = "lost", server: str = "ber-dir2", **more: Any) -> dict[str, Any]:
    return {
        "server": server,
        "authority": "ams-dir1",
        "partition": "Amsterdam",
        "partition_id": GUID,
        "id": GUID,
        "type": "queue",
        "path": "app1\\orders",
        "difference": "different",
        "properties": ["label", "quota"],
        "cause": cause,
        "reason": "",
        "source": "ams-dir1",
        "target": server,
        **more,
    }


def finding(check: str, path: str | None = "app1\\orders") -> dict[str, Any]:
    row = {"check": check, "explanation": "everyone may send to the queue", "type": "queue"}
    return {**row, "id": GUID, "path": path, "detail": ""}


def failure(cut_off: int, name: str = "A - B") -> dict[str, Any]:
    row = {"kind": "link", "name": name, "changed": 4, "cut_off": cut_off}
    return {**row, "dearer_by": 10, "worst": 5}


def way(p95_ms: float) -> dict[str, Any]:
    return {"origin": "ams-dir1", "server": "chi-dir1", "changes": 5, "p95_ms": p95_ms}


def evidence(kind: str) -> dict[str, Any]:
    return {"kind": kind, "server": "ams-dir1", "file": "f", "explanation": "why"}


WELL = ReportContent(
    MOMENT,
    "Meridian",
    datetime(2026, 11, 9, 7, 0, tzinfo=UTC),
    datetime(2026, 11, 13, 18, 45, tzinfo=UTC),
    servers=5,
    changes=4321,
    inventory=[
        {"partition": "Amsterdam", "type": "site", "count": 1},
        {"partition": "Amsterdam", "type": "queue", "count": 1200},
        {"partition": "Amsterdam", "type": "machine", "count": 1},
    ],
    activity=[{"moment": 1794300000, "origin": "ams-dir1", "changes": 41}],
    cut_pairs=0,
    pairs=6,
    tables={"divergence": [], "hygiene": [], "what_if": [failure(0)], "lag": [way(900.0)]}
    | {"evidence": [], "errors": []},
)


def with_rows(**tables: list[dict[str, Any]]) -> ReportContent:
    return replace(WELL, tables={**WELL.tables, **tables})


# --- findings -------------------------------------------------------------------------------------


def test_all_is_well() -> None:
    made = findings(WELL)
    assert [found.gravity for found in made] == [Gravity.OK] * 3
    assert made[0].what == "All 5 servers hold the same directory."
    assert not any(found.todo for found in made)


def test_the_tour_reads_the_page_as_it_is() -> None:
    """Its ticks about the report rest on what it reads here."""
    page = read_page(html_page(WELL))
    assert (page.verdict, page.tone) == ("In order", "good")
    assert page.sentences == [finding.what for finding in findings(WELL)]
    assert page.tiles["differences"] == "0"
    gap = {"kind": "gap", "server": "a", "certain": True}
    page = read_page(html_page(with_rows(gaps=[gap])))
    assert (page.verdict, page.tone) == ("Needs attention", "warn")
    assert page.sentences[0] == "Replicas skipped changes in 1 place, most often a."
    assert page.tiles["skipped or repeated"] == "1"
    assert page.tables[TABLES["gaps"]] == [{"kind": "gap", "server": "a", "certain": "yes"}]
    assert "perhaps skipped or repeated" not in page.tiles
    page = read_page(html_page(with_rows(gaps=[gap, gap, {**gap, "certain": False}])))
    assert page.tiles["skipped or repeated"] == "2"
    assert page.tiles["perhaps skipped or repeated"] == "1"


def test_the_sentence_and_the_tile_count_the_same_differences() -> None:
    content = with_rows(divergence=[difference(), difference("unknown"), difference("unknown")])
    page = read_page(html_page(content))
    assert page.tiles["differences"] == "3"
    assert page.sentences[0].startswith(
        "3 differences between servers; the input explains 1, 1 of them on ber-dir2; most often"
    )


def test_the_most_urgent_comes_first_whatever_else_there_is() -> None:
    content = with_rows(
        divergence=[difference(), difference(), difference("refused", "chi-dir1")],
        hygiene=[finding("writable")],
        what_if=[failure(3), failure(1, "C - D")],
        evidence=[evidence("tampered"), evidence("missing_end")],
        errors=[{"file": "x"}],
    )
    made = findings(replace(content, cut_pairs=2))
    assert [found.gravity for found in made] == [Gravity.ERROR] * 3
    assert made[0].what.startswith("The journal of ams-dir1 is not what the server wrote")
    assert made[1].what == (
        "3 differences between servers, 2 of them on ber-dir2; most often the change was lost on "
        "the way."
    )
    assert made[1].todo.startswith("between ams-dir1 and ber-dir2: see that")
    assert made[2].what.startswith("2 pairs of sites, out of 6, cannot")


def test_single_rules() -> None:
    (worst, *_) = findings(with_rows(what_if=[failure(3), failure(1)]))
    assert worst.what == (
        "If link A - B fails, 3 pairs of sites are cut off; 1 other failure would do the same."
    )
    assert worst.todo == "add a second link for the sites of link A - B"
    (open_, *_) = findings(with_rows(hygiene=[finding("writable"), finding("writable")]))
    assert open_.what == (
        "2 objects need attention; most often (2) everyone may send to the queue."
    )
    assert open_.todo == "start with queue app1\\orders"
    (slow, *_) = findings(with_rows(lag=[way(90_000.0)]))
    assert slow.what == ("Changes take up to 90 s from ams-dir1 to chi-dir1, in 95 of 100 cases.")
    gap = {"kind": "gap", "server": "ber-dir2", "certain": True}
    (skipped, *_) = findings(with_rows(gaps=[gap, {**gap, "certain": False}]))
    assert skipped.what == "Replicas skipped changes in 1 place, most often ber-dir2."
    margin = {"psc": "ber-dir1", "authority": "ams-dir1", "margin": -3}
    (purged, *_) = findings(with_rows(margins=[margin]))
    assert purged.what.startswith("ber-dir1 missed changes")
    (unread, *_) = findings(with_rows(errors=[{}], evidence=[evidence("missing_end")]))
    assert "1 place could not be read and 1 journal or export" in unread.what


def test_a_server_that_was_healed_is_told_and_is_no_fault() -> None:
    """Only one that was told of a purge: a new authority copies partitions before it serves."""
    rounds = [
        {"server": "psc", "peer": "bsc", "already_purged": 1, "sync0_rounds": 0},
        {"server": "bsc", "peer": "psc", "already_purged": 0, "sync0_rounds": 2},
        {"server": "psc", "peer": "pec", "already_purged": 0, "sync0_rounds": 1},
    ]
    (healed,) = findings(ReportContent(MOMENT, tables={"rounds": rounds}))
    assert healed.gravity is Gravity.OK
    assert healed.todo == ""
    assert healed.what == (
        "bsc missed changes that psc had purged, and has copied everything since "
        "(2 full synchronisations)."
    )
    not_yet = {"rounds": [*rounds[:1], *rounds[2:]]}
    assert findings(ReportContent(MOMENT, tables=not_yet)) == []


def test_differences_of_the_input_alone_are_no_alarm() -> None:
    (doubtful, *_) = findings(with_rows(divergence=[difference("export_older")]))
    assert doubtful.gravity is Gravity.WARNING
    assert "cannot be judged" in doubtful.what


def test_no_tables_no_sentences() -> None:
    assert findings(ReportContent(MOMENT)) == []
    assert headings(ReportContent(MOMENT)) == []


def test_every_cause_has_words_and_advice() -> None:
    assert set(CAUSES) == set(ADVICE) == set(Cause)


def test_codes_in_words() -> None:
    content = with_rows(divergence=[difference("expired", reason="message class 0x8002")])
    assert "not delivered in time" in html_page(content)
    assert "message class 0x9999" in html_page(
        with_rows(divergence=[difference("expired", reason="message class 0x9999")])
    )


# --- the page -------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def test_findings_inventory_pictures_then_tables() -> None:
    content = with_rows(divergence=[difference()])
    text = html_page(content)
    page = Page(text)
    assert "Meridian: state of the directory" in page.text
    assert (
        "Report of 16 November 2026, 08:30, period 9 November 2026, 07:00 to 13 November 2026, "
        "18:45 (UTC)." in page.text
    )
    names = headings(content)
    assert names[:4] == [
        "In short",
        "Inventory",
        "Queues by site",
        "Differences between servers",
    ]
    assert names.index("Single failures") < names.index("All differences")
    assert "1,200" in page.text
    assert "4,321" in page.text
    assert "label, quota" in page.text
    assert "lost on the way" in page.text
    assert not re.search(r"\bnever_sent|\blost\n|export_older", page.text)
    assert text.count("<svg") >= 4


def test_the_map_is_a_picture_of_its_own() -> None:
    """Its style and its names cannot leave the image; without a map there is no section."""
    drawing = f"<svg xmlns='http://www.w3.org/2000/svg'><text>{NASTY}</text></svg>"
    content = replace(WELL, sitemap=drawing)
    assert headings(content)[2] == "Sites and links"
    assert "Sites and links" not in headings(WELL)
    page = Page(html_page(content))
    (image,) = [found for tag, found in page.elements if tag == "img"]
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert b64decode(data).decode() == drawing
    assert "alert(1)" not in page.text


def test_limits_of_the_check_are_told() -> None:
    limit = {"check": "no_gate", "reason": "gates are not replicated", "advice": "export the PEC"}
    content = with_rows(hygiene_limits=[{**limit, "left_out": 2}])
    names = headings(content)
    assert names[names.index("Objects that need attention") + 1] == "What these exports cannot show"
    text = Page(html_page(content)).text
    for word in ("no gate", "gates are not replicated", "what to do", "export the PEC"):
        assert word in text
    sentences = [found.what for found in findings(content)]
    assert sum("as far as the exports show" in sentence for sentence in sentences) == 1
    assert "as far as" not in " ".join(found.what for found in findings(WELL))


def test_paper_shows_every_row() -> None:
    content = with_rows(divergence=[difference()] * 40)
    assert "<details><summary>40 rows" in html_page(content)
    assert "<details>" not in html_page(content, unfolded=True)


def test_more_rows_than_fit_are_counted() -> None:
    many = with_rows(divergence=[difference()] * 120)
    assert "20 more rows are in the tables." in html_page(many)
    counted = replace(many, totals={"divergence": 5000})
    assert "4,900 more rows are in the tables." in html_page(counted)


NASTY = "</style><script>alert(1)</script>\"'&\x1b[31m<img src=x onerror=alert(2)>"


@pytest.mark.req("SEC-12-13")
def test_names_stay_text() -> None:
    """Everybody who may create a queue chooses words of this page."""
    rows = {
        "divergence": [difference(server=NASTY, path=NASTY, authority=NASTY, reason=NASTY)],
        "hygiene": [{**finding(NASTY, NASTY), "explanation": NASTY}],
        "what_if": [failure(3, NASTY)],
        "lag": [{**way(90_000.0), "origin": NASTY, "server": NASTY}],
        "traffic": [
            {"kind": NASTY, "name": NASTY, "messages": 1.0, "messages_after": 1.0}
            | {"failed": NASTY}
        ],
        "evidence": [{**evidence("tampered"), "server": NASTY, "explanation": NASTY}],
    }
    inventory = [{"partition": NASTY, "type": "queue", "count": 3}]
    activity = [{"moment": 1794300000, "origin": NASTY, "changes": 41}]
    content = replace(with_rows(**rows), enterprise=NASTY, inventory=inventory, activity=activity)
    page = Page(html_page(content))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "form", "base"}
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
    assert {found.get("http-equiv") for tag, found in page.elements if tag == "meta"} == {
        None,
        "Content-Security-Policy",
    }
    assert page.text.count("alert(1)") > 10
