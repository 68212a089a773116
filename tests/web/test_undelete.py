"""Undelete in the console: seen first, then brought back, without JavaScript."""

from __future__ import annotations

import re
from contextlib import closing
from urllib.parse import quote

import pytest

from mqis.config.stores import open_store
from mqis.views.console import undeletion
from mqis.views.console.undeletion import request_of
from mqis.views.console.visitor_changes import FormError
from mqis.wire.mqds.objecttype import ObjectType
from tests.web.asking import Answer, Visitor, eventually
from tests.web.enterprise import ALICE, BOB, BOBS_PASSWORD, PEC, Enterprise

QUEUES = "/undelete?type=queue"


def identifier(enterprise: Enterprise, path: str) -> str:
    url = enterprise.servers[PEC].config.store.url
    with closing(open_store(url)) as store, store.read() as view:
        found = view.find(ObjectType.QUEUE, path)
    return "" if found is None else str(found.id)


def lose(visitor: Visitor, enterprise: Enterprise, name: str) -> str:
    """Creates a queue and deletes it; returns its identifier."""
    path = f"ams-app1\\{name}"
    fields = {"path": path, "label": "lost <b>and</b> found"}
    assert visitor.submit("/directory/create", "/directory/create", fields).status == 303
    found = identifier(enterprise, path)
    page = f"/directory/queue/{found}/delete"
    assert visitor.submit(page, page, {}).status == 303
    assert identifier(enterprise, path) == ""
    eventually(lambda: found in visitor.get(f"{QUEUES}&name={found}").html)
    return found


def fields_of(shown: Answer) -> dict[str, str]:
    form = shown.html.partition('method="post" action="/undelete"')[2]
    return dict(re.findall(r'name="([a-z]+)" value="([^"]*)"', form.partition("</form>")[0]))


def test_a_queue_is_found_and_brought_back(administrator: Visitor, enterprise: Enterprise) -> None:
    lost = lose(administrator, enterprise, "lost-one")
    everything = administrator.get("/undelete")
    assert f'href="/undelete?type=queue&amp;name={lost}"' in everything.html
    assert 'method="post" action="/undelete"' not in everything.html, "all of it at once is a slip"
    shown = administrator.get(f"{QUEUES}&name={quote('ams-app1' + chr(92) + 'lost-one')}")
    for text in ("ams-app1\\lost-one", ALICE, PEC, "Bring 1 object back"):
        assert text in shown.text
    done = administrator.post("/undelete", fields_of(shown))
    assert (done.status, "1 object is back" in done.text) == (200, True), done.text
    assert identifier(enterprise, "ams-app1\\lost-one") == lost
    again = administrator.post("/undelete", fields_of(shown))
    assert again.status == 404, "a reload of the page changes nothing"
    assert 'href="/undelete"' in administrator.get("/journal").html


@pytest.mark.req("SEC-12-16")
def test_what_nobody_has_seen_stays_deleted(administrator: Visitor, enterprise: Enterprise) -> None:
    lose(administrator, enterprise, "seen")
    shown = administrator.get("/undelete?by=alice&under=ams-app1")
    lose(administrator, enterprise, "not-seen")
    answer = administrator.post("/undelete", fields_of(shown))
    assert answer.status == 409
    assert "look at them again" in answer.text
    assert "ams-app1\\not-seen" in answer.text
    assert identifier(enterprise, "ams-app1\\seen") == ""
    nothing = {**fields_of(shown), "by": "", "under": ""}
    assert "say which objects" in administrator.post("/undelete", nothing).text


def test_what_is_wrong_is_said_on_the_page(administrator: Visitor) -> None:
    wrong = administrator.get("/undelete?at=yesterday")
    assert (wrong.status, 'id="at-wrong"' in wrong.html) == (400, True)
    missing = administrator.get("/undelete?type=queue&name=x%5Cy")
    assert (missing.status, "no deleted queue" in missing.text) == (404, True)
    with pytest.raises(FormError):
        request_of({"type": "dragon"})


@pytest.mark.req("SEC-12-16")
def test_a_page_brings_back_so_many(
    administrator: Visitor, enterprise: Enterprise, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose(administrator, enterprise, "one-too-many")
    shown = administrator.get(f"{QUEUES}&name={lost}")
    monkeypatch.setattr(undeletion, "MOST_AT_ONCE", 0)
    assert "too many for a page" in administrator.get(f"{QUEUES}&name={lost}").text
    assert administrator.post("/undelete", fields_of(shown)).status == 409
    assert identifier(enterprise, "ams-app1\\one-too-many") == ""


@pytest.mark.req("SEC-12-16")
def test_only_administrators_see_and_undelete(
    visitor: Visitor, administrator: Visitor, enterprise: Enterprise
) -> None:
    lost = lose(administrator, enterprise, "coveted")
    page = f"{QUEUES}&name={lost}"
    fields = fields_of(administrator.get(page))
    assert visitor.get(page).location.startswith("/login?next="), "not logged in"
    assert visitor.post("/undelete", fields).status in (303, 403)
    assert visitor.log_in(BOB, BOBS_PASSWORD).status == 303
    own = visitor.get("/directory/create").csrf
    for answer in (visitor.get(page), visitor.post("/undelete", {**fields, "csrf": own})):
        assert (answer.status, "MQ_ERROR_ACCESS_DENIED" in answer.text) == (403, True)
        assert "coveted" not in answer.text
    for token in ("", own, "0" * 64):
        assert administrator.post("/undelete", {**fields, "csrf": token}).status == 403
    assert identifier(enterprise, "ams-app1\\coveted") == ""
