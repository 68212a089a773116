"""Servers of ``mqis up`` that lose files: the others go on, and each is told the ways back.

The tests share one enterprise, and each goes on where the one before has left it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.file import load
from mqis.config.nodes import load_nodes
from mqis.enterprise.states import load_states
from tests.cli.commands import run
from tests.cli.test_up import PLAN, Acme, agreed, running_acme
from tests.waiting import DEADLINE_S

#: Far below the minute after which a command gives the supervisor up.
SOON_S = DEADLINE_S / 6


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with running_acme(tmp_path_factory.mktemp("lost")) as made:
        yield made


def states(acme: Acme) -> dict[str, str]:
    found = load_states(acme.run)
    assert found is not None
    return {name: server.state.value for name, server in found.servers.items()}


def started(acme: Acme, server: str) -> str:
    """What 'mqis start' says of a server that cannot start, which it says soon."""
    began = time.monotonic()
    told = acme.mqis("start", server, status=1)
    assert time.monotonic() - began < SOON_S
    return told


def test_a_server_without_its_directory_is_told_at_once(acme: Acme) -> None:
    """It was "lock file cannot be made", after six tries."""
    acme.mqis("stop", "lei-dir1")
    home = acme.home("lei-dir1")
    shutil.rmtree(home)
    told = started(acme, "lei-dir1")
    assert f"{home}: the server's directory is gone" in told
    assert f"mqis restore FILE --config {home / 'mqis.toml'}" in told
    other = acme.home("lei-dir2") / "mqis.toml"
    assert f"mqis promote --rebuild lei-dir1 --to {home} --config {other} && mqis up; or " in told
    assert "put a backup of its site in its place: mqis promote lei-dir2\n" in told
    assert states(acme) == {"del-dir1": "ready", "lei-dir1": "failed", "lei-dir2": "ready"}


def test_nobody_is_sent_to_found_a_second_enterprise(acme: Acme) -> None:
    """Both commands said that 'mqis init' writes the configuration that is gone."""
    home = acme.home("lei-dir1")
    examined = json.loads(acme.mqis("doctor", "--json", status=1))
    (faults,) = (s["findings"] for s in examined["servers"] if s["server"] == "lei-dir1")
    (listed,) = json.loads(acme.mqis("key", "list", "lei-dir1", "--json"))
    for told in (json.dumps(faults), listed["problem"]):
        assert f"{home}: the server's directory is gone" in told
        assert f"mqis restore FILE --config {home / 'mqis.toml'}, then " in told
        assert "mqis init" not in told
    told = acme.mqis("backup", f"{acme.directory / 'never'}/", status=1)
    assert f"that of lei-dir1, a server of 'mqis up': 'mqis doctor --run {acme.run}'" in told
    assert "mqis init" not in told


def test_after_a_promotion_all_come_up_again(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    """'mqis up' ended with an error about the lost PSC, and stopped all servers."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    assert run("promote", "lei-dir2", "--run", acme.run).exit_code == 0
    acme.mqis("down")
    told = acme.mqis("up", "--detach")
    assert "left alone: server lei-dir1: role is bsc, in the file psc" in told
    assert "left alone: server lei-dir2: role is psc, in the file bsc" in told
    assert "Acme is up: 3 servers ready" in told
    roles = [(s["name"], s["role"]) for s in acme.until(agreed)["servers"]]
    assert roles == [("del-dir1", "pec"), ("lei-dir1", "bsc"), ("lei-dir2", "psc")]
    shown = run("get", "machine", "lei-dir1", "-s", acme.home("lei-dir2") / "directory.db")
    assert "routing, BSC" in shown.stdout  # the plan still has another role


def test_a_server_without_its_store_is_told_at_once(acme: Acme) -> None:
    """The command waited for a minute, and said that the supervisor did not answer."""
    home = acme.home("lei-dir2")
    acme.mqis("backup", f"{acme.directory / 'backups'}/", "--config", str(home / "mqis.toml"))
    acme.mqis("stop", "lei-dir2")
    (home / "directory.db").unlink()
    told = started(acme, "lei-dir2")
    assert f"{home / 'directory.db'}: the server's store is gone; restore a backup of it" in told
    assert "import" not in told
    (home / "directory.db").touch()
    assert "the server's store is empty (0 bytes); restore a backup" in started(acme, "lei-dir2")


def test_a_file_that_is_no_store_is_told_at_once(acme: Acme) -> None:
    """The server was started six times, and no way back was named."""
    store = acme.home("lei-dir2") / "directory.db"
    store.write_text("these are my notes\n" * 100)
    told = started(acme, "lei-dir2")
    assert f"{store}: is not an mqis store, or its beginning is damaged: " in told
    assert "; restore a backup of it: mqis restore FILE --config " in told
    store.unlink()
    with closing(sqlite3.connect(store)) as other:
        other.execute("CREATE TABLE notes (text)")
    told = started(acme, "lei-dir2")
    assert f"{store}: is an SQLite file, but not an mqis store; restore a backup of it" in told
    assert sorted(path.name for path in store.parent.glob("*.db-*")) == []


def test_servers_that_cannot_start_stop_no_other(acme: Acme) -> None:
    acme.mqis("down")
    config = acme.home("lei-dir1") / "mqis.toml"
    sound = config.read_text()
    wrong = "\n".join(
        "port = 99999" if line.startswith("port = 2879") else line for line in sound.splitlines()
    )
    if wrong == sound:  # the ports of this computer are taken
        wrong = sound.replace("[rpc]", "[rpc]\nprot = 1")
    config.write_text(wrong)
    told = acme.mqis("up", "--detach", status=1)
    assert f"lei-dir1 cannot start: {config}: rpc." in told
    assert "lei-dir2 cannot start: " in told
    assert "Acme is up: 1 of 3 servers ready" in told
    assert states(acme) == {"del-dir1": "ready", "lei-dir1": "failed", "lei-dir2": "failed"}
    config.write_text(sound)
    assert "lei-dir1 is ready" in acme.mqis("start", "lei-dir1")


def test_a_server_comes_back_from_its_own_backup_without_a_switch(acme: Acme) -> None:
    """The accounts belong to all servers: those of the backup do not replace them."""
    home, accounts = acme.home("lei-dir2"), acme.run / "accounts.toml"
    accounts.write_text(f"{accounts.read_text()}\n# newer than the backup\n")
    (backup,) = (acme.directory / "backups").iterdir()
    (home / "directory.db").unlink()
    shutil.move(home, home.with_name("lei-dir2.broken"))
    restored = run("restore", backup, "--config", home / "mqis.toml", "--json")
    assert restored.exit_code == 0, restored.exception
    content = json.loads(restored.stdout)
    assert content["kept"] == str(accounts)
    assert content["next"].startswith("mqis start lei-dir2")
    assert accounts.read_text().endswith("# newer than the backup\n")
    assert list(acme.run.glob("accounts.toml.before-*")) == []
    acme.mqis("stop", "lei-dir1")  # for which it waits
    told = acme.mqis("start", "lei-dir2")
    assert "lei-dir2 is ready" in told
    assert "it is restored from the backup of lei-dir2, " in told
    assert "and lacks what is newer until the other servers have answered" in told
    acme.mqis("start", "lei-dir1")
    acme.until(agreed)


def as_told(acme: Acme, command: str) -> str:
    """What a shell prints that is given a command of a message as it is."""
    mqis = f'mqis() {{ {shlex.quote(sys.executable)} -m mqis.cli.main "$@"; }}'
    done = subprocess.run(
        ["/bin/sh", "-c", f"{mqis}; {command}"],
        cwd=acme.directory,
        env={**os.environ, "MQIS_RUN": str(acme.run)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.decode()


def way(told: str, begin: str) -> str:
    """The command of a way back."""
    return told.partition(f"{begin}: ")[2].partition("; ")[0].partition(", then ")[0].strip()


def test_a_backup_is_restored_over_the_other_files_as_told(acme: Acme) -> None:
    """The command that the message had was refused, because other files are there."""
    acme.mqis("stop", "lei-dir2")
    (acme.home("lei-dir2") / "directory.db").unlink()
    command = way(started(acme, "lei-dir2"), "restore a backup of it")
    (backup,) = (acme.directory / "backups").iterdir()
    as_told(acme, f"{command.replace('FILE', shlex.quote(str(backup)))} && mqis start lei-dir2")
    acme.until(agreed)


def test_a_lost_authority_is_rebuilt_as_told(acme: Acme) -> None:
    """The message named no configuration, and a directory that is not the server's."""
    home = acme.home("lei-dir2")
    acme.mqis("stop", "lei-dir2")
    (home / "directory.db").unlink()
    command = way(started(acme, "lei-dir2"), "rebuild it from the copy of lei-dir1")
    assert command.endswith(f"--key {home}.lost1/signing.key && mqis up")
    told = as_told(acme, command)
    assert "next: mqis up, which gives it its own addresses, and starts it" in told
    assert "mqis serve" not in told
    assert "lei-dir2 is failed and is started" in told
    acme.until(agreed)
    before = (home.with_name("lei-dir2.lost1") / "signing.key").read_bytes()
    assert (home / "signing.key").read_bytes() == before
    assert Path(load(home / "mqis.toml").security.accounts).samefile(acme.run / "accounts.toml")
    assert not (home / "accounts.toml").exists()


def test_the_others_trust_a_server_that_was_rebuilt_with_a_new_key(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They refused it until somebody put its seed into each of their configurations."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    home = acme.home("lei-dir2")
    before = {node.name: node.pid for node in load_nodes(acme.run)}
    acme.mqis("kill", "lei-dir2", "--stay-down")
    shutil.rmtree(home)
    command = way(started(acme, "lei-dir2"), "rebuild it from the copy of lei-dir1")
    told = as_told(acme, command)
    assert "lets the others trust its new key" in told
    assert "replication.seeds" not in told
    acme.until(agreed)
    made = run("create", "queue", "desk1\\rebuilt", "--server", acme.address("lei-dir2"))
    assert made.exit_code == 0, made.output
    acme.until(agreed)
    found = run("get", "queue", "desk1\\rebuilt", "--server", acme.address("del-dir1"))
    assert found.exit_code == 0, found.output
    after = {node.name: node.pid for node in load_nodes(acme.run)}
    assert {n: p for n, p in after.items() if n != "lei-dir2"} == {
        n: p for n, p in before.items() if n != "lei-dir2"
    }
    assert not (home / "seed.txt").exists()


def test_a_lost_backup_joins_again_as_told(acme: Acme) -> None:
    """Everything was to be stopped for it."""
    home = acme.home("lei-dir1")
    acme.mqis("stop", "lei-dir1")
    (home / "directory.db").unlink()
    command = way(started(acme, "lei-dir1"), "let it join again")
    assert command == f"mv {home} {home}.lost1 && mqis up"
    as_told(acme, command)
    acme.until(agreed)
    acme.mqis("stop", "lei-dir1")
    shutil.rmtree(home)
    assert way(started(acme, "lei-dir1"), "let it join again") == "mqis up"
    as_told(acme, "mqis up")
    acme.until(agreed)


def test_no_second_enterprise_is_founded_where_the_pec_was_lost(acme: Acme) -> None:
    """A changed plan would have had one founded under the old name."""
    acme.mqis("down")
    home = acme.home("del-dir1")
    kept = shutil.move(home, home.with_name("del-dir1.kept"))
    acme.file.write_text(f"{PLAN}\n[[queue]]\npath = 'app1\\new'\n", encoding="utf-8")
    told = acme.mqis("up", "--detach", status=1)
    assert f"del-dir1 cannot start: {home}: the server's directory is gone; restore" in told
    assert "mqis promote --rebuild del-dir1" in told
    assert states(acme) == {"del-dir1": "failed", "lei-dir1": "ready", "lei-dir2": "ready"}
    assert not home.exists()
    shutil.move(kept, home)
    acme.mqis("down")
    assert "Acme is up: 3 servers ready" in acme.mqis("up", "--detach")
    assert run("get", "queue", "app1\\new", "-s", home / "directory.db").exit_code == 0
    links = run("lookup", "link", "-s", home / "directory.db", "--json").stdout
    assert len(json.loads(links)) == 1  # the plan was filled in three times
