"""``mqis up --dry-run`` says what will really happen, and the verdict what a server has lost.

The tests share one enterprise, and each goes on where the one before has left it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from mqis.config.nodes import load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from mqis.enterprise.states import load_states
from tests.cli.test_apply import change
from tests.cli.test_up import PLAN, Acme, agreed, running_acme
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("told")) as made:
        yield made


def planned(acme: Acme, status: int = 0) -> dict[str, object]:
    text = acme.mqis("up", "--dry-run", "--json", status=status)
    facts: dict[str, object] = json.JSONDecoder().raw_decode(text)[0]
    return facts


def test_a_port_that_is_taken_is_told_in_the_plan(acme: Acme) -> None:
    """The plan was shown and agreed to, and refused afterwards."""
    place = load_nodes(acme.run).named("lei-dir2")
    with socket.socket() as other:
        other.bind((place.address, 0))
        other.listen()
        port = other.getsockname()[1]
        change(acme, 'name = "lei-dir2"\n', f'name = "lei-dir2"\nrpc_port = {port}\n')
        said = f"lei-dir2: rpc_port = {port}: this port is busy at {place.address}"
        assert f"{said}; nothing was changed" in acme.mqis("up", "--dry-run", status=1)
        assert planned(acme, status=1)["impossible"] == [said]
    assert f"-> {port}" in acme.mqis("up", "--dry-run")  # it is free now
    acme.file.write_text(PLAN, "utf-8")


def test_a_server_that_has_lost_its_files_while_it_runs_is_not_green(acme: Acme) -> None:
    config = acme.home("lei-dir2") / "mqis.toml"
    key = acme.home("lei-dir1") / "signing.key"
    moved = {path: path.rename(path.with_name(f"{path.name}.away")) for path in (config, key)}
    status = acme.until(lambda found: len(found["verdict"]["findings"]) == 2)
    assert status["verdict"]["grade"] == "amber"
    told = {finding["text"] for finding in status["verdict"]["findings"]}
    assert told == {
        "lei-dir2 runs, but its configuration mqis.toml is gone",
        "lei-dir1 runs, but its signing key signing.key is gone",
    }
    assert "its configuration mqis.toml is gone" in acme.mqis("status", "--once")
    for path, away in moved.items():
        away.rename(path)
    acme.until(agreed)


def test_servers_that_outlived_their_supervisor_are_named(acme: Acme) -> None:
    supervisor = load_nodes(acme.run).supervisor
    assert supervisor is not None
    pids = {node.name: node.pid for node in load_nodes(acme.run)}
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: holder(acme.run / LOCK) is None)
    config = acme.home("lei-dir1") / "mqis.toml"
    away = config.rename(config.with_name("away"))
    facts = planned(acme)
    assert facts["outlived"] == pids
    assert facts["starts"] == ["del-dir1", "lei-dir2"]
    hindered = facts["hindered"]
    assert isinstance(hindered, dict)
    assert hindered["lei-dir1"].startswith(f"{config}: the server's configuration is gone; ")
    told = acme.mqis("up", "--dry-run")
    pid = pids["lei-dir2"]
    assert f"lei-dir2 outlived its supervisor, as process {pid}: it is ended, and st" in told
    assert "lei-dir1 cannot be started: " in told
    assert "2 servers would be started" in told
    away.rename(config)
    acme.mqis("up", "--detach")
    acme.until(agreed)


def test_a_server_that_cannot_start_is_not_said_to_be_started(acme: Acme) -> None:
    acme.mqis("kill", "lei-dir1", "--stay-down")
    home = acme.home("lei-dir1")
    away = home.rename(home.with_name("away"))
    told = acme.mqis("up", "--dry-run")
    assert "lei-dir1 is stopped and cannot be started" in told
    assert f"lei-dir1 cannot be started: {home}: the server's directory is gone" in told
    assert planned(acme)["starts"] == []
    away.rename(home)
    assert "lei-dir1 is stopped and is started" in acme.mqis("up", "--dry-run")


def test_a_lost_key_is_not_replaced_in_silence(acme: Acme) -> None:
    """The server made a new one, which all others refused."""
    key = acme.home("lei-dir1") / "signing.key"
    before = key.read_text("utf-8")
    key.unlink()
    told = acme.mqis("start", "lei-dir1", status=1)
    assert f"{key}: the server's signing key is gone: bring it back, or 'mqis up' makes" in told
    assert not key.exists()
    assert "Acme is up: 1 server started" in acme.mqis("up")
    assert key.read_text("utf-8") != before
    acme.until(agreed)
    states = load_states(acme.run)
    assert states is not None
    assert {state.state.value for state in states.servers.values()} == {"ready"}
