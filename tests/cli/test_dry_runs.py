"""``--dry-run`` changes nothing, whatever it is given with; what is adopted is adopted for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.config.nodes import load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from tests.cli.commands import run
from tests.cli.test_up import PLAN, Acme, running_acme


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("more", [(), ("--detach",), ("--yes",), ("--adopt",)])
def test_no_enterprise_is_founded(tmp_path: Path, more: tuple[str, ...]) -> None:
    """It was, and its servers were started."""
    acme = Acme(tmp_path)
    acme.file.write_text(PLAN, encoding="utf-8")
    before = contents(tmp_path)
    told = acme.mqis("up", "--dry-run", *more)
    assert contents(tmp_path) == before
    if "--adopt" in more:
        assert "nothing to adopt" in told
        return
    assert "Acme would be founded in " in told
    assert ": 3 servers in 2 sites" in told
    assert told.endswith("nothing was changed (--dry-run)\n")
    shown = json.loads(acme.mqis("up", "--dry-run", "--json", *more))
    assert shown["founded"] is False
    assert shown["starts"] == ["del-dir1", "lei-dir1", "lei-dir2"]
    assert contents(tmp_path) == before


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("dry")) as made:
        yield made


def test_nothing_is_adopted_in_a_dry_run(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    _set(acme, "Changed")
    before = acme.file.read_text()
    told = acme.mqis("up", "--adopt", "--dry-run")
    assert "1 change to write; nothing was changed (--dry-run)" in told
    assert acme.file.read_text() == before


def test_after_an_adoption_a_change_is_drift_again(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as a change of the file, and 'mqis up --yes' undid it."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    assert "1 change written" in acme.mqis("up", "--adopt")
    assert 'label = "Changed"' in acme.file.read_text()
    assert "no change" in acme.mqis("up", "--yes")
    _set(acme, "Changed again")
    shown = json.loads(acme.mqis("up", "--dry-run", "--json"))
    assert shown["steps"] == []
    assert "1 change written" in acme.mqis("up", "--adopt")
    assert 'label = "Changed again"' in acme.file.read_text()


def test_a_server_that_cannot_be_promoted_is_not_stopped(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped and started again before the refusal."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    before = {node.name: node.pid for node in load_nodes(acme.run)}
    for server in ("del-dir1", "lei-dir1"):
        refused = run("promote", server, "--run", acme.run)
        assert refused.exit_code != 0
    assert {node.name: node.pid for node in load_nodes(acme.run)} == before


def test_servers_that_are_down_stay_down(acme: Acme) -> None:
    acme.mqis("down")
    told = acme.mqis("up", "--dry-run")
    assert "3 servers would be started: all are down" in told
    assert holder(acme.run / LOCK) is None


def _set(acme: Acme, label: str) -> None:
    server = load_nodes(acme.run).named("lei-dir1")
    where = ("--server", server.rpc_address)
    done = run("set", "queue", "desk1\\inbox", f"label={label}", *where)
    assert done.exit_code == 0, (done.output, done.exception)
