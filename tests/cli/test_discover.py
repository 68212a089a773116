"""``mqis discover`` and ``--discover``."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from tests.cli.commands import process, run
from tests.cli.running import CONFIG, Running, prepare, serving
from tests.runtime.discovery.loopback import SITE_A, A, Asking, B
from tests.wire.mqsd.vectors import OTHER_SITE_BYTES

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="every 127.x.y.z is an address on Linux alone"
)


@contextmanager
def answering(*own: DiscoveryQueueManager, noise: bytes = b"") -> Iterator[list[str]]:
    """Servers on threads, without an event loop; their endpoints."""
    stop = Event()
    sockets = [Asking("127.0.83.1") for _ in own]

    def serve(asked: Asking, server: DiscoveryServer) -> None:
        while not stop.is_set():
            if select.select([asked.socket], [], [], 0.05)[0]:
                data, source = asked.socket.recvfrom(65_535)
                if noise:
                    asked.socket.sendto(noise, source)
                reply = server.answer(data, source[0], 0.0)
                if reply is not None:
                    asked.socket.sendto(reply, source)

    pairs = zip(sockets, map(DiscoveryServer, own), strict=True)
    threads = [Thread(target=serve, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    try:
        yield [f"127.0.83.1:{asked.socket.getsockname()[1]}" for asked in sockets]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for asked in sockets:
            asked.socket.close()


def endpoints(found: list[str]) -> list[str]:
    return [word for endpoint in found for word in ("--endpoint", endpoint)]


# --- mqis discover --------------------------------------------------------------------------------


def test_what_was_found_and_from_whom() -> None:
    with answering(A, B) as found:
        result = run("discover", *endpoints(found))
    assert result.exit_code == 0, result.output
    first, *answers, names, networks = result.stdout.splitlines()
    assert first == f"asking each configured endpoint, without a broadcast: {', '.join(found)}"
    told = {
        f"  127.0.83.1 answers: site {own.site_id} has {', '.join(own.directory_servers)}": own
        for own in (A, B)
    }
    assert set(answers) == set(told)
    chosen = told[answers[0]]
    assert names == f"directory servers: {', '.join(chosen.directory_servers)}"
    assert networks == f"connected networks: {chosen.connected_networks[0]}"


def test_as_json() -> None:
    with answering(A) as found:
        result = run("discover", "--json", "--site", str(SITE_A), *endpoints(found))
    assert json.loads(result.stdout) == {
        "success": True,
        "reason": "",
        "asked": [{"network": "0.0.0.0", "broadcast": False, "targets": found}],
        "responders": [{"network": "0.0.0.0", "address": "127.0.83.1", "own_site": True}],
        "directory_servers": [],
        "connected_networks": [str(A.connected_networks[0])],
    }


def test_the_own_site_is_known_by_address() -> None:
    with answering(A) as found:
        result = run("discover", "--site", str(SITE_A), *endpoints(found))
    assert "  127.0.83.1 answers: it is in this site\n" in result.stdout
    assert "servers of this site, by address: 127.0.83.1\n" in result.stdout


def test_lines_come_while_it_waits() -> None:
    """The answer is there long before the wait for others is over."""
    command = [sys.executable, "-m", "mqis.cli.main", "discover", "--timeout", "60"]
    with (
        answering(A) as found,
        subprocess.Popen([*command, *endpoints(found)], stdout=subprocess.PIPE) as waiting,
    ):
        assert waiting.stdout is not None
        try:
            assert waiting.stdout.readline().startswith(b"asking each configured endpoint")
            assert waiting.stdout.readline().startswith(b"  127.0.83.1 answers: site ")
            assert waiting.poll() is None
        finally:
            waiting.kill()


def test_nobody_answers() -> None:
    with Asking("127.0.83.2") as silent:
        where = f"127.0.83.2:{silent.socket.getsockname()[1]}"
        result = run("discover", "--endpoint", where, "--timeout", "0.05")
        assert isinstance(result.exception, MqisError)
        assert str(result.exception) == (
            "no directory server was found: no directory server answered"
        )
        assert "  nobody answered\n" in result.stdout
        result = run("discover", "--json", "--endpoint", where, "--timeout", "0.05")
        assert result.exit_code == 1
        told = json.loads(result.stdout)
        assert (told["success"], told["reason"]) == (False, "no directory server answered")


def test_what_is_ignored_is_told_a_few_times() -> None:
    with answering(*[A] * 8, noise=OTHER_SITE_BYTES) as found:
        result = run("discover", "--site", str(Guid(b"no server's site")), *endpoints(found))
    lines = [line for line in result.stdout.splitlines() if "is ignored" in line]
    assert 1 <= len(lines) <= 5
    assert lines[0] == "  127.0.83.1 is ignored: it answers another request"


def test_a_broadcast_on_loopback() -> None:
    with Asking("127.0.83.3") as silent:
        port = silent.socket.getsockname()[1]
        options = ("--network", "127.0.0.1", "--port", str(port), "--timeout", "0.05")
        result = run("discover", *options)
    first = result.stdout.splitlines()[0]
    assert first == f"asking everybody on the network of 127.0.0.1 (127.255.255.255:{port})"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--network", "localhost"), "not an IPv4 address"),
        (("--endpoint", "dir1"), "not an IPv4 address[:port]"),
        (("--endpoint", "127.0.0.1:0"), "is not a port"),
        (("--endpoint", "127.0.0.1:x"), "is not a port"),
        (("--site", "Berlin"), "is not a GUID"),
    ],
)
def test_misuse(options: tuple[str, str], reason: str) -> None:
    result = run("discover", *options)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", "").split())


# --- a server that is found -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("found")
    prepare(directory, demo_store, CONFIG)
    with serving(
        directory, "--json", "--listen", "127.0.83.4", "--discovery", "127.0.83.4:0"
    ) as up:
        yield up


def test_a_command_finds_its_server(server: Running) -> None:
    """The name in the list resolves nowhere, so it is who answered that is connected to."""
    endpoint = f"127.0.83.4:{server.ready['discovery_port']}"
    mapper = ("--mapper-port", str(server.ready["mapper_port"]))
    env = {"MQIS_DISCOVERY_ENDPOINTS": endpoint, "MQIS_DISCOVERY_TIMEOUT": "3"}
    done = process("lookup", "enterprise", "--discover", *mapper, "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert [found["path"] for found in json.loads(done.stdout)] == ["Meridian"]
    done = process("servers", "--discover", *mapper, "--json", env=env)
    assert json.loads(done.stdout)[0]["servers"] == ["ams-dir1", "ams-dir2"]


def test_it_is_not_looked_for_unasked(server: Running) -> None:
    endpoint = f"127.0.83.4:{server.ready['discovery_port']}"
    done = process("servers", env={"MQIS_DISCOVERY_ENDPOINTS": endpoint})
    assert done.returncode == 2
    assert b"--discover" in done.stderr


def test_the_ready_line_names_the_port(demo_store: Path, tmp_path: Path) -> None:
    prepare(tmp_path, demo_store, CONFIG)
    with serving(tmp_path, "--discovery", "127.0.83.5:0") as up:
        assert up.line.split(", ")[-1].startswith("discovery UDP ")
        assert "broadcast=127.255.255.255" in up.log
        assert up.stop() == 0


def test_a_wrong_place_to_listen(demo_store: Path, tmp_path: Path) -> None:
    prepare(tmp_path, demo_store, CONFIG)
    done = process("serve", "--discovery", "localhost", directory=tmp_path, env=dict(os.environ))
    assert done.returncode == 1
    assert b"discovery.listen: 'localhost' is not an IP address" in done.stderr
