"""``mqis oletx``: two commands in processes of their own, and what they say when it fails."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqis.testing import ports
from tests.cli.commands import process, run
from tests.waiting import DEADLINE_S

ALPHA = "ALPHA/b51996ef-c434-4f79-a288-56efd302fc8e"
BETA = "BETA/a3afb37b-f64a-4e6c-9017-f6a96ba6f166"
CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "ixnremote"


class Listening:
    def __init__(self, listener: subprocess.Popen[str], mapper_port: int) -> None:
        self.listener = listener
        self.mapper_port = mapper_port

    def stop(self) -> list[str]:
        """Stops the listener and returns the lines that it printed since it was ready."""
        self.listener.send_signal(signal.SIGTERM)
        out, _ = self.listener.communicate(timeout=DEADLINE_S)
        return out.splitlines()


@contextmanager
def listening(name: str, partner_mapper: int, *options: str) -> Iterator[Listening]:
    partner = "BETA" if name == ALPHA else "ALPHA"
    command = [sys.executable, "-m", "mqis.cli.main", "oletx", "listen", "--name", name]
    command += ["--mapper-port", "0", "--host", f"{partner}=127.0.0.1:{partner_mapper}", *options]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert listener.stdout is not None
        line = listener.stdout.readline()
        ready = re.fullmatch(rf"ready: {name}, 127.0.0.1:\d+, endpoint mapper .*:(\d+)\n", line)
        assert ready, line
        yield Listening(listener, int(ready[1]))
    finally:
        listener.kill()
        listener.wait(DEADLINE_S)


@pytest.fixture
def free_port() -> int:
    return ports.free_port()


def options(name: str, own_mapper: int, partner_mapper: int) -> list[str]:
    partner = "BETA" if name == ALPHA else "ALPHA"
    host = f"{partner}=127.0.0.1:{partner_mapper}"
    return ["--name", name, "--mapper-port", str(own_mapper), "--host", host]


@pytest.mark.parametrize(("name", "partner"), [(ALPHA, BETA), (BETA, ALPHA)])
def test_connect_shows_the_answers(name: str, partner: str, free_port: int) -> None:
    with listening(partner, free_port, "--echo") as listener:
        mine = options(name, free_port, listener.mapper_port)
        messages = ["--send", "0x2001:c0ffee", "--send", "7", "--wait", "4"]
        done = process("oletx", "connect", partner, *mine, *messages, "--type", "0x101")
        assert done.returncode == 0, done.stderr
        said = done.stdout.decode().splitlines()
        host = partner.partition("/")[0]
        assert said[1] == f"connected: {partner}, level three version 5"
        assert said[2:] == [f"{host}#1 0x2001, 3 bytes c0ffee", f"{host}#1 0x7, 0 bytes"]
        own = name.partition("/")[0]
        assert listener.stop() == [
            f"{own}#1 opened: type 0x101, {name}",
            f"{own}#1 0x2001, 3 bytes c0ffee",
            f"{own}#1 0x7, 0 bytes",
            f"{own}#1 closed",
        ]


def test_ping(free_port: int) -> None:
    with listening(BETA, free_port) as listener:
        mine = options(ALPHA, free_port, listener.mapper_port)
        done = process("oletx", "ping", BETA, *mine, "--count", "2", "--interval", "0.01")
        assert done.returncode == 0, done.stderr
        _, session, *pings = done.stdout.decode().splitlines()
        assert re.fullmatch(rf"session with {BETA} in .* ms: primary here, versions 2.1.5", session)
        assert [re.sub(r"[\d.]+ ms", "T", line) for line in pings] == ["PING 1: T", "PING 2: T"]


def test_ping_for_programs(free_port: int) -> None:
    with listening(BETA, free_port) as listener:
        mine = options(ALPHA, free_port, listener.mapper_port)
        done = process("oletx", "ping", BETA, *mine, "--count", "1", "--json")
        ready, session, ping = map(json.loads, done.stdout.splitlines())
        assert ready["name"] == ALPHA
        assert (session["partner"], session["versions"]) == (BETA, "2.1.5")
        assert (ping["event"], ping["number"]) == ("ping", 1)


def test_a_partner_that_is_not_there(free_port: int) -> None:
    mine = options(ALPHA, 0, free_port)
    done = process("oletx", "ping", BETA, *mine)
    assert done.returncode == 1
    assert b"SERVER_UNAVAILABLE" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_port_that_is_taken() -> None:
    with listening(ALPHA, 1) as listener:
        taken = str(listener.mapper_port)
        done = process("oletx", "listen", "--name", BETA, "--mapper-port", taken)
        assert done.returncode == 1
        assert b"cannot listen" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("ping", "BETA"),
        ("ping", "BETA/123"),
        ("connect", BETA, "--type", "x"),
        ("connect", BETA, "--type", "0x100000000"),
        ("connect", BETA, "--send", "1:xyz"),
        ("listen", "--host", "BETA"),
        ("listen", "--host", "BETA=1.2.3.4:x"),
    ],
)
def test_arguments_that_make_no_sense(wrong: tuple[str, ...]) -> None:
    result = run("oletx", *wrong)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("seed", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_decode_reads_requests_of_the_interface(seed: Path) -> None:
    result = run("decode", "--protocol", "ixnremote", seed)
    assert result.exit_code == 0
    assert "operation: " in result.output
