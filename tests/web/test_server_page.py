"""The page of a server: everything about it, its log and its sessions for administrators alone."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from mqis import __version__
from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.asking import Visitor, eventually
from tests.web.enterprise import ALICE, BOB, BOBS_PASSWORD, PEC, PSC, Enterprise

SECRET = "logon refused user=LAB-mallory"
HOSTILE = '2026-11-17T08:00:02Z error mqis.x: <script>alert("log")</script>\x1b[31m\u202e{{7*7}}'


@pytest.fixture
def log(enterprise: Enterprise) -> Path:
    path = enterprise.home / PEC / "log"
    lines = (f"2026-11-17T08:00:01Z warning mqis.audit: {SECRET}", HOSTILE, "unfinished")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_facts_of_a_running_server(administrator: Visitor) -> None:
    html = administrator.get(f"/servers/{PEC.upper()}").html
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", html))
    assert facts["role"] == "PEC"
    assert facts["site"] == "Amsterdam"
    assert facts["state"] == "up"
    assert facts["version"] == __version__
    assert re.fullmatch(r"\d+(\.\d)? MiB", facts["memory"])
    assert re.search(r"GiB \(journal\), .*\(store\)|MiB \(journal\)", facts["disk left"])
    assert re.fullmatch(r"\d+ of \d+", facts["sessions with servers"])
    neighbours = html.partition('aria-label="Neighbours">')[2].partition("</table>")[0]
    assert f'href="/servers/{PSC}"' in neighbours
    assert all(f'href="/servers/{name}"' in administrator.get("/").html for name in (PEC, PSC))
    assert f'href="/servers/{PEC}"' in administrator.get("/replication").html
    assert f'href="/servers/{PEC}"' in administrator.get("/statistics").html


@pytest.mark.req("SEC-9-01")
@pytest.mark.usefixtures("log")
def test_administrators_see_log_lines_and_sessions(administrator: Visitor) -> None:
    page = administrator.get(f"/servers/{PEC}")
    assert SECRET in page.html
    assert "<script>alert" not in page.html
    assert "&lt;script&gt;alert(&#34;log&#34;)" in page.html, "a log line is text"
    assert "{{7*7}}" in page.html
    assert "unfinished" not in page.text, "a line is shown when it is whole"
    assert page.html.index("7*7") < page.html.index(SECRET), "the newest first"
    sessions = page.html.partition('id="sessions"')[2].partition("</section>")[0]
    assert ALICE in sessions
    # The login is at the other server: this one is not asked in the visitor's name.
    other = administrator.get(f"/servers/{PSC}").html
    assert ALICE not in other.partition('id="sessions"')[2].partition("</section>")[0]


@pytest.mark.req("SEC-9-01")
@pytest.mark.usefixtures("log")
def test_others_see_neither(console: str, visitor: Visitor) -> None:
    bob = Visitor(console)
    assert bob.log_in(BOB, BOBS_PASSWORD).status == 303
    for each in (visitor, bob):
        page = each.get(f"/servers/{PEC}")
        assert page.status == 200
        assert "Only administrators of ams-dir1 see its log lines" in page.text
        assert "mallory" not in page.html
        assert "alert(" not in page.html
        assert 'class="log"' not in page.html
        sessions = page.html.partition('id="sessions"')[2].partition("</section>")[0]
        assert "127.0.0.1" not in sessions
        assert "bob" not in sessions


@pytest.mark.req("SEC-9-01")
@pytest.mark.parametrize(
    "name", ["../ams-dir1/log", "..%2F..%2Fetc", "<b>x</b>", "ams-dir1%00", "%ff%fe", "nobody"]
)
def test_only_servers_have_a_page(administrator: Visitor, name: str) -> None:
    answer = administrator.get(f"/servers/{quote(name, safe='%')}")
    assert answer.status == 404
    assert "<b>x</b>" not in answer.html


@pytest.mark.usefixtures("log")
def test_a_log_that_is_long_is_read_from_its_end(
    enterprise: Enterprise, log: Path, settings: ConsoleSettings
) -> None:
    with log.open("ab") as file:
        file.write(b"\n" + b"x" * 100 + b"\n")
        file.writelines(b"2026-11-17T09:00:00Z info mqis.y: line %d\n" % n for n in range(20_000))
    guest = ConsoleSettings(Places(enterprise.home), port=0, guest=Guest.parse("administrator"))
    assert settings.guest.is_anonymous
    with running_console(guest) as url:
        html = Visitor(url).get(f"/servers/{PEC}").html
    lines = re.findall(r'<li class="info">(.*?)</li>', html)
    assert [line.rpartition(" ")[2] for line in lines] == [
        str(n) for n in reversed(range(19_960, 20_000))
    ]


def test_a_pipeline_that_has_not_run_names_a_command_that_works(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    settings = ConsoleSettings(Places(enterprise.home), tmp_path / "no tables", port=0)
    with running_console(settings) as url:
        text = Visitor(url).get("/pipeline").text
    command = f"mqis pipeline run --run {enterprise.home} --tables '{tmp_path}/no tables'"
    assert command in text


def test_malformed_requests_fill_no_log(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    import socket

    answered = 0
    for _ in range(25):
        with socket.create_connection((visitor.host, visitor.port or 0), timeout=10) as sent:
            sent.sendall(b"\x16\x03\x01 this is no request\r\n\r\n")
            answered += sent.recv(100).startswith(b"HTTP/1.1 400")
    assert answered == 25

    def told() -> list[str]:
        return [r.getMessage() for r in caplog.records if "Invalid HTTP" in r.getMessage()]

    eventually(lambda: len(told()) > 0)
    assert len(told()) <= 10
