"""``mqis serve`` as a process: its ready line, its signals, its end."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import ProtocolError
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.server.accounts import AccountsFile
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.cli.commands import process, run
from tests.cli.running import ALICE, BOB, CONFIG, PASSWORDS, Running, prepare, serving
from tests.waiting import DEADLINE_S, in_time


def test_ready_line_reread_and_end(demo_store: Path, tmp_path: Path) -> None:
    """One server through its whole life, because each start takes a second."""
    prepare(tmp_path, demo_store)
    with serving(tmp_path, "--json") as server:
        ready = server.ready
        assert list(ready) == [
            *("event", "enterprise", "server", "site", "address", "port", "mapper_port"),
            *("discovery_port", "role", "queue_port", "partitions", "monitoring_port"),
        ]
        assert (ready["event"], ready["enterprise"], ready["site"]) == (
            *("ready", "Meridian", "Amsterdam"),
        )

        # Bob is no administrator, until the configuration says so and SIGHUP has it read.
        create = ("create", "queue", "ams-app1\\bobs", "--user", BOB, *server.through_mapper)
        assert run(*create, stdin=PASSWORDS[BOB]).exit_code == 1
        bob = AccountsFile(tmp_path / "accounts.toml").find("LAB", "bob")
        assert bob is not None
        changed = f'administrators = ["{bob.sid}"]\n[log]\nformat = "json"\nlevel = "debug"\n'
        config = CONFIG.replace("mapper_port = 0", "mapper_port = 0\nmax_connections = 9")
        (tmp_path / "mqis.toml").write_text(config + changed, encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("these keys take effect after a restart")
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
        assert lines[0]["event"] == "configuration reread"
        assert lines[0]["applied"] == ["security.administrators", "log.level", "log.format"]
        assert lines[1]["keys"] == ["rpc.max_connections"]
        assert run(*create, stdin=PASSWORDS[BOB]).exit_code == 0

        # A denial is a line with fields now.
        bobs = ("queue", "ams-app1\\bobs", "--yes")
        alice = ("delete", *bobs, "--user", ALICE, *server.through_mapper)
        assert run(*alice, stdin=PASSWORDS[ALICE]).exit_code == 1
        server.wait_for("may not delete queue")
        denial = next(json.loads(x) for x in server.log.splitlines() if "may not delete" in x)
        assert (denial["logger"], denial["action"]) == ("mqis.audit", "delete")
        assert denial["name"] == "ams-app1\\bobs"

        # A file that is wrong changes nothing.
        (tmp_path / "mqis.toml").write_text("[rpc]\nport = 'x'\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("the new configuration is refused, the old one stays in effect: ")
        assert "mqis.toml: rpc.port: must be a number" in server.log
        assert run("servers", "--server", server.address).exit_code == 0

        assert server.stop() == 0
        assert '"event": "stopped"' in server.log
    assert run("store", "check", "--store", tmp_path / "directory.db").exit_code == 0
    got = run("get", "queue", "ams-app1\\bobs", "--store", tmp_path / "directory.db")
    assert got.exit_code == 0


def test_an_end_under_load_loses_nothing(demo_store: Path, tmp_path: Path) -> None:
    """Changes acknowledged before SIGTERM are there afterwards, and the exit status is 0."""
    prepare(tmp_path, demo_store)
    with serving(tmp_path, "--json") as server:
        port = server.ready["port"]
        acknowledged = asyncio.run(_create_until_it_ends(port, server.process.terminate))
        assert server.process.wait(DEADLINE_S) == 0
    assert len(acknowledged) >= 40
    rows = run("lookup", "queue", "--json", "--store", tmp_path / "directory.db")
    paths = {row["path"] for row in json.loads(rows.stdout)}
    assert acknowledged <= paths
    assert len(paths) - 60 - len(acknowledged) <= 8  # at most what was under way of each client
    assert run("store", "check", "--store", tmp_path / "directory.db").exit_code == 0


async def _create_until_it_ends(port: int, terminate: Callable[[], None]) -> set[str]:
    acknowledged: set[str] = set()
    initiator = PyspnegoInitiator(Secret("alice", "LAB", PASSWORDS[ALICE].decode().strip()))
    credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.PRIVACY, "127.0.0.1")
    label: dict[int, PropVariant] = props({PropId.Q_LABEL: "load"})

    async def one(number: int) -> None:
        address = ServerAddress("127.0.0.1", port)
        client = await DirectoryClient.connect([address], credentials=credentials)
        count = 0
        try:
            while True:
                path = f"ams-app1\\load-{number}-{count}"
                await client.create(ObjectType.QUEUE, path, label)
                acknowledged.add(path)
                count += 1
                if len(acknowledged) == 40:
                    terminate()
        except ProtocolError:  # the server is gone
            await client.close()

    await asyncio.gather(*(one(number) for number in range(8)))
    return acknowledged


def test_calls_may_end_unless_told_twice(demo_store: Path, tmp_path: Path) -> None:
    """A call that waits for its client holds the end up; a second signal does not wait for it."""
    prepare(tmp_path, demo_store)
    with serving(tmp_path, "--json") as server:
        asyncio.run(_stop_while_a_call_runs(server))
        assert (
            "mqis: stopped at once by a second signal: running calls may not have been answered"
            in server.log
        )
        assert "store closed" in server.log


async def _stop_while_a_call_runs(server: Running) -> None:
    called_back = asyncio.Event()

    async def never(*_args: object) -> bytes:
        called_back.set()
        await asyncio.sleep(3600)
        return b""

    initiator = PyspnegoInitiator(Secret("alice", "LAB", "any"))
    context = initiator.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "127.0.0.1")
    request = dscomm.ValidateServer(Guid.NULL, 0, 1, 65_536, context.step(None) or b"")
    port = server.ready["port"]
    async with await RpcClient.connect(
        "127.0.0.1", port, [dscomm.SYNTAX], callbacks=never
    ) as client:
        call = asyncio.create_task(
            invoke(client, dscomm.DSCOMM, dscomm.VALIDATE_SERVER, request, timeout_s=DEADLINE_S)
        )
        await in_time(called_back.wait())
        server.process.terminate()
        await asyncio.to_thread(server.wait_for, "stopping signal=SIGTERM")
        await asyncio.sleep(0.3)
        assert server.process.poll() is None
        server.process.terminate()
        assert await asyncio.to_thread(server.process.wait, DEADLINE_S) == 1
        with pytest.raises(ProtocolError):
            await call


def test_options_instead_of_a_configuration(demo_store: Path, tmp_path: Path) -> None:
    """The line for people; SIGINT ends it as well."""
    prepare(tmp_path, demo_store)
    (tmp_path / "mqis.toml").unlink()
    options = ("--store", "directory.db", "--site", "Berlin", "--mapper-port", "0")
    more = ("--name", "ber-dir1", "--listen", "127.0.0.1", "--log-format", "json")
    with serving(tmp_path, *options, *more, "--log-level", "warning") as server:
        assert server.line.startswith("ready: Meridian, site Berlin, 127.0.0.1:")
        at = server.line.split()[4].rstrip(",")
        assert run("servers", "--server", at).exit_code == 0
        assert server.stop(signal.SIGINT) == 0
        assert server.log == ""


def test_a_mapper_port_that_is_taken(demo_store: Path, tmp_path: Path) -> None:
    prepare(tmp_path, demo_store)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = process("serve", "--mapper-port", str(port), directory=tmp_path)
    assert done.returncode == 1
    assert done.stdout == b""
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"mqis: cannot listen at 127.0.0.1:{port}: Address already in use; ")
    assert "choose another port with rpc.mapper_port or --mapper-port" in last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--listen", "here"), "command line: rpc.listen: 'here' is not an IP address"),
        (
            ("--port", "70000"),
            "command line: rpc.port: must be a number from 0 to 65535, not 70000",
        ),
        (("--store", "mysql:x"), "command line: store.url: 'mysql:x' names no store"),
        (("--site", "Atlantis"), "server.site: the directory has no site 'Atlantis'; it has: Amst"),
        (("--config", "absent.toml"), "absent.toml: cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_named(
    demo_store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    prepare(tmp_path, demo_store)
    monkeypatch.chdir(tmp_path)
    error = run("serve", *options).exception
    assert str(error).startswith(message)


def test_a_server_that_fails_here_leaves_no_log_handler(tmp_path: Path) -> None:
    """Later tests logged to the stream of the runner: "I/O operation on closed file"."""
    root, own = logging.getLogger(), logging.getLogger("asyncio")
    before = list(root.handlers), root.level, own.level
    done = run("serve", "--store", tmp_path / "gone.db", "--log-level", "debug")
    assert "there is no store" in str(done.exception)
    assert (list(root.handlers), root.level, own.level) == before


def test_a_store_that_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MQIS_CONFIG", raising=False)
    assert str(run("serve").exception).startswith("no store is named: use --store")


@pytest.mark.parametrize(("hard", "connections"), [(4096, 2000), (300, 2000)])
def test_room_for_connections(tmp_path: Path, hard: int, connections: int) -> None:
    """A connection is an open file: the soft limit grows as far as the hard one lets it."""
    code = (
        "import logging, resource\n"
        "from mqis.server.serve import raise_file_limit\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (200, {hard}))\n"
        f"raise_file_limit({connections})\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) == min(hard, connections + 128)
    assert (b"raise the limit of open files" in done.stderr) == (hard < connections)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
def test_monitoring_can_be_turned_on_by_an_option(
    demo_store: Path, tmp_path: Path, address: str
) -> None:
    prepare(tmp_path, demo_store)
    with serving(tmp_path, "--json", "--monitor", address) as server:
        host = address.rpartition(":")[0]
        with urlopen(f"http://{host}:{server.ready['monitoring_port']}/health") as answer:
            assert json.loads(answer.read())["healthy"]


@pytest.mark.parametrize("option", ["--monitor", "--discovery"])
def test_an_endpoint_that_is_none_is_refused(option: str) -> None:
    done = run("serve", option, "127.0.0.1:x")
    assert done.exit_code == 2
    assert option in done.stderr
    assert "is not an address" in done.stderr
