"""A PSC of ``mqis up`` that was down when a backup took its place: it comes back as a backup, or is
taken out.

The tests share one enterprise, and each goes on where the one before has left it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.config.file import read
from mqis.config.nodes import load_nodes
from mqis.enterprise.plan import load_plan
from mqis.protocol.queueing.signing import SigningPolicy
from tests.cli.commands import run
from tests.cli.test_up import Acme, agreed, running_acme

PROMOTED = {"del-dir1": "pec", "lei-dir1": "bsc", "lei-dir2": "psc"}


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("replaced")) as made:
        yield made


def roles(acme: Acme) -> dict[str, str]:
    return {server["name"]: server["role"] for server in acme.until(agreed)["servers"]}


def steps(acme: Acme, *options: str) -> list[tuple[str, str, str]]:
    facts = json.loads(acme.mqis("up", "--dry-run", "--json", *options))
    return [(step["action"], step["name"], step["detail"]) for step in facts["steps"]]


def gates(acme: Acme) -> list[str]:
    found = run("get", "site", "Leiden", "--server", acme.address("del-dir1"), "--json")
    site = json.loads(found.stdout)
    gates: list[str] = site["properties"].get("gates") or []
    return gates


def test_a_replaced_psc_does_not_start_beside_the_new_one(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It started as a second PSC, which refuses all changes of the new one and stays behind."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    acme.mqis("stop", "lei-dir1")
    done = run("promote", "lei-dir2", "--run", acme.run)
    assert done.exit_code == 0, done.output
    assert "next: 'mqis up' lets lei-dir1 follow lei-dir2" in done.output
    assert "--follow" not in done.output
    told = acme.mqis("start", "lei-dir1", status=1)
    now = "lei-dir2 is the PSC of Leiden now; 'mqis up' lets lei-dir1 follow it as a backup"
    assert now in told
    assert "restore" not in told
    assert "rebuild" not in told


def test_it_follows_when_all_come_up_again(acme: Acme) -> None:
    """Both were PSC, and a second 'mqis up' said "no change"."""
    follows = ("change", "lei-dir1", "follows lei-dir2, the PSC of Leiden now")
    assert steps(acme) == [follows]
    acme.mqis("down")
    assert steps(acme) == [follows]
    told = acme.mqis("up", "--detach")
    assert "follows lei-dir2, the PSC of Leiden now" in told
    assert "lei-dir1 becomes a backup: lei-dir2 is the PSC of Leiden now" in told
    assert "Acme is up: 3 servers ready" in told
    assert roles(acme) == PROMOTED
    assert steps(acme) == []


def test_the_file_takes_the_new_roles_and_is_a_plan(acme: Acme) -> None:
    """It got two PSCs, and no 'mqis up' would have it."""
    acme.mqis("up", "--adopt", "--yes")
    plan = load_plan(acme.file)
    assert {server.name: server.role.value for server in plan.servers} == PROMOTED
    assert acme.mqis("up") == "Acme is up: no change\n"
    acme.mqis("down")
    acme.mqis("up", "--detach")
    assert roles(acme) == PROMOTED


def test_it_follows_also_while_the_others_run(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    acme.mqis("stop", "lei-dir2")
    done = run("promote", "lei-dir1", "--run", acme.run)
    assert done.exit_code == 0, done.output
    told = acme.mqis("up")
    assert "follows lei-dir1, the PSC of Leiden now" in told
    assert "Acme is up: 1 step carried out\n" in told
    assert roles(acme) == {"del-dir1": "pec", "lei-dir1": "psc", "lei-dir2": "bsc"}
    acme.mqis("up", "--adopt")


def test_servers_that_start_and_those_that_do_not_are_counted_apart(acme: Acme) -> None:
    """It was "2 servers started, 1 of them refused", and 3 of 2 if more was wrong."""
    store = acme.home("lei-dir2") / "directory.db"
    for server in ("lei-dir1", "lei-dir2"):
        acme.mqis("stop", server)
    store.rename(store.with_suffix(".away"))
    told = acme.mqis("up", status=1)
    assert "refused: lei-dir2: " in told
    assert "Acme is up: 1 of 2 servers started\n" in told
    store.with_suffix(".away").rename(store)
    assert "lei-dir2 is failed and is started" in acme.mqis("up", "--dry-run")
    assert "Acme is up: 1 server started\n" in acme.mqis("up")
    acme.until(agreed)


def test_a_key_with_a_choice_of_values_is_taken_out(acme: Acme) -> None:
    """It was refused: "<SigningPolicy.REQUIRE: 'require'> is not one of none, accept, require"."""
    text = acme.file.read_text("utf-8")
    acme.file.write_text(f'{text}\n[options.replication]\nsigning = "accept"\n', "utf-8")
    acme.mqis("up", "--yes")
    files = [Path(node.config) for node in load_nodes(acme.run)]
    assert {read(file).replication.signing for file in files} == {SigningPolicy.ACCEPT}
    acme.file.write_text(text, "utf-8")
    acme.mqis("up", "--remove", "--yes")
    assert {read(file).replication.signing for file in files} == {SigningPolicy.REQUIRE}
    acme.until(agreed)


def test_a_lost_psc_that_was_replaced_is_told_how_it_comes_back(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'mqis start' advised a restore or a promotion, and a dry run did not name the server."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    assert len(gates(acme)) == 1
    acme.mqis("kill", "lei-dir1", "--stay-down")
    shutil.rmtree(acme.home("lei-dir1"))
    assert run("promote", "lei-dir2", "--run", acme.run).exit_code == 0
    told = acme.mqis("start", "lei-dir1", status=1)
    assert "lei-dir2 is the PSC of Leiden now; 'mqis up' lets lei-dir1 join again" in told
    assert "restore" not in told
    assert "lei-dir1 is failed and joins again" in acme.mqis("up", "--dry-run")
    assert not acme.home("lei-dir1").exists()


def test_the_last_gate_of_a_site_goes_with_its_server(acme: Acme) -> None:
    """The site went on naming the machine that was deleted; and the server was started first."""
    acme.mqis("up", "--adopt")
    text = acme.file.read_text("utf-8")
    entry = '[[server]]\nname = "lei-dir1"\nsite = "Leiden"\nrole = "bsc"\nrouting = true\n'
    assert entry in text
    acme.file.write_text(text.replace(entry, ""), "utf-8")
    shown = acme.mqis("up", "--remove", "--dry-run")
    warning = "Leiden has no gate any more: give another server routing = true"
    assert warning in shown
    assert "joins again" not in shown
    assert "is started" not in shown
    told = acme.mqis("up", "--remove", "--yes")
    assert warning in told
    assert "joins again" not in told
    assert "Acme is up: 1 step carried out\n" in told
    assert list((acme.run / "servers").glob("lei-dir1*")) == []  # it has not joined first
    assert gates(acme) == []
    routed = acme.file.read_text("utf-8").replace(
        'role = "psc"\n', 'role = "psc"\nrouting = true\n'
    )
    acme.file.write_text(routed, "utf-8")
    acme.mqis("up", "--yes")
    assert len(gates(acme)) == 1
    assert warning not in acme.mqis("up")
