"""``mqis trace`` on three servers, and that nothing they tell has a secret in it.

A backup controller takes a client's change, its PSC passes it on, the PEC makes it, and all three
write about it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqis.config.nodes import Nodes, load_nodes
from mqis.runtime.authentication.account import nt_hash
from mqis.wire.errors import MqisError
from tests.cli.commands import process, run
from tests.waiting import wait_until

SECRET = "Marked-Secret-7f3a9c51"
WRONG = "Marked-Wrong-0b64d2aa"
PLAN = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[site]]
name = "Leiden"
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[server]]
name = "lei-dir1"
site = "Leiden"
role = "psc"
[[server]]
name = "lei-dir2"
site = "Leiden"
role = "bsc"
[[machine]]
name = "app1"
site = "Delft"
[[account]]
name = "admin"
administrator = true
password_file = "secret"
[options.replication]
journal = "journal"
[options.log]
level = "debug"
"""


class Traced:
    """The enterprise after a client's change went all the way, and another client's did not."""

    def __init__(self, directory: Path) -> None:
        self.run = directory / "run"
        (directory / "enterprise.toml").write_text(PLAN, encoding="utf-8")
        secret = directory / "secret"
        secret.write_text(f"{SECRET}\n", encoding="utf-8")
        secret.chmod(0o600)
        self.environment = {"MQIS_RUN": str(self.run), "MQIS_USER": "ACME\\admin"}
        self.secret = {"MQIS_PASSWORD_FILE": str(secret)}
        self.directory = directory
        self.shown: list[bytes] = []

    def mqis(self, *words: str, env: dict[str, str], status: int = 0) -> bytes:
        done = process(*words, directory=self.directory, env=self.environment | env)
        self.shown.append(done.stdout + done.stderr)
        assert done.returncode == status, self.shown[-1]
        return done.stdout

    @property
    def nodes(self) -> Nodes:
        return load_nodes(self.run)

    def create(self, server: str, path: str) -> str:
        """The identifier of the new queue."""
        node = self.nodes.named(server)
        at = f"{node.address}:{node.rpc_port}"
        told = self.mqis("create", "queue", path, "--server", at, env=self.secret).decode()
        match = re.search(r"\(([0-9a-f-]{36})\)", told)
        assert match is not None, told
        return match[1]

    def lines(self, server: str, word: str) -> list[str]:
        log = Path(self.nodes.named(server).log).read_text(encoding="utf-8")
        return [line for line in log.splitlines() if "mqis.change: " in line and word in line]

    def wait_for_lines(self, word: str, *servers: str) -> None:
        wait_until(lambda: all(self.lines(server, word) for server in servers), word)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    made = Traced(tmp_path_factory.mktemp("traced"))
    try:
        made.mqis("up", "--detach", env={})
        yield made
    finally:
        run("down", "--run", made.run)


def detail(line: str, key: str) -> str:
    match = re.search(rf' {key}=("[^"]*"|\S+)', line)
    assert match is not None, (key, line)
    return match[1].strip('"')


@pytest.fixture(scope="module")
def forwarded(traced: Traced) -> tuple[str, str]:
    """Request and change of a queue that was created at the backup controller."""
    id_ = traced.create("lei-dir2", "app1\\forwarded")
    (decided,) = traced.lines("del-dir1", id_)
    change = detail(decided, "change")
    traced.wait_for_lines(change, "lei-dir1", "lei-dir2")
    return detail(decided, "request"), change


def events(found: dict[str, Any], source: str) -> list[tuple[str, str]]:
    return [(s["server"], s["event"]) for s in found["steps"] if s["source"] == source]


def traced_json(traced: Traced, name: str) -> dict[str, Any]:
    done = run("trace", name, "--run", traced.run, "--json")
    assert done.exit_code == 0, done.output
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_one_grep_finds_each_half(traced: Traced, forwarded: tuple[str, str]) -> None:
    request, change = forwarded
    asked = {s: [_event(line) for line in traced.lines(s, request)] for s in _SERVERS}
    assert asked == {
        "lei-dir2": ["change forwarded", "change answered"],
        "lei-dir1": ["change relayed"],
        "del-dir1": ["change decided"],
    }
    came = {s: [_event(line) for line in traced.lines(s, change)] for s in _SERVERS}
    assert came == {
        "del-dir1": ["change decided"],
        "lei-dir1": ["change applied"],
        "lei-dir2": ["change applied"],
    }
    (line, _) = traced.lines("lei-dir2", request)
    assert detail(line, "user") == "ACME\\admin"
    assert (detail(line, "operation"), detail(line, "type")) == ("create", "queue")
    assert (detail(line, "object"), detail(line, "to")) == ("app1\\forwarded", "lei-dir1")


_SERVERS = ("del-dir1", "lei-dir1", "lei-dir2")


def _event(line: str) -> str:
    match = re.search(r"mqis\.change: ([a-z ]+) \w+=", line)
    assert match is not None, line
    return match[1]


def test_the_whole_way_by_either_name(traced: Traced, forwarded: tuple[str, str]) -> None:
    request, change = forwarded
    found = traced_json(traced, change)
    assert (found["change"], found["request"]) == (change, request)
    assert sorted(events(found, "log")) == sorted(
        [
            ("lei-dir2", "change forwarded"),
            ("lei-dir1", "change relayed"),
            ("del-dir1", "change decided"),
            ("lei-dir2", "change answered"),
            ("lei-dir1", "change applied"),
            ("lei-dir2", "change applied"),
        ]
    )
    journaled = events(found, "journal")
    for step in (
        ("lei-dir2", "change request queued"),
        ("lei-dir1", "change request received"),
        ("lei-dir1", "change request queued"),
        ("del-dir1", "change request received"),
        ("del-dir1", "create queue local"),
        ("del-dir1", "change propagation queued"),
        ("lei-dir1", "change propagation received"),
        ("lei-dir1", "create queue applied"),
        ("lei-dir2", "create queue applied"),
        ("lei-dir2", "change reply received"),
    ):
        assert step in journaled, step
    times = [step["time"] for step in found["steps"]]
    assert times == sorted(times)
    assert traced_json(traced, "APP1\\Forwarded")["change"] == change, "by its object"
    same = traced_json(traced, request.upper())
    assert {(s["time"], s["event"]) for s in found["steps"]} <= {
        (s["time"], s["event"]) for s in same["steps"]
    }


def test_a_change_of_the_authority_itself(traced: Traced) -> None:
    id_ = traced.create("del-dir1", "app1\\own")
    (made,) = traced.lines("del-dir1", id_)
    change = detail(made, "change")
    traced.wait_for_lines(change, "lei-dir1", "lei-dir2")
    found = traced_json(traced, change)
    assert found["request"] is None
    assert sorted(events(found, "log")) == [
        ("del-dir1", "change made"),
        ("lei-dir1", "change applied"),
        ("lei-dir2", "change applied"),
    ]


def test_the_table(traced: Traced, forwarded: tuple[str, str]) -> None:
    shown = run("trace", forwarded[0], "--run", traced.run).stdout
    assert f"change   {forwarded[1]}" in shown
    assert re.search(r"^0\.0 +lei-dir2 ", shown, re.MULTILINE)
    assert re.search(r"lei-dir1 +log +change relayed", shown)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "no change of such an object"),
        ("lei-dir2:00000000", "no log or journal mentions it"),
    ],
)
def test_what_cannot_be_traced(traced: Traced, name: str, message: str) -> None:
    error = run("trace", name, "--run", traced.run).exception
    assert isinstance(error, MqisError)
    assert message in str(error)


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_that_is_told_has_a_secret_in_it(
    traced: Traced, forwarded: tuple[str, str]
) -> None:
    """Servers joined, logged on to, changed, and asked with a wrong password, at level debug."""
    wrong = traced.directory / "wrong"
    wrong.write_text(f"{WRONG}\n", encoding="utf-8")
    wrong.chmod(0o600)
    node = traced.nodes.named("del-dir1")
    at = f"{node.address}:{node.rpc_port}"
    traced.mqis(
        *("delete", "queue", "app1\\forwarded", "--server", at),
        env={"MQIS_PASSWORD_FILE": str(wrong)},
        status=1,
    )
    told = b"".join(_told(traced))
    assert b"cannot log on" in told, "the logs are not those of this enterprise"
    assert b"mqis_authentication_failures_total 1.0" in told
    for secret in _secrets(traced):
        assert secret not in told
        assert secret.lower() not in told.lower()


def _told(traced: Traced) -> Iterator[bytes]:
    """Logs, documents, arguments of all processes, and what commands have shown."""
    for path in (*traced.run.glob("*.log"), *(Path(node.log) for node in traced.nodes)):
        yield path.read_bytes()
    for node in traced.nodes:
        for document in ("status", "metrics", "health"):
            with urllib.request.urlopen(f"{node.monitor_url}/{document}") as answer:
                yield answer.read()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:  # it has ended
            continue
    for node in traced.nodes:
        assert node.pid is not None
        if os.access(f"/proc/{node.pid}/environ", os.R_OK):
            yield Path(f"/proc/{node.pid}/environ").read_bytes()
    yield from traced.shown


def _secrets(traced: Traced) -> Iterator[bytes]:
    """Passwords, their hashes, and every line of every private key."""
    for password in (SECRET, WRONG):
        yield password.encode()
        yield password.encode("utf-16-le")
        yield nt_hash(password).hex().encode()
    keys = [Path(node.home) / "signing.key" for node in traced.nodes]
    for key in keys:
        lines = key.read_bytes().splitlines()
        assert len(lines) > 10
        yield from (line for line in lines[1:-1] if len(line) > 20)
