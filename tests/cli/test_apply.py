"""``mqis up`` with a changed file: the difference is shown, and carried out while clients work.

The tests share one enterprise, and each goes on where the one before has left it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.config.file import read
from mqis.config.nodes import load_nodes, save_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from tests.cli.commands import process, run
from tests.cli.test_up import Acme, agreed, running_acme
from tests.waiting import wait_until

LEI_DIR3 = """
[[server]]
name = "lei-dir3"
site = "Leiden"
role = "bsc"
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("applied")) as made:
        yield made


def change(acme: Acme, old: str, new: str) -> None:
    text = acme.file.read_text("utf-8")
    assert old in text
    acme.file.write_text(text.replace(old, new, 1), "utf-8")


def processes(acme: Acme) -> dict[str, int | None]:
    return {node.name: node.pid for node in load_nodes(acme.run)}


@pytest.fixture
def administrator(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))


@contextmanager
def reading(acme: Acme, server: str) -> Iterator[list[str]]:
    """Clients that read at a server all the while; yields what went wrong."""
    failures: list[str] = []
    over = threading.Event()
    done = 0

    def work() -> None:
        nonlocal done
        while not over.is_set() or not done:
            found = process("get", "queue", "desk1\\inbox", "--server", acme.address(server))
            done += 1
            if found.returncode:
                failures.append(found.stderr.decode())

    reader = threading.Thread(target=work)
    reader.start()
    try:
        yield failures
    finally:
        over.set()
        reader.join()
    assert done


def cost_of(acme: Acme, server: str) -> list[int]:
    text = run("lookup", "link", "--server", acme.address(server), "--json").stdout
    return [
        link["properties"]["cost"] if "properties" in link else link["cost"]
        for link in json.loads(text)
    ]


def test_a_dry_run_shows_the_difference_and_changes_nothing(acme: Acme) -> None:
    change(acme, "cost = 7", "cost = 9")
    before = acme.file.read_text("utf-8")
    shown = acme.mqis("up", "--dry-run")
    assert "change" in shown
    assert "Delft - Leiden" in shown
    assert "cost 7 -> 9" in shown
    facts = json.loads(acme.mqis("up", "--dry-run", "--json"))
    assert facts["steps"] == [
        {"action": "change", "kind": "link", "name": "Delft - Leiden", "detail": "cost 7 -> 9"}
    ]
    assert cost_of(acme, "del-dir1") == [7]
    assert acme.file.read_text("utf-8") == before


def test_a_change_is_not_made_unasked(acme: Acme) -> None:
    told = acme.mqis("up", status=1)
    assert "there is no terminal to ask on; --yes confirms" in told
    assert cost_of(acme, "del-dir1") == [7]


def test_a_changed_file_is_carried_out_while_everybody_works(acme: Acme) -> None:
    change(acme, "[[machine]]", f"{LEI_DIR3}[[machine]]")
    change(acme, 'label = "Notices"', "label = \"Notices\"\n[[queue]]\npath = 'app1\\fresh'")
    before = processes(acme)
    with reading(acme, "del-dir1") as failures:
        told = acme.mqis("up", "--yes")
        acme.until(lambda status: agreed(status) and len(status["servers"]) == 4)
    assert failures == []
    assert "Acme is up: 3 steps carried out" in told
    after = processes(acme)
    assert {name: after[name] for name in before} == before
    assert after["lei-dir3"]
    assert cost_of(acme, "lei-dir3") == [9]
    found = run("get", "queue", "app1\\fresh", "--server", acme.address("lei-dir3"))
    assert found.exit_code == 0, found.output
    assert "Acme is up: no change" in acme.mqis("up")


def test_what_a_server_refuses_stops_nothing_else(acme: Acme) -> None:
    change(acme, "path = 'app1\\fresh'", "path = 'app1\\fresh'\n[[queue]]\npath = 'app1\\\\bad'")
    change(acme, "cost = 9", "cost = 10")
    illegal = '[[machine]]\nname = "no name"\nsite = "Leiden"\n'
    acme.file.write_text(f"{acme.file.read_text('utf-8')}{illegal}", "utf-8")
    before = processes(acme)
    told = acme.mqis("up", "--yes", status=1)
    assert "refused: queue app1\\\\bad: " in told
    assert "machine[3].name: 'no name' is not a machine name: " in told
    assert "it is left out" in told
    assert "so nothing was changed" in acme.mqis("up", "--remove", "--yes", status=1)
    change(acme, illegal, "")
    assert "Acme is up: 2 steps carried out, 1 of them refused" in told
    assert processes(acme) == before
    assert cost_of(acme, "del-dir1") == [10]
    change(acme, "\n[[queue]]\npath = 'app1\\\\bad'", "")
    assert "Acme is up: no change" in acme.mqis("up")


@pytest.mark.usefixtures("administrator")
def test_roles_are_exchanged_and_a_port_moves(acme: Acme) -> None:
    change(acme, 'role = "psc"', 'role = "bsc"')
    change(
        acme,
        'name = "lei-dir2"\nsite = "Leiden"\nrole = "bsc"',
        'name = "lei-dir2"\nsite = "Leiden"\nrole = "psc"',
    )
    moved = load_nodes(acme.run).named("lei-dir3").rpc_port + 1000
    change(acme, 'name = "lei-dir3"\n', f'name = "lei-dir3"\nrpc_port = {moved}\n')
    before = processes(acme)
    with reading(acme, "del-dir1") as failures:
        acme.mqis("up", "--yes")
        status = acme.until(agreed)
    assert failures == []
    roles = {server["name"]: server["role"] for server in status["servers"]}
    assert roles == {"del-dir1": "pec", "lei-dir1": "bsc", "lei-dir2": "psc", "lei-dir3": "bsc"}
    assert processes(acme)["del-dir1"] == before["del-dir1"]
    assert acme.address("lei-dir3").endswith(f":{moved}")
    made = run("create", "queue", "desk1\\after", "--server", acme.address("lei-dir3"))
    assert made.exit_code == 0, made.output
    acme.until(agreed)
    found = run("get", "queue", "desk1\\after", "--server", acme.address("lei-dir1"))
    assert found.exit_code == 0, found.output
    assert "Acme is up: no change" in acme.mqis("up")


@pytest.mark.usefixtures("administrator")
def test_what_commands_change_is_drift_that_the_file_can_take(acme: Acme) -> None:
    at = ["--server", acme.address("del-dir1")]
    (link,) = json.loads(run("lookup", "link", *at, "--json").stdout)
    assert run("set", "link", link["id"], "cost=33", *at).exit_code == 0
    told = acme.mqis("up")
    assert "left alone: link Delft - Leiden: cost is 33, in the file 10" in told
    assert "'mqis up --adopt' writes into enterprise.toml what commands have changed" in told
    assert cost_of(acme, "del-dir1") == [33]
    assert "link Delft - Leiden: cost = 33" in acme.mqis("up", "--adopt")
    assert "left alone" not in acme.mqis("up")
    assert "nothing to adopt" in acme.mqis("up", "--adopt")


def test_what_the_file_has_no_more_goes_only_if_it_shall(acme: Acme) -> None:
    text = acme.file.read_text("utf-8")
    start = text.index('[[server]]\nname = "lei-dir3"')
    end = text.index("[[machine]]")
    acme.file.write_text(text[:start] + text[end:], "utf-8")
    told = acme.mqis("up")
    assert "left alone: server lei-dir3 is not in the file any more; --remove deletes it" in told
    assert processes(acme)["lei-dir3"]
    # It is remembered, also over an end of the enterprise and another change.
    acme.mqis("down")
    change(acme, "cost = 33", "cost = 34")
    acme.mqis("up", "--detach", "--yes")
    assert cost_of(acme, "lei-dir3") == [34]
    home = Path(load_nodes(acme.run).named("lei-dir3").home)
    assert "remove" in acme.mqis("up", "--remove", "--dry-run")
    acme.mqis("up", "--remove", "--yes")
    assert list(processes(acme)) == ["del-dir1", "lei-dir1", "lei-dir2"]
    assert not home.exists()
    assert [path.name for path in home.parent.glob("lei-dir3.removed-*/mqis.toml")]
    gone = run("get", "machine", "lei-dir3", "--server", acme.address("del-dir1"))
    assert gone.exit_code == 1
    acme.until(agreed)
    assert "Acme is up: no change" in acme.mqis("up", "--remove")


def test_what_cannot_be_done_is_refused_as_a_whole(acme: Acme) -> None:
    change(acme, 'name = "desk1"\nsite = "Leiden"', 'name = "desk1"\nsite = "Delft"')
    change(acme, "cost = 34", "cost = 35")
    told = acme.mqis("up", "--yes", status=1)
    assert "a machine stays in its site: remove it and add it again; nothing was changed" in told
    assert cost_of(acme, "del-dir1") == [34]


def test_a_key_of_every_server_is_added_and_taken_out(acme: Acme) -> None:
    """It was "no change" while the configurations stayed as they were."""
    change(acme, 'name = "desk1"\nsite = "Delft"', 'name = "desk1"\nsite = "Leiden"')
    change(acme, "cost = 35", "cost = 34")
    text = acme.file.read_text("utf-8")
    acme.file.write_text(f"{text}\n[options.rpc]\nmax_handles = 5000\n", "utf-8")
    assert "rpc.max_handles" in acme.mqis("up", "--dry-run")
    acme.mqis("up", "--yes")
    files = [Path(node.config) for node in load_nodes(acme.run)]
    assert all("\nmax_handles = 5000\n" in file.read_text("utf-8") for file in files)
    acme.until(agreed)
    acme.file.write_text(text, "utf-8")
    assert "left alone: options rpc.max_handles" in acme.mqis("up")
    acme.mqis("up", "--yes", "--remove")
    assert not any("\nmax_handles = 5000\n" in file.read_text("utf-8") for file in files)
    acme.until(agreed)
    assert acme.mqis("up") == "Acme is up: no change\n"


def test_servers_that_are_down_are_started(acme: Acme) -> None:
    """It was "no change", with the exit status 0, while a server was given up."""
    acme.mqis("stop", "lei-dir1")
    told = acme.mqis("up")
    assert "lei-dir1 is stopped and is started" in told
    assert "Acme is up: 1 server started" in told
    acme.until(agreed)
    acme.mqis("kill", "lei-dir1", "--stay-down")
    store = Path(load_nodes(acme.run).named("lei-dir1").store)
    store.rename(store.with_suffix(".away"))
    told = acme.mqis("up", status=1)
    assert "the server's store is gone" in told.replace("\n", " ")
    store.with_suffix(".away").rename(store)
    acme.mqis("up")
    acme.until(agreed)


def test_a_port_that_a_server_has_not_got_yet_is_shown(acme: Acme) -> None:
    """The supervisor had noted the new port when it was killed, and not restarted the server."""
    place = load_nodes(acme.run).named("lei-dir1")
    supervisor = load_nodes(acme.run).supervisor
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: holder(acme.run / LOCK) is None)
    moved = place.rpc_port + 1000
    change(acme, 'name = "lei-dir1"\n', f'name = "lei-dir1"\nrpc_port = {moved}\n')
    nodes = load_nodes(acme.run)
    noted = tuple(replace(n, rpc_port=moved) if n.name == place.name else n for n in nodes)
    save_nodes(acme.run, replace(nodes, nodes=noted))
    assert f"rpc_port {place.rpc_port} -> {moved}" in acme.mqis("up", "--dry-run")
    acme.mqis("up", "--detach", "--yes")
    acme.until(agreed)
    config = read(Path(place.config))
    assert config.rpc.port == moved
    assert "no change" in acme.mqis("up")
