"""Accounts that a changed enterprise file changes keep their identifiers and passwords."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mqis.config.nodes import ACCOUNTS
from mqis.enterprise.difference import Action, Step
from mqis.enterprise.plan import EntryKind, RunPlan, entries_of, parse_plan
from mqis.enterprise.setup import change_accounts, make_accounts
from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS

FILE = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[account]]
name = "admin"
administrator = true
[[account]]
name = "clerk"
"""


def plan_of(text: str) -> RunPlan:
    return parse_plan(tomllib.loads(text))


def test_an_account_becomes_an_administrator_and_keeps_the_rest(tmp_path: Path) -> None:
    make_accounts(tmp_path, plan_of(FILE), tmp_path)
    file = AccountsFile(tmp_path / ACCOUNTS)
    before = file.find("ACME", "clerk")
    assert before is not None
    assert ADMINISTRATORS not in before.groups
    changed = plan_of(FILE.replace('name = "clerk"', 'name = "clerk"\nadministrator = true'))
    entry = entries_of(changed, EntryKind.ACCOUNT)["acme\\clerk"]
    step = Step(Action.CHANGE, EntryKind.ACCOUNT, "ACME\\clerk", entry, {"administrator": False})
    change_accounts(tmp_path, [step])
    after = file.find("ACME", "clerk")
    assert after is not None
    assert ADMINISTRATORS in after.groups
    assert (after.sid, after.nt_hash) == (before.sid, before.nt_hash)
    usual = entries_of(plan_of(FILE), EntryKind.ACCOUNT)["acme\\clerk"]
    back = Step(Action.CHANGE, EntryKind.ACCOUNT, "ACME\\clerk", usual, {"administrator": True})
    change_accounts(tmp_path, [back])
    assert file.find("ACME", "clerk") == before
    gone = Step(Action.REMOVE, EntryKind.ACCOUNT, "ACME\\clerk", entry, {})
    change_accounts(tmp_path, [gone])
    assert file.find("ACME", "clerk") is None
    assert file.find("ACME", "admin") is not None
