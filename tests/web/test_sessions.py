"""Who is connected to a server, in the console, and visitors whose logon has ended."""

from __future__ import annotations

import re

import pytest

from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS
from tests.web.asking import Answer, Visitor, eventually
from tests.web.enterprise import ALICE, BOB, BOBS_PASSWORD, PEC, Enterprise

ROW = re.compile(r'<tr><th scope="row">([^<]*)</th>.*?(?:name="id" value="(\d+)"|this console)')


def sessions_of(shown: Answer) -> list[tuple[str, str]]:
    """The accounts and identifiers; the visitor's own session has none."""
    return ROW.findall(shown.html)


def connections_of(enterprise: Enterprise, account: str) -> int:
    rpc = enterprise.servers[PEC]._rpc
    assert rpc is not None
    names = [str(name) for session in rpc.sessions() for name in session.names]
    return names.count(account)


def account_of(enterprise: Enterprise, name: str) -> AccountsFile:
    """An administrator for one test; the name is the password."""
    accounts = AccountsFile(enterprise.home / "accounts.toml")
    accounts.add(name, name, domain="LAB", groups=[ADMINISTRATORS])
    return accounts


@pytest.mark.req("SEC-18-04")
def test_only_administrators_see_and_end_sessions_and_none_over_get(
    visitor: Visitor, administrator: Visitor, enterprise: Enterprise
) -> None:
    assert visitor.get("/sessions").location.startswith("/login?next="), "not logged in"
    assert visitor.log_in(BOB, BOBS_PASSWORD).status == 303
    account_of(enterprise, "dave")
    dave = Visitor(f"http://{visitor.host}:{visitor.port}/")
    dave.cookies = {k: v for k, v in visitor.cookies.items() if k != "mqis_console"}
    assert dave.log_in("LAB\\dave", "dave").status == 303
    shown = administrator.get("/sessions")
    assert (ALICE, "") in sessions_of(shown)
    [victim] = [number for account, number in sessions_of(shown) if account == "LAB\\dave"]
    assert victim
    fields = {"id": victim, "csrf": shown.csrf}
    own = visitor.get("/directory/create").csrf
    for answer in (
        visitor.get("/sessions"),
        visitor.post("/sessions", {**fields, "csrf": own}),
    ):
        assert (answer.status, "MQ_ERROR_ACCESS_DENIED" in answer.text) == (403, True)
        assert "dave" not in answer.text
    for token in ("", own, "0" * 64):
        assert administrator.post("/sessions", {**fields, "csrf": token}).status == 403
    assert administrator.get(f"/sessions?id={victim}&csrf={shown.csrf}").status == 200
    for wrong in ("", "x", "-1", "1" * 30):
        assert administrator.post("/sessions", {**fields, "id": wrong}).status == 400
    assert connections_of(enterprise, "LAB\\dave") == 1
    assert administrator.post("/sessions", fields).location == "/sessions"
    eventually(lambda: connections_of(enterprise, "LAB\\dave") == 0)
    assert administrator.post("/sessions", fields).status == 409
    AccountsFile(enterprise.home / "accounts.toml").remove("dave", "LAB")


@pytest.mark.req("SEC-18-01")
def test_a_visitor_whose_account_is_removed_is_logged_out(
    visitor: Visitor, enterprise: Enterprise
) -> None:
    accounts = account_of(enterprise, "erin")
    assert visitor.log_in("LAB\\erin", "erin").status == 303
    assert visitor.get("/sessions").status == 200
    accounts.remove("erin", "LAB")
    eventually(lambda: connections_of(enterprise, "LAB\\erin") == 0)
    assert visitor.get("/sessions").location.startswith("/login?next=")
    assert "Logged in as" not in visitor.get("/statistics").text
