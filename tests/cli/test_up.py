"""``mqis up`` and what goes with it, on one enterprise of three servers that all tests share."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqis.config.nodes import load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from mqis.enterprise.pipeline_input import gather
from mqis.enterprise.plan import load_plan
from mqis.protocol.directory.export_format import parse_header
from mqis.protocol.journal.chain import ChainState
from mqis.storage.journal.checking import check_journal, server_id_of
from mqis.storage.journal.journal_reader import records
from mqis.wire.journal import RecordState
from tests.cli.commands import run
from tests.waiting import DEADLINE_S, wait_until

PLAN = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[site]]
name = "Leiden"
[[link]]
sites = ["Delft", "Leiden"]
cost = 7
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
routing = true
[[server]]
name = "lei-dir1"
site = "Leiden"
role = "psc"
routing = true
[[server]]
name = "lei-dir2"
site = "Leiden"
role = "bsc"
[[machine]]
name = "app1"
site = "Delft"
[[machine]]
name = "desk1"
site = "Leiden"
[[queue]]
path = 'desk1\\inbox'
label = "Notices"
"""
#: Added while the enterprise is down.
MORE = """
[[queue]]
path = 'app1\\later'
"""
SERVERS = ["del-dir1", "lei-dir1", "lei-dir2"]


class Acme:
    """The enterprise, as somebody at a shell has it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run = directory / "run"
        self.file = directory / "enterprise.toml"
        self.file.write_text(PLAN, encoding="utf-8")

    def mqis(self, *words: str, status: int = 0) -> str:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
        environment["MQIS_RUN"] = str(self.run)
        done = subprocess.run(
            [sys.executable, "-m", "mqis.cli.main", *words],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=DEADLINE_S,
        )
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == status, text
        return text

    def status(self) -> dict[str, Any]:
        text = run("status", "--json", "--run", self.run).stdout
        content: dict[str, Any] = json.loads(text)
        return content

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.status()
            return found if holds(found) else None

        return wait_until(look, "the status that is waited for")

    def home(self, server: str) -> Path:
        return Path(load_nodes(self.run).named(server).home)

    def address(self, server: str) -> str:
        node = load_nodes(self.run).named(server)
        return f"{node.address}:{node.rpc_port}"


def agreed(status: dict[str, Any]) -> bool:
    """Every server is up and has every partition."""
    return bool(status["converged"]) and all(len(s["partitions"]) == 3 for s in status["servers"])


@contextmanager
def running_acme(directory: Path, more: str = "") -> Iterator[Acme]:
    """The enterprise, up and agreed; ``more`` is added to its plan."""
    made = Acme(directory)
    made.file.write_text(PLAN + more, encoding="utf-8")
    try:
        made.mqis("up", "--detach")
        made.until(agreed)
        yield made
    finally:
        run("down", "--run", made.run)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    made = Acme(tmp_path_factory.mktemp("acme"))
    try:
        ready = json.loads(made.mqis("up", "--detach", "--json"))
        assert [server["name"] for server in ready["servers"]] == SERVERS
        assert all(server["pid"] for server in ready["servers"])
        assert Path(ready["password_file"]).is_file()
        yield made
    finally:
        run("down", "--run", made.run)


def test_it_is_up_as_the_plan_has_it(acme: Acme) -> None:
    found = acme.until(agreed)
    rows = [(s["name"], s["role"], s["site"], s["up"]) for s in found["servers"]]
    roles = [("pec", "Delft"), ("psc", "Leiden"), ("bsc", "Leiden")]
    assert rows == [(name, *role, True) for name, role in zip(SERVERS, roles, strict=True)]
    assert found["supervisor"] == holder(acme.run / LOCK)
    for node in load_nodes(acme.run):
        text = Path(node.config).read_text(encoding="utf-8")
        assert 'signing = "require"' in text
        assert (Path(node.home) / "signing.key").stat().st_mode & 0o077 == 0
    readable = [path for path in acme.run.rglob("*") if path.lstat().st_mode & 0o077]
    assert readable == [], "logs and what 'up' printed included"
    shown = run("status", "--once", "--run", acme.run)
    assert shown.exit_code == 0
    assert "Acme  3 of 3 servers up" in shown.stdout
    assert "Every replica is equal to its authority" in shown.stdout


def test_the_directory_has_what_the_plan_has_everywhere(acme: Acme) -> None:
    acme.until(agreed)
    for node in load_nodes(acme.run):
        got = run("get", "queue", "desk1\\inbox", "-s", node.store, "--json")
        assert json.loads(got.stdout)["properties"]["label"] == "Notices"
        route = run("route", "app1", "desk1", "-s", node.store).stdout
        assert "app1 to desk1: 3 hops, cost 7" in route


def test_a_change_at_a_backup_reaches_everybody(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lei-dir2 has it made by del-dir1, who is the authority of app1."""
    monkeypatch.setenv("MQIS_USER", "ACME\\admin")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(acme.run / "passwords" / "admin"))
    made = run("create", "queue", "app1\\hello", "--server", acme.address("lei-dir2"))
    assert "created queue app1\\hello (" in made.stdout
    acme.until(agreed)
    for server in SERVERS:
        assert run("get", "queue", "app1\\hello", "--server", acme.address(server)).exit_code == 0


def test_servers_are_known_by_their_names(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of the same name is not asked; a port or another name is taken as it is."""
    monkeypatch.setenv("MQIS_RUN", str(acme.run))
    wanted = run("get", "site", "Leiden", "--server", acme.address("lei-dir2"), "--json").stdout
    assert json.loads(wanted)["path"] == "Leiden"
    assert run("get", "site", "Leiden", "--server", "LEI-dir2", "--json").stdout == wanted
    unknown = str(run("get", "site", "Leiden", "--server", "lei-dir2:1").exception)
    assert "lei-dir2" in unknown
    monkeypatch.setenv("MQIS_SERVER", "lei-dir2")
    assert run("get", "site", "Leiden", "--json").stdout == wanted
    assert "2 sites" in run("lookup", "site").output
    assert "checked " in run("check").output
    assert "a route for all" in run("routes", "--stuck").output
    monkeypatch.delenv("MQIS_SERVER")
    # Where no server has its configuration, commands look at the run directory.
    monkeypatch.chdir(acme.directory)
    reports = json.loads(run("doctor", "--json").stdout)["servers"]
    assert {report["server"] for report in reports} >= set(SERVERS)
    assert json.loads(run("check", "--json").stdout)["clean"]
    monkeypatch.setenv("MQIS_SERVER", "lei-dir2")
    # A store that is named counts, and so does another server.
    store = load_nodes(acme.run).named("del-dir1").store
    held = json.loads(run("get", "site", "Leiden", "--store", store, "--json").stdout)
    assert held["seq"]
    assert json.loads(wanted)["seq"] is None
    other = str(run("get", "site", "Leiden", "--server", "127.0.0.1:1").exception)
    assert "127.0.0.1:1" in other


def test_one_that_is_killed_comes_back(acme: Acme) -> None:
    before = load_nodes(acme.run).named("lei-dir2")
    told = run("kill", "LEI-DIR2", "--run", acme.run).stdout
    assert told == f"killed lei-dir2, process {before.pid}; it is brought back\n"

    def back(status: dict[str, Any]) -> bool:
        server = status["servers"][2]
        return agreed(status) and server["restarts"] == before.restarts + 1

    assert acme.until(back)["servers"][2]["pid"] != before.pid
    assert (
        "lei-dir2 ended (SIGKILL); starting it again"
        in run("logs", "supervisor", "--run", acme.run, "--level", "warning").stdout
    )


def test_one_that_is_stopped_stays_down_until_it_is_started(acme: Acme) -> None:
    run("stop", "lei-dir2", "--run", acme.run)
    shown = run("status", "--once", "--run", acme.run)
    assert shown.exit_code == 1
    assert "Acme  2 of 3 servers up" in shown.stdout
    assert acme.status()["servers"][2]["state"] == "stopped"
    placed = json.loads(run("where", "LEI-DIR2", "--run", acme.run, "--json").stdout)
    assert (placed["server"], placed["address"]) == ("lei-dir2", acme.address("lei-dir2"))
    started = run("start", "lei-dir2", "--run", acme.run).stdout
    assert started.startswith("lei-dir2 is ready, process ")
    acme.until(agreed)


def test_logs_of_all_or_of_one(acme: Acme) -> None:
    everything = run("logs", "--run", acme.run, "-n", "0").stdout.splitlines()
    assert {line.split()[0] for line in everything} == {*SERVERS, "supervisor"}
    times = [line.split()[1] for line in everything]
    assert times == sorted(times)
    last = json.loads(run("logs", "del-dir1", "--run", acme.run, "-n", "1", "--json").stdout)
    assert last["server"] == "del-dir1"
    assert last["text"].startswith(last["time"])
    one = run("logs", "del-dir1", "--run", acme.run, "-n", "1000").stdout
    assert "mqis.server.serve: serving enterprise=Acme server=del-dir1" in one
    assert "lei-dir2" not in run("logs", "del-dir1", "--run", acme.run, "--level", "error").stdout


def test_status_is_live_on_a_terminal(acme: Acme) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "mqis.cli.main", "status", "--every", "0.2"]
    with subprocess.Popen(
        [*command, "--run", acme.run], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        text = b""
        while text.count(b"3 of 3 servers up") < 3:  # each look shows it again
            text += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
    os.close(ours)


def test_logs_follow_what_is_written(acme: Acme) -> None:
    node = load_nodes(acme.run).named("lei-dir2")
    command = [sys.executable, "-m", "mqis.cli.main", "logs", "lei-dir2", "--follow", "-n", "1"]
    with subprocess.Popen([*command, "--run", acme.run], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        ours = "2026-11-15T08:00:00.000Z warning mqis.test: somebody wrote this\n"
        with Path(node.log).open("a", encoding="utf-8") as log:
            log.write(ours)
        while (line := process.stdout.readline()) != ours.encode():
            assert line, "it ended; the server itself may write meanwhile, and that comes too"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0


def test_the_pipelines_input_is_gathered_while_it_runs(acme: Acme) -> None:
    """Each journal is whole and has everything that the export of its server has."""
    acme.until(agreed)
    before = [path.stat().st_ino for path in (acme.run / "servers").rglob("*.db")]
    found = gather(acme.run)
    assert (found.enterprise, list(found.servers), found.problems) == ("Acme", SERVERS, ())
    assert found.journals is not None
    for server in SERVERS:
        place = found.journals / server
        checked = check_journal(place)
        assert checked.faults == ()
        # No key is given to check signatures with; a torn end would be a notice too.
        assert {notice.check for notice in checked.notices} <= {ChainState.UNCHECKED}
        made = {
            (entry.record.partition, entry.record.seq.value)
            for entry in records(found.journals / server)
            if entry.record.state in (RecordState.LOCAL, RecordState.APPLIED)
        }
        with (found.exports / f"{server}.jsonl").open(encoding="ascii") as file:
            header = parse_header(file.readline())
        assert header.server is not None, "the server has written its identity into its store"
        assert (header.server.name, header.server.id) == (server, server_id_of(place))
        owned = [state for state in header.partitions if state.owner == server]
        assert owned or server == "lei-dir2"
        assert all((state.id, state.last_seq.value) in made for state in owned)
    assert before == [path.stat().st_ino for path in (acme.run / "servers").rglob("*.db")]
    assert [path.name for path in acme.run.glob("*gathered*")] == ["gathered"]
    assert (acme.run / "gathered").stat().st_mode & 0o077 == 0


def test_what_is_wrong_is_told(acme: Acme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert acme.mqis("up") == "Acme is up: no change\n"
    assert "no such server; there are del-dir1" in str(
        run("stop", "nobody", "--run", acme.run).exception
    )
    error = run("status", "--run", tmp_path).exception
    assert "'mqis up' writes it" in str(error)
    assert "no enterprise is running there" not in str(error)
    monkeypatch.chdir(tmp_path)
    missing = run("up", "--run", tmp_path / "none").exception
    assert "'mqis up --example > enterprise.toml' writes one" in str(missing)


def test_a_supervisor_that_was_killed_is_followed_by_another(acme: Acme) -> None:
    """Servers live on without it; the next 'mqis up' ends them, starts them and adds to them."""
    pid = holder(acme.run / LOCK)
    assert pid
    before = [node.pid for node in load_nodes(acme.run)]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: holder(acme.run / LOCK) is None)
    alone = acme.status()
    assert alone["supervisor"] is None
    assert all(server["up"] for server in alone["servers"])
    assert "no enterprise is running there" in str(
        run("stop", "del-dir1", "--run", acme.run).exception
    )
    acme.file.write_text(PLAN + MORE, encoding="utf-8")
    told = acme.mqis("up", "--detach")
    assert told.count("outlived its supervisor and was ended") == 3
    found = acme.until(agreed)
    assert not {server["pid"] for server in found["servers"]} & set(before)
    for server in SERVERS:
        store = load_nodes(acme.run).named(server).store
        for path in ("app1\\later", "desk1\\inbox"):
            assert run("get", "queue", path, "-s", store).exit_code == 0
        links = json.loads(run("lookup", "link", "--json", "-s", store).stdout)
        assert len(links) == 1  # and not a second one between the same sites


def test_it_goes_down_in_order(acme: Acme) -> None:
    assert run("down", "--run", acme.run).stdout == "Acme is down\n"
    lines = run("logs", "supervisor", "--run", acme.run).stdout.splitlines()
    stopped = [line for line in lines if "state=stopped" in line][-3:]
    assert [line.partition("server=")[2].split()[0] for line in stopped] == SERVERS[::-1]
    for node in load_nodes(acme.run):
        assert node.pid is None
        assert holder(Path(node.home) / "lock") is None
    assert "nothing runs there" in run("down", "--run", acme.run).stdout


def test_the_example_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(run("up", "--example").stdout, encoding="utf-8")
    assert len(load_plan(path).servers) == 5
