"""Every page, read without JavaScript over plain HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.views.console.server_places import NotShownError, Places
from mqis.web.console import Assets
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.asking import Answer, Visitor, eventually
from tests.web.enterprise import PEC, PSC, Enterprise

PAGES = (
    "/",
    "/map",
    "/map?from=ams-desk1&to=chi-app1",
    "/replication",
    "/servers",
    f"/servers/{PEC}",
    "/alerts",
    "/directory",
    "/directory?type=machine",
    "/journal",
    "/undelete",
    "/pipeline",
    "/pipeline/table/lag",
    "/statistics",
    "/sessions",
    "/login",
)


def first_object(answer: Answer, kind: str = "queue") -> str:
    match = re.search(rf'href="(/directory/{kind}/[0-9a-f-]{{36}})[?"]', answer.html)
    assert match is not None
    return match[1]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_and_guarded(administrator: Visitor, path: str) -> None:
    answer = administrator.get(path)
    assert answer.status == 200, answer.text
    for part in ('<html lang="en">', "<main id=", 'aria-label="Pages"', "Skip to the content"):
        assert part in answer.html
    assert answer.html.count("<h1>") == 1
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert re.search(r"<script(?![^>]*(src=|application/json))", answer.html) is None
    assert re.search(r"\s(style|on[a-z]+)=", answer.html) is None
    outside = re.findall(r'(?:src|href)="(?!/|#|\?)([^"]*)"', answer.html)
    assert outside == []


# --- static files ---------------------------------------------------------------------------------


def test_files_have_addresses_that_name_their_content(administrator: Visitor) -> None:
    found = {each for page in PAGES for each in _static(administrator.get(page))}
    assert {each.partition("?")[0].rpartition("/")[2] for each in found} >= {
        *("console.css", "console.js", "icon.svg")
    }
    for address in found:
        answer = administrator.get(address)
        assert answer.status == 200
        assert address.endswith(f"?v={sha256(answer.body).hexdigest()[:16]}"), address
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        for other in ("", "?v=0123456789abcdef", "?v="):
            again = administrator.get(address.partition("?")[0] + other)
            assert again.headers["Cache-Control"] == "no-cache", "it is another file tomorrow"


def _static(answer: Answer) -> list[str]:
    return re.findall(r'(?:src|href)="(/static/[^"]*)"', answer.html)


def test_a_file_that_is_replaced_gets_another_address(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a")
    assets = Assets(tmp_path)
    before = assets.address("a.css")
    assert assets.address("a.css") == before
    (tmp_path / "new").write_text("b")
    (tmp_path / "new").replace(tmp_path / "a.css")
    assert assets.address("a.css") != before


# --- overview and replication ---------------------------------------------------------------------


def test_the_overview_draws_the_recent_past_and_tells_it(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    enterprise.run(enterprise.create_queue("ams-app1\\charted", "counted"))
    eventually(lambda: 'class="line"' in visitor.get("/").html)
    answer = visitor.get("/")
    figures = re.findall(r'<figcaption id="chart-(\w+)">', answer.html)
    assert figures == ["lag", "changes", "waiting", "sessions"]
    described = 'aria-labelledby="chart-lag chart-lag-text"'
    assert described in answer.html
    assert re.search(r'<p id="chart-lag-text">Now [\d,]+ changes behind', answer.html)
    assert "in the last 5 min" in answer.text
    alone = visitor.get(f"/?of={PSC}")
    assert f"The last hour of {PSC}" in alone.text
    assert 'data-live="charts"' not in alone.html
    assert visitor.get("/?of=nobody").status == 404


def test_the_overview_counts_and_names(visitor: Visitor) -> None:
    text = visitor.get("/").text
    assert "Meridian" in text
    assert re.search(r"20 machines\b", text)
    assert f"{PEC} PEC Amsterdam up" in text
    assert f"{PSC} PSC Berlin up" in text


def test_the_matrix_has_every_partition_at_every_server(visitor: Visitor) -> None:
    html = visitor.get("/replication").html
    cells = re.findall(r'data-cell="(\S+) (\S+)"', html)
    assert {server for server, _ in cells} == {PEC, PSC}
    assert len(cells) == 2 * 4
    amsterdam = re.search(r"Amsterdam<br>.*?</tr>", html, re.DOTALL)
    assert amsterdam is not None
    assert "authority" in amsterdam[0]
    assert re.search(r"[0-9a-f]{16}", amsterdam[0])


def test_counters_of_all_servers_stand_side_by_side(visitor: Visitor) -> None:
    text = visitor.get("/statistics").text
    for word in ("commits", "calls", "sessions", "journal records"):
        assert word in text


# --- directory ------------------------------------------------------------------------------------


def test_a_search_looks_at_names_and_labels(visitor: Visitor) -> None:
    assert "6 queues with “INCOMING”" in visitor.get("/directory?q=INCOMING").text
    assert "1 queue with “chi-host1\\”" in visitor.get("/directory?q=chi-host1%5C").text
    assert "1 machine with “ber-dir2”" in visitor.get("/directory?type=machine&q=ber-dir2").text
    assert "1 link with “satellite”" in visitor.get("/directory?type=link&q=satellite").text
    assert "0 queues" in visitor.get("/directory?q=%00%ff").text


def test_lists_have_pages(visitor: Visitor) -> None:
    first, second = visitor.get("/directory"), visitor.get("/directory?page=2")
    assert "page 1 of 2" in first.text
    assert 'rel="next" href="/directory?type=queue&amp;page=2"' in first.html
    assert "page 2 of 2" in second.text
    assert first_object(first) != first_object(second)
    for beyond in ("99", "0", "-1", "x", "9" * 30):
        assert visitor.get(f"/directory?page={beyond}").status == 200


def test_an_object_shows_everything(administrator: Visitor) -> None:
    answer = administrator.get(first_object(administrator.get("/directory?q=ams-app1%5Cpayments")))
    assert "PROPID_Q_PRIV_LEVEL" in answer.text
    assert "O:BAG:BAD:P(A;;GA;;;BA)(A;;0x20026;;;AU)" in answer.text
    assert "Administrators (S-1-5-32-544) allowed full control" in answer.text
    assert "Authenticated users (S-1-5-11) allowed peek message, write message" in answer.text
    machine = first_object(answer, "machine")
    assert "ams-app1" in administrator.get(machine).text


@pytest.mark.parametrize("kind", ["machine", "site", "link", "network", "user", "enterprise"])
def test_objects_of_every_type_have_a_page(administrator: Visitor, kind: str) -> None:
    page = first_object(administrator.get(f"/directory?type={kind}"), kind)
    assert administrator.get(page).status == 200


def test_the_history_comes_from_the_journals_of_all(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    made = enterprise.run(enterprise.create_queue("ams-app1\\history", "seen"))
    page = f"/directory/queue/{made}"
    eventually(lambda: f"{PSC} applied create queue" in visitor.get(page).text)
    eventually(lambda: f"{PEC} local create queue" in visitor.get(page).text)


def test_what_others_call_their_queues_is_text_and_nothing_else(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    label = "<script>alert(1)</script>\"'&\ud800"
    made = enterprise.run(enterprise.create_queue("ams-app1\\odd", label))
    for page in (
        f"/directory/queue/{made}",
        "/directory?q=odd",
        f"/directory?q={quote('<script')}",
    ):
        answer = visitor.get(page)
        assert answer.status == 200
        assert "<script>alert" not in answer.html
        assert "<script>alert(1)</script>\"'&" in answer.text or "script" in answer.text


def test_another_server_shows_its_own_replica(administrator: Visitor) -> None:
    answer = administrator.get(f"/directory?server={PSC}&type=site")
    assert f"as {PSC} has them" in answer.text
    assert "3 sites" in answer.text


# --- journal --------------------------------------------------------------------------------------


def test_journals_are_filtered_and_paged(visitor: Visitor) -> None:
    newest = visitor.get(f"/journal?server={PSC}")
    assert newest.html.count('<th scope="row" class="number">') == 50
    older = re.search(r'rel="next" href="(/journal\?[^"]+)"', newest.html)
    assert older is not None
    assert visitor.get(older[1].replace("&amp;", "&")).status == 200
    applied = visitor.get(f"/journal?server={PSC}&state=applied&what=create+site")
    states = re.findall(r'<span class="tag [a-z]*">(\w+)</span>', applied.html)
    assert set(states) <= {"applied"}
    assert "no records found" in visitor.get(f"/journal?server={PSC}&peer=nobody").text


def test_the_journal_hides_heartbeats_and_names_objects(
    visitor: Visitor, administrator: Visitor, enterprise: Enterprise
) -> None:
    made = enterprise.run(enterprise.create_queue("ams-app1\\journalled", "named"))
    about = f"/journal?server={PSC}&object=AMS-APP1%5Cjournalled"
    link = f'<a href="/directory/queue/{made}?server={PSC}">ams-app1\\journalled</a>'
    eventually(lambda: link in visitor.get(about).html)
    messages = f"/journal?server={PSC}&kind=message&state=received"
    brought = "create ams-app1\\journalled ("
    assert brought in administrator.get(messages).text
    assert brought not in visitor.get(messages).text, "the content is for administrators"
    eventually(lambda: "heartbeat" in _names(visitor.get(f"{messages}&heartbeats=yes")))
    quiet = visitor.get(messages)
    assert "heartbeat" not in _names(quiet)
    assert re.search(r"\d+ records of heartbeats between these are hidden: show them", quiet.text)
    missing = visitor.get("/journal?object=nobody&what=kept&state=queued")
    assert missing.status == 400
    assert 'aria-describedby="object-wrong"' in missing.html
    assert 'value="nobody"' in missing.html
    assert 'value="kept"' in missing.html


def _names(answer: Answer) -> set[str]:
    """The names of the records in a list."""
    return set(re.findall(r"</span></td><td>([^<]*)</td>", answer.html))


def test_a_record_is_decoded(administrator: Visitor) -> None:
    listed = administrator.get(f"/journal?server={PSC}&kind=message&state=received")
    lsn = re.search(rf'href="/journal/{PSC}/(\d+)"', listed.html)
    assert lsn is not None
    answer = administrator.get(f"/journal/{PSC}/{lsn[1]}")
    assert "Body, decoded" in answer.text
    assert 'class="key"' in answer.html
    assert administrator.get(f"/journal/{PSC}/99999999").status == 404


# --- pipeline -------------------------------------------------------------------------------------


def test_tables_are_listed_and_summed_up(administrator: Visitor) -> None:
    text = administrator.get("/pipeline").text
    assert "divergence v000003" in text
    assert "The last audit found differences" in text
    assert "ber-dir1 lost 2" in text
    page = administrator.get("/pipeline/table/lag")
    assert "12.5" in page.text
    assert '<td class="number">12.5</td>' in page.html
    assert "1 row" in page.text


def test_hygiene_findings_are_explained(administrator: Visitor) -> None:
    assert "everyone may send to the queue queue 3" in administrator.get("/pipeline").text
    rows = administrator.get("/pipeline/table/hygiene").text
    assert "writable everyone may send to the queue queue" in rows


def test_the_report_may_do_nothing_but_look_good(administrator: Visitor) -> None:
    answer = administrator.get("/pipeline/report.html")
    assert answer.status == 200
    assert "All replicas agree." in answer.html
    policy = answer.headers["Content-Security-Policy"]
    assert "sandbox" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy


# --- a single store -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_a_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    path = tmp_path_factory.mktemp("store") / "meridian.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    with running_console(ConsoleSettings(Places(stores=(str(path),)), port=0)) as url:
        yield Visitor(url)


@pytest.mark.parametrize("path", ["/", "/map", "/replication", "/directory", "/statistics"])
def test_a_store_alone_will_do(of_a_store: Visitor, path: str) -> None:
    assert of_a_store.get(path).status == 200


def test_what_a_store_does_not_have_is_said(of_a_store: Visitor) -> None:
    assert "There is no journal to show" in of_a_store.get("/journal").text
    assert "No tables were named" in of_a_store.get("/pipeline").text
    assert "only has files" in of_a_store.get("/login").text
    assert of_a_store.get("/directory/create").status == 303


def test_something_there_has_to_be(tmp_path: Path) -> None:
    with pytest.raises(NotShownError, match="nothing to show"):
        Places()
