"""Logging in and changing things: the server's rights decide, and the audit trail tells."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from mqis.views.presentation.properties import PropertyError, parse_value
from mqis.web.browser_sessions import COOKIE
from mqis.web.console_settings import ConsoleSettings
from mqis.web.limiting import Limiter
from mqis.web.serving import running_console
from mqis.wire.mqds.propid import PropId
from tests.web.asking import Visitor
from tests.web.enterprise import ALICE, BOB, BOBS_PASSWORD, PEC, PSC, Enterprise


@contextmanager
def audited() -> Iterator[list[str]]:
    """The audit lines, with their details."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.getMessage()} {getattr(record, 'details', {})}")

    log, kept = logging.getLogger("mqis.audit"), Keep()
    level = log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        log.removeHandler(kept)
        log.setLevel(level)


def test_a_login_gives_a_new_cookie_that_scripts_cannot_see(visitor: Visitor) -> None:
    visitor.get("/login")
    before = visitor.cookies[COOKIE]
    with audited() as lines:
        answer = visitor.log_in(back="/replication")
    assert (answer.status, answer.location) == (303, "/replication")
    assert visitor.cookies[COOKIE] != before
    flags = answer.headers["Set-Cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert f"Logged in as {ALICE} at {PEC}" in visitor.get("/").text
    assert any("console: logged in" in line and "alice" in line for line in lines)
    assert not any("rabbit" in line for line in lines)


def test_a_wrong_password_is_refused_and_told(visitor: Visitor) -> None:
    with audited() as lines:
        answer = visitor.log_in(password="wonderland")
    assert answer.status == 401
    assert "refused the logon of LAB\\alice" in answer.text
    assert "wonderland" not in answer.html
    assert "Reading only" in visitor.get("/").text
    assert any("console: login refused" in line for line in lines)


@pytest.mark.parametrize(
    "back", ["//evil.example/", "/\\evil.example", "https://evil.example", "/logout"]
)
def test_a_login_leads_nowhere_else(visitor: Visitor, back: str) -> None:
    assert visitor.log_in(back=back).location == "/directory"


def test_logging_out_ends_the_session(visitor: Visitor) -> None:
    visitor.log_in()
    old = dict(visitor.cookies)
    assert visitor.submit("/", "/logout", {}).status == 303
    assert "Reading only" in visitor.get("/").text
    visitor.cookies = old
    assert "Reading only" in visitor.get("/").text, "the old cookie is worth nothing any more"


def test_a_change_wants_a_login(visitor: Visitor) -> None:
    visitor.get("/login")
    for path in ("/directory/create", f"/directory/queue/{PEC}/set"):
        answer = visitor.post(path, {"path": "ams-app1\\x"})
        assert answer.status == 303
        assert answer.location.startswith("/login")


@pytest.mark.parametrize("csrf", ["", "0" * 64, "\N{SNOWMAN}"])
@pytest.mark.req("SEC-12-16")
def test_a_form_without_its_token_changes_nothing(
    visitor: Visitor, enterprise: Enterprise, csrf: str
) -> None:
    visitor.log_in()
    path = "ams-app1\\forged"
    answer = visitor.post("/directory/create", {"path": path, "csrf": csrf})
    assert answer.status == 403
    assert enterprise.run(enterprise.label(path)) is None


def test_a_token_of_somebody_else_is_none(visitor: Visitor, console: str) -> None:
    visitor.log_in()
    other = Visitor(console)
    other.log_in(BOB, BOBS_PASSWORD)
    token = other.get("/directory/create").csrf
    answer = visitor.post("/directory/create", {"path": "ams-app1\\forged", "csrf": token})
    assert answer.status == 403


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}]
)
def test_a_form_from_another_site_is_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    visitor.log_in()
    csrf = visitor.get("/directory/create").csrf
    fields = {"path": "ams-app1\\forged", "csrf": csrf}
    assert visitor.post("/directory/create", fields, **headers).status == 403


def test_the_administrator_creates_sets_and_deletes(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    visitor.log_in()
    path = "ams-app1\\from-console"
    fields = {"path": path, "label": "made here", "transaction": "yes"}
    with audited() as lines:
        made = visitor.submit("/directory/create", "/directory/create", fields)
        assert made.status == 303, made.text
        page = made.location.partition("?")[0]
        assert enterprise.run(enterprise.label(path)) == "made here"
        shown = visitor.get(made.location)
        assert "The queue was created." in shown.text
        assert "transaction yes" in shown.text
        change = visitor.submit(page, f"{page}/set", {"property": "label", "value": "changed"})
        assert change.status == 303, change.text
        assert enterprise.run(enterprise.label(path)) == "changed"
        gone = visitor.submit(f"{page}/delete", f"{page}/delete", {})
        assert gone.status == 303, gone.text
    assert enterprise.run(enterprise.label(path)) is None
    assert visitor.get(page).status == 404
    verbs = [line.split(" {")[0] for line in lines if line.startswith("console:")]
    assert verbs == ["console: create", "console: set", "console: delete"]
    assert all("LAB\\\\alice" in line for line in lines if line.startswith("console:"))


def test_the_server_denies_who_may_not(visitor: Visitor, enterprise: Enterprise) -> None:
    visitor.log_in(BOB, BOBS_PASSWORD)
    with audited() as lines:
        answer = visitor.submit(
            "/directory/create", "/directory/create", {"path": "ams-dir1\\bobs", "label": "mine"}
        )
    assert answer.status == 403
    assert "MQ_ERROR_ACCESS_DENIED" in answer.text
    assert 'value="ams-dir1\\bobs"' in answer.html, "what was filled in is still there"
    assert enterprise.run(enterprise.label("ams-dir1\\bobs")) is None
    assert any(line.startswith("console: create denied") and "bob" in line for line in lines)


def test_a_change_through_another_server_is_forwarded(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    visitor.log_in(server=PSC)
    fields = {"path": "ams-app2\\via-berlin", "label": "forwarded"}
    answer = visitor.submit("/directory/create", "/directory/create", fields)
    assert answer.status == 303, answer.text
    assert enterprise.run(enterprise.label(fields["path"])) == "forwarded"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"path": "no-machine"}, r"the path of a queue must be MACHINE\QUEUE"),
        ({"path": "nowhere\\q"}, "MQ_ERROR"),
        ({"path": "ams-app1\\orders"}, "MQ_ERROR_QUEUE_EXISTS"),
        ({"path": "ams-app1\\q", "scope": "galaxy"}, "wants one of site, enterprise"),
    ],
)
def test_what_cannot_be_created_is_explained(
    visitor: Visitor, fields: dict[str, str], told: str
) -> None:
    visitor.log_in()
    answer = visitor.submit("/directory/create", "/directory/create", fields)
    assert 400 <= answer.status < 500
    assert told in answer.text


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"path": "no-machine", "label": "kept", "scope": "galaxy"}, ("path", "scope")),
        ({"path": "ams-app1\\orders", "label": "kept"}, ("path",)),
        ({"path": "nowhere\\q", "label": "kept"}, ("path",)),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(
    visitor: Visitor, fields: dict[str, str], wrong: tuple[str, ...]
) -> None:
    visitor.log_in()
    answer = visitor.submit("/directory/create", "/directory/create", fields)
    for name in wrong:
        assert f'aria-invalid="true" aria-describedby="{name}-wrong"' in answer.html
        assert f'<span class="wrong" id="{name}-wrong">' in answer.html
        assert f'<a href="#{name}">' in answer.html
    assert answer.html.count('aria-invalid="true"') == len(wrong)
    assert f'value="{fields["path"]}"' in answer.html
    assert 'value="kept"' in answer.html


def test_a_value_that_is_refused_stays_in_its_form(visitor: Visitor) -> None:
    visitor.log_in()
    page = "/directory/queue/" + first_id(visitor, "/directory?q=ams-app1%5Corders")
    fields = {"property": "quota", "value": "a lot"}
    answer = visitor.submit(page, f"{page}/set", fields)
    assert answer.status == 400
    assert "<h1>ams-app1\\orders</h1>" in answer.html
    assert 'value="a lot" aria-invalid="true" aria-describedby="value-wrong"' in answer.html
    assert '<option value="quota" selected>' in answer.html
    assert "wants a number" in answer.text
    unknown = visitor.submit(page, f"{page}/set", {"property": "colour", "value": "red"})
    assert unknown.status == 400
    assert 'id="property-wrong"' in unknown.html


def first_id(visitor: Visitor, page: str) -> str:
    found = re.search(r'href="/directory/queue/([0-9a-f-]{36})', visitor.get(page).html)
    assert found is not None
    return found[1]


def test_a_login_that_fails_keeps_name_and_server(visitor: Visitor) -> None:
    answer = visitor.log_in(password="wrong", server=PSC)
    assert f'<option value="{PSC}" selected>' in answer.html
    assert f'value="{ALICE}"' in answer.html
    assert '<span class="wrong" id="password-wrong">' in answer.html
    empty = visitor.log_in(user=" ", password="")
    assert empty.status == 400
    assert 'id="user-wrong"' in empty.html
    assert 'id="password-wrong"' in empty.html


def test_what_was_typed_survives_the_end_of_the_session(settings: ConsoleSettings) -> None:
    with running_console(replace(settings, most_sessions=1)) as url:
        visitor, other = Visitor(url), Visitor(url)
        visitor.log_in()
        csrf = visitor.get("/directory/create").csrf
        other.log_in(BOB, BOBS_PASSWORD)  # which ends the first session
        typed = {"path": "ams-app1\\typed", "label": "a & b", "csrf": csrf}
        answer = visitor.post("/directory/create", typed)
        assert answer.status == 303
        back = parse_qs(urlsplit(answer.location).query)["next"][0]
        assert csrf not in back
        again = visitor.get(visitor.log_in(back=back).location)
        assert 'value="ams-app1\\typed"' in again.html
        assert 'value="a &amp; b"' in again.html
        long = visitor.post("/directory/create", {**typed, "label": "x" * 4000, "csrf": "0"})
        assert "xxx" not in long.location


def test_a_value_from_a_browser_never_names_a_file_here() -> None:
    class Nobody:
        def name_of(self, *_: object) -> None:
            return None

        def id_of(self, *_: object) -> None:
            return None

    assert parse_value(PropId.U_SIGN_CERT, "@/dev/null", Nobody()).value == b""
    with pytest.raises(PropertyError):
        parse_value(PropId.U_SIGN_CERT, "@/dev/null", Nobody(), files=False)


def test_who_tries_too_often_has_to_wait(settings: ConsoleSettings) -> None:
    with running_console(replace(settings, logins_per_name=2)) as url:
        visitor = Visitor(url)
        for _ in range(2):
            assert visitor.log_in(password="guess").status == 401
        with audited() as lines:
            answer = visitor.log_in()
        assert answer.status == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert any("too many logins" in line for line in lines)
        assert visitor.log_in(BOB, BOBS_PASSWORD).status == 303, "another name may"


def test_an_idle_session_ends(settings: ConsoleSettings) -> None:
    with running_console(replace(settings, idle_s=0.0)) as url:
        visitor = Visitor(url)
        assert visitor.log_in().status == 303
        with audited() as lines:
            assert "Reading only" in visitor.get("/").text
        assert any("session ended" in line and "idle" in line for line in lines)


def test_sessions_are_bounded(settings: ConsoleSettings) -> None:
    with running_console(replace(settings, most_sessions=1)) as url:
        first, second = Visitor(url), Visitor(url)
        first.log_in()
        second.log_in(BOB, BOBS_PASSWORD)
        assert "Reading only" in first.get("/").text
        assert "bob" in second.get("/").text


def test_a_limiter_forgets_in_time() -> None:
    now = 0.0
    limiter = Limiter(2, 60, lambda: now)
    assert [limiter.wait_s("a") for _ in range(3)] == [0, 0, 60]
    assert limiter.wait_s("b") == 0
    now = 61.0
    assert limiter.wait_s("a") == 0
