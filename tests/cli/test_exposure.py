"""The exposure of a server: its listening addresses, and what its process and its logs reveal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
import typer

from mqis.cli.main import app
from mqis.runtime.authentication.account import nt_hash
from mqis.testing.ports import free_port
from tests.cli.commands import process, run
from tests.cli.running import ALICE, PASSWORDS, Running, prepare, serving
from tests.processes import open_files

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
_LISTEN, _UNCONNECTED = "0A", "07"


def listening(pid: int) -> Iterator[tuple[str, IPv4Address | IPv6Address, int]]:
    """Kind, address and port of every socket of a process that takes connections or datagrams."""
    own = {match[1] for name in open_files(pid) if (match := re.match(r"socket:\[(\d+)\]", name))}
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in own and words[3] in (_LISTEN, _UNCONNECTED):
                address, port = words[1].split(":")
                yield kind, _address(address), int(port, 16)


def _address(digits: str) -> IPv4Address | IPv6Address:
    """Words of four bytes, each in the order of this computer."""
    raw = bytes.fromhex(digits)
    if sys.byteorder == "little":
        raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    return ip_address(raw)


CONFIG = """
[server]
name = "ams-dir1"
[store]
url = "sqlite:directory.db"
[rpc]
mapper_port = 0
[security]
domain = "LAB"
[discovery]
enabled = true
port = 0
[monitoring]
enabled = true
port = 0
[log]
level = "debug"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, demo_store: Path) -> Iterator[Running]:
    """With everything on that can be on, no address named, at the most talkative level."""
    home = tmp_path_factory.mktemp("exposed")
    prepare(home, demo_store, CONFIG)
    with serving(home, "--json") as running:
        yield running


@LINUX
def test_a_server_listens_at_loopback_unless_told(server: Running) -> None:
    found = list(listening(server.process.pid))
    assert len([kind for kind, _, _ in found if kind == "tcp"]) == 3
    assert [kind for kind, _, _ in found if kind == "udp"]
    assert all(address.is_loopback for _, address, _ in found), found


@LINUX
def test_a_server_with_a_role_listens_at_loopback_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mqis.toml"
    monkeypatch.chdir(tmp_path)
    run("init", "--enterprise", "Acme", "--site", "Delft", "--name", "pec1")
    text = file.read_text().replace("port = 1801", f"port = {free_port()}")
    for old, new in (("mapper_port = 135", "mapper_port = 0"), ("ping = false", "ping = true")):
        text = text.replace(old, new)
    file.write_text(text.replace("ping_port = 3527", "ping_port = 0"))
    with serving(tmp_path, "--json") as server:
        found = list(listening(server.process.pid))
    assert len(found) == 4  # directory, mapper, queue manager, ping
    assert all(address.is_loopback for _, address, _ in found), found


def parameters(command: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every option and argument there is, with the command that takes it."""
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from parameters(command.get_command(None, name), f"{path} {name}")
    else:
        yield path, "help"
    for parameter in command.params:
        for word in (parameter.name, *parameter.opts):
            yield path, word


def test_no_command_takes_a_secret_as_an_argument() -> None:
    """Arguments are in the process list, for everybody on the computer."""
    found = list(parameters(typer.main.get_command(app)))
    assert len({path for path, _ in found}) > 20
    # The name of a file with a secret tells nothing.
    secrets = re.compile(r"pass(?!word.file)|secret|hash|credential|token")
    assert [each for each in found if secrets.search(each[1])] == []


@LINUX
def test_neither_process_list_nor_log_tells_a_secret(server: Running) -> None:
    """With a logon that succeeds and one that fails."""
    secret, wrong = PASSWORDS[ALICE].decode().strip(), "not the rabbit hole"
    asked = ("lookup", "site", "--server", server.address, "--user", ALICE)
    granted = process(*asked, stdin=PASSWORDS[ALICE])
    assert granted.returncode == 0, granted.stderr
    denied = process(*asked, stdin=f"{wrong}\n".encode())
    assert denied.returncode == 1
    own = Path(f"/proc/{server.process.pid}")
    shown = (own / "cmdline").read_bytes() + (own / "environ").read_bytes()
    told = server.log + (shown + denied.stderr + denied.stdout).decode()
    assert "cannot log on" in told
    for word in (secret, wrong):
        assert word not in told
        assert nt_hash(word).hex() not in told.lower()
