"""An enterprise that grows: a PEC, then servers that join it, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.file import load
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import open_store
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.server.accounts import AccountsFile
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ADMINISTRATORS
from tests.cli.commands import process, run
from tests.cli.running import ALICE, BOB, PASSWORDS, Running, serving
from tests.waiting import until


def edit(directory: Path, *changes: tuple[str, str]) -> None:
    """Set keys of the configuration that is there; ``[hosts]`` takes a line more."""
    path = directory / "mqis.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


def settle(directory: Path, port: int, hosts: dict[str, int]) -> None:
    """Ports that are free, an account, and where the others are."""
    lines = "".join(f'{name} = "127.0.0.1:{at}"\n' for name, at in hosts.items())
    edit(
        directory,
        ("mapper_port = 135", "mapper_port = 0"),
        ("[hosts]\n", "[hosts]\n" + lines),
        ('domain = ""', 'domain = "LAB"'),
    )
    text = (directory / "mqis.toml").read_text(encoding="utf-8")
    head, replication, tail = text.partition("[replication]")
    tail = tail.replace("port = 1801", f"port = {port}", 1)
    tail = tail.replace("recovery_wait_s = 120", "recovery_wait_s = 5", 1)
    tail = tail.replace("connect_retry_s = 5", "connect_retry_s = 1", 1)
    (directory / "mqis.toml").write_text(head + replication + tail, encoding="utf-8")
    accounts = AccountsFile(directory / "accounts.toml")
    password = PASSWORDS[ALICE].decode().strip()
    accounts.add("alice", password, domain="LAB", groups=[ADMINISTRATORS])


def joining(
    directory: Path, pec: Running, name: str, role: str, site: str, *more: str
) -> subprocess.CompletedProcess[bytes]:
    directory.mkdir(exist_ok=True)
    return process(
        *("join", "--pec", "pec1", "--server", pec.address, "--user", ALICE, "--role", role),
        *("--site", site, "--name", name, *more),
        directory=directory,
        stdin=PASSWORDS[ALICE],
    )


async def connect(server: Running) -> DirectoryClient:
    secret = Secret("alice", "LAB", PASSWORDS[ALICE].decode().strip())
    credentials = Credentials(
        PyspnegoInitiator(secret), AuthType.SPNEGO, AuthLevel.PRIVACY, "127.0.0.1"
    )
    address = ServerAddress("127.0.0.1", server.ready["port"])
    return await DirectoryClient.connect([address], credentials=credentials)


async def label_at(server: Running, path: str) -> object:
    """None where there is no such queue."""
    async with await connect(server) as client:
        try:
            found = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=path)
        except DirectoryError as error:
            if error.hresult == HResult.MQDS_OBJECT_NOT_FOUND:
                return None
            raise
        return found[PropId.Q_LABEL].value


async def everywhere(servers: list[Running], path: str, label: str) -> None:
    for server in servers:
        found = await until(partial(label_at, server, path), f"{path} at {server.directory.name}")
        assert found == label


async def create(server: Running, path: str, label: str) -> Guid | None:
    async with await connect(server) as client:
        text = label
        return await client.create(ObjectType.QUEUE, path, props({PropId.Q_LABEL: text}))


def begin(home: Path, port: int, hosts: dict[str, int]) -> None:
    """A new enterprise, and its PEC ready to serve."""
    home.mkdir()
    begun = process(
        *("init", "--enterprise", "Acme", "--site", "Delft", "--name", "pec1"), directory=home
    )
    assert begun.returncode == 0, begun.stderr
    settle(home, port, hosts)


@pytest.mark.req("SEC-3-01")
def test_an_enterprise_that_grows(tmp_path: Path) -> None:
    """All messages signed, which is the default."""
    ports = dict(zip(("pec1", "psc2", "bsc3"), free_ports(3), strict=True))
    with ExitStack() as stack:
        home = tmp_path / "pec1"
        begin(home, ports["pec1"], {k: v for k, v in ports.items() if k != "pec1"})
        pec = stack.enter_context(serving(home, "--json"))
        assert pec.ready["partitions"] == ["enterprise", "Delft"]
        assert (pec.ready["role"], pec.ready["queue_port"]) == ("pec", ports["pec1"])

        # A site of its own.
        second = tmp_path / "psc2"
        host = f"pec1=127.0.0.1:{ports['pec1']}"
        done = joining(second, pec, "psc2", "psc", "Leiden", "--host", host)
        assert done.returncode == 0, done.stderr
        assert b"psc2 is a psc of Acme in site Leiden" in done.stdout
        assert stat.S_IMODE((second / "signing.key").stat().st_mode) == 0o600
        settle(second, ports["psc2"], {"bsc3": ports["bsc3"]})
        psc = stack.enter_context(serving(second, "--json"))
        assert psc.ready["enterprise"] == "Acme"
        assert psc.ready["partitions"] == ["Leiden"]

        # Doing it again changes nothing.
        before = load(second / "mqis.toml")
        again = joining(second, pec, "psc2", "psc", "Leiden", "--host", host, "--json")
        assert again.returncode == 0, again.stderr
        assert json.loads(again.stdout)["name"] == "psc2"
        assert load(second / "mqis.toml") == before

        # A backup in that site: its objects are the PSC's to make.
        third = tmp_path / "bsc3"
        hosts = ("--host", host, "--host", f"psc2=127.0.0.1:{ports['psc2']}")
        done = joining(third, pec, "bsc3", "bsc", "Leiden", *hosts)
        assert done.returncode == 0, done.stderr
        for joined in (home, second, third):
            assert 'signing = "require"' in (joined / "mqis.toml").read_text()
        settle(third, ports["bsc3"], {})
        bsc = stack.enter_context(serving(third, "--json"))
        assert bsc.ready["partitions"] == []
        config = load(third / "mqis.toml")
        assert (config.server.role, config.replication.psc) == (ConfiguredRole.BSC, "psc2")

        asyncio.run(_use([pec, psc, bsc]))
        # A new key, which nobody believes before the PEC tells of it.
        assert psc.stop() == 0
        (second / "signing.key").unlink()
        renewed = joining(second, pec, "psc2", "psc", "Leiden", "--host", host)
        assert renewed.returncode == 0, renewed.stderr
        psc = stack.enter_context(serving(second, "--json"))
        asyncio.run(create(psc, "psc2\\renewed", "signed with the new key"))
        asyncio.run(everywhere([pec], "psc2\\renewed", "signed with the new key"))
        assert bsc.stop() == 0
        again = joining(third, pec, "bsc3", "bsc", "Leiden", *hosts)
        assert again.returncode == 0, again.stderr
        bsc = stack.enter_context(serving(third, "--json"))
        asyncio.run(everywhere([bsc], "psc2\\renewed", "signed with the new key"))
        for server in (pec, psc, bsc):
            assert server.stop() == 0, server.log
            assert "error" not in server.log, server.log
    with closing(open_store(str(third / "mqis.db"))) as store:
        assert store.check() == []


async def _use(servers: list[Running]) -> None:
    """A change through the backup, wherever it is decided, is on all three."""
    bsc = servers[2]
    await create(bsc, "bsc3\\orders", "decided by the PSC")
    await everywhere(servers, "bsc3\\orders", "decided by the PSC")
    await create(bsc, "pec1\\orders", "decided by the PEC")
    await everywhere(servers, "pec1\\orders", "decided by the PEC")
    with pytest.raises(DirectoryError) as refused:
        await create(servers[0], "bsc3\\orders", "again")
    assert refused.value.hresult == HResult.MQ_ERROR_QUEUE_EXISTS
    async with await connect(servers[1]) as client:
        await client.delete(ObjectType.QUEUE, path="bsc3\\orders")
    for server in servers:
        await until(partial(_is_gone, server, "bsc3\\orders"), "a deletion everywhere")


async def _is_gone(server: Running, path: str) -> bool:
    return await label_at(server, path) is None


def test_who_cannot_join(tmp_path: Path) -> None:
    [port] = free_ports(1)
    home = tmp_path / "pec1"
    begin(home, port, {})
    bob = PASSWORDS[BOB].decode().strip()
    AccountsFile(home / "accounts.toml").add("bob", bob, domain="LAB")
    cases = [
        (("--site", "Delft"), "site Delft has the PSC pec1; name another site, or join it as a"),
        (("--site", "Gouda", "--role", "bsc"), "--site Gouda: there is no such site; a backup"),
        (("--site", "Gouda", "--pec", "pec9"), "--pec pec9: the PEC of this enterprise is pec1"),
        (("--site", "Gouda", "--name", "a b"), "server.name: 'a b' is not a machine name"),
        (("--site", "Delft", "--role", "bsc", "--name", "pec1"), "but not as a bsc: delete it"),
        (("--site", "Delft", "--role", "bsc", "--name", "old1"), "has not told the directory yet"),
        (("--site", "Gouda", "--host", "x"), "--host x: write NAME=ADDRESS[:PORT]"),
        (("--site", "Gouda", "--host", "x=1:y"), "hosts: x: '1:y' is not an address"),
    ]
    with serving(home, "--json") as pec:
        asyncio.run(_create_replaced(pec))
        options = ("--server", pec.address, "--pec", "pec1", "--name", "psc2")
        for number, (more, message) in enumerate(cases):
            home = tmp_path / f"case{number}"
            home.mkdir()
            config = ("--config", home / "mqis.toml")
            told = run("join", *options, "--user", ALICE, *config, *more, stdin=PASSWORDS[ALICE])
            assert told.exit_code != 0
            assert message in f"{told.exception} {told.output}", told.output
            assert not (home / "mqis.toml").exists()
        away = ("--config", tmp_path / "mqis.toml", "--site", "Gouda")
        refused = run("join", *options, "--user", BOB, *away, stdin=PASSWORDS[BOB])
        assert "MQ_ERROR_ACCESS_DENIED" in str(refused.exception)
        assert asyncio.run(_sites(pec)) == ["Delft"]


async def _create_replaced(server: Running) -> None:
    """A machine that still has the role of PSC, in a site whose PSC is another one."""
    async with await connect(server) as client:
        site = await client.get(ObjectType.SITE, [PropId.S_SITEID], path="Delft")
        values: dict[int, PropVariant] = props(
            {
                PropId.QM_SITE_ID: site[PropId.S_SITEID].value,
                PropId.QM_SERVICE: int(ServiceBits.PSC),
            }
        )
        await client.create(ObjectType.MACHINE, "old1", values)


async def _sites(server: Running) -> list[str | None]:
    async with await connect(server) as client:
        return [entry.path async for entry in client.sites()]


def test_a_new_server_waits_for_its_directory_and_can_be_stopped(tmp_path: Path) -> None:
    ports = free_ports(2)
    begin(tmp_path / "pec1", ports[0], {})
    away = tmp_path / "psc2"
    with serving(tmp_path / "pec1", "--json") as pec:
        host = f"pec1=127.0.0.1:{ports[0]}"
        done = joining(away, pec, "psc2", "psc", "Leiden", "--host", host)
        assert done.returncode == 0, done.stderr
    settle(away, ports[1], {})  # the PEC is gone meanwhile
    with (away / "log").open("wb") as log:
        waiting = subprocess.Popen(
            [sys.executable, "-m", "mqis.cli.main", "serve"],
            cwd=away,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        server = Running(waiting, away, b"")
        server.wait_for("waiting for the directory")
        assert server.stop() == 0
        assert waiting.stdout is not None
        assert waiting.stdout.read() == b"", "it said that it is ready"
        assert "stopped" in server.log
    finally:
        waiting.kill()
        waiting.wait()
        assert waiting.stdout is not None
        waiting.stdout.close()
