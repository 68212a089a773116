"""A real broadcast: two network namespaces joined by a pair of virtual Ethernet devices.

On one side ``mqis serve``, on the other ``mqis discover``, as processes of their own.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.wire.mqds.objecttype import ObjectType
from tests.waiting import DEADLINE_S

HERE, THERE = f"mqis{os.getpid()}a", f"mqis{os.getpid()}b"
SERVERS = ("10.181.1.1", "10.181.1.3")
CLIENT = "10.181.1.2"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def namespaces() -> Iterator[None]:
    if sys.platform != "linux" or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux and the ip command (iproute2)")
    with ExitStack() as made:
        try:
            for name in (HERE, THERE):
                ip("netns", "add", name)
                made.callback(ip, "netns", "delete", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("-n", HERE, "link", "add", "wire", "type", "veth", "peer", "wire", "netns", THERE)
            for name, address in ((HERE, SERVERS[0]), (HERE, SERVERS[1]), (THERE, CLIENT)):
                ip("-n", name, "addr", "add", f"{address}/24", "brd", "10.181.1.255", "dev", "wire")
            for name in (HERE, THERE):
                ip("-n", name, "link", "set", "wire", "up")
                ip("netns", "exec", name, sys.executable, "-c", "")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        yield


def inside(namespace: str, *arguments: str) -> list[str]:
    python = [sys.executable, "-m", "mqis.cli.main"]
    return ["ip", "netns", "exec", namespace, *python, *arguments]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as opened:
        demo.build(opened)
    return path


@contextmanager
def serving(directory: Path, store: Path, name: str, listen: str) -> Iterator[dict[str, Any]]:
    directory.mkdir()
    copyfile(store, directory / "d.db")
    options = ("--name", name, "--store", "d.db", "--mapper-port", "0", "--discovery", listen)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            inside(HERE, "serve", "--json", *options),
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    with process, process.stdout:
        try:
            readable, _, _ = select.select([process.stdout], [], [], DEADLINE_S)
            line = process.stdout.readline() if readable else b""
            assert line, (directory / "log").read_text()
            yield json.loads(line)
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


def discover(*options: str) -> dict[str, Any]:
    done = subprocess.run(
        inside(THERE, "discover", "--json", *options),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.req("MQSD-3.1.5.1-05", "MQSD-2.1-03", "MQSD-2.1-04", "MQSD-1.6-01")
def test_two_servers_at_addresses_of_their_own(
    namespaces: None, store: Path, tmp_path: Path
) -> None:
    with (
        serving(tmp_path / "a", store, "ams-dir1", SERVERS[0]) as first,
        serving(tmp_path / "b", store, "ber-dir1", SERVERS[1]),
    ):
        assert first["discovery_port"] == 1801
        found = discover()
        assert found["asked"] == [
            {"network": CLIENT, "broadcast": True, "targets": ["10.181.1.255:1801"]}
        ]
        assert {r["address"] for r in found["responders"]} == set(SERVERS)
        assert not any(r["own_site"] for r in found["responders"])
        assert found["directory_servers"] in (["ams-dir1", "ams-dir2"], ["ber-dir1", "ber-dir2"])

        with closing(open_store(str(store))) as opened, opened.read() as view:
            berlin = view.find(ObjectType.SITE, "Berlin")
        assert berlin is not None
        own = discover("--site", str(berlin.id), "--prefer-own-site")
        assert {"network": CLIENT, "address": SERVERS[1], "own_site": True} in own["responders"]
        assert own["directory_servers"] == []


@pytest.mark.req("MQSD-2.1-04", "MQSD-3.2.5.1-07")
def test_a_server_at_all_addresses(namespaces: None, store: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "c", store, "chi-dir1", "0.0.0.0"):
        found = discover("--timeout", "5", "--network", CLIENT)
        assert found["responders"] == [
            {"network": CLIENT, "address": SERVERS[0], "own_site": False}
        ]
        assert found["directory_servers"] == ["chi-dir1"]
