"""``mqis sessions`` against a server that is a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
from typer.testing import Result

from mqis.server.accounts import AccountsFile
from tests.cli.commands import process, run
from tests.cli.running import ALICE, BOB, PASSWORDS, Running, prepare, serving
from tests.interop import mqds_impacket as mqds


@pytest.fixture
def server(demo_store: Path, tmp_path: Path) -> Iterator[Running]:
    prepare(tmp_path, demo_store)
    AccountsFile(tmp_path / "accounts.toml").add("mallory", "mallory", domain="LAB")
    with serving(tmp_path, "--json") as running:
        yield running
        mqds.disconnect_all()


def sessions(server: Running, *options: str, user: str = ALICE) -> Result:
    login = ("--server", server.address, "--user", user)
    return run("sessions", *login, *options, stdin=PASSWORDS[user])


def listed(server: Running) -> list[dict[str, Any]]:
    shown = sessions(server, "--json")
    assert shown.exit_code == 0, shown.output
    content: dict[str, Any] = json.loads(shown.stdout)
    assert content["total"] == len(content["sessions"])
    found: list[dict[str, Any]] = content["sessions"]
    return found


@pytest.mark.req("SEC-18-04")
def test_an_administrator_lists_and_ends_sessions_and_a_user_none(server: Running) -> None:
    mallory = mqds.connect(int(server.ready["port"]), "mallory", RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
    mqds.connect(int(server.ready["port"]))
    found = {session["account"]: session for session in listed(server)}
    assert list(found) == ["LAB\\mallory", ALICE, "anonymous"], "users first, by age"
    kept = found["LAB\\mallory"]
    assert (kept["address"], kept["level"], kept["handles"]) == ("127.0.0.1", "integrity", 0)
    assert (kept["own"], found[ALICE]["own"]) == (False, True)
    assert found[ALICE]["level"] == "privacy"
    assert datetime.fromisoformat(kept["since"]).utcoffset() == timedelta(0)
    shown = sessions(server).output
    assert all(word in shown for word in (str(kept["id"]), "LAB\\mallory", "this one"))

    for options in ((), ("--json",), ("--end", str(kept["id"]))):
        refused = sessions(server, *options, user=BOB)
        assert (refused.exit_code, "mallory" in refused.output) == (1, False)
        assert "MQ_ERROR_ACCESS_DENIED" in str(refused.exception)
    assert "LAB\\mallory" in [session["account"] for session in listed(server)]

    ended = sessions(server, "--end", str(kept["id"]))
    assert (ended.exit_code, f"session {kept['id']} is ended" in ended.output) == (0, True)
    assert mallory.get_rpc_transport().get_socket().recv(1) == b""
    again = process(
        *("sessions", "--server", server.address, "--user", ALICE, "--end", str(kept["id"])),
        stdin=PASSWORDS[ALICE],
    )
    assert again.returncode == 1
    assert b"there is no session" in again.stderr
    assert again.stderr.count(b"\n") == 1
    assert sessions(server, "--end", "0").exit_code == 2
