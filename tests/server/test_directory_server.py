"""One directory server inside this process: what it wants, where it listens, what it rereads."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.errors import ConfigError
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_port
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.tower import Tower
from mqis.wire.security.sid import ADMINISTRATORS

LABEL: dict[int, PropVariant] = props({PropId.Q_LABEL: "x"})


@pytest.fixture(scope="module")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("enterprise") / "demo.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    return path


@pytest.fixture
def config(enterprise: Path, tmp_path: Path) -> Config:
    copyfile(enterprise, tmp_path / "d.db")
    return with_values(
        Config(),
        server={"name": "ams-dir1"},
        store={"url": f"sqlite:{tmp_path / 'd.db'}"},
        rpc={"mapper_port": 0},
        security={"accounts": str(tmp_path / "accounts.toml")},
    )


def with_values(config: Config, **values: dict[str, object]) -> Config:
    return override(config, values, "test")


def serving(config: Config, work: Callable[[DirectoryServer], Awaitable[None]]) -> None:
    """Run ``work`` while the server does."""

    async def run() -> None:
        async with DirectoryServer(config, grace_s=1) as server:
            await work(server)

    asyncio.run(run())


async def nothing(_server: DirectoryServer) -> None:
    """The server just has to start."""


# --- what the store has to hold -------------------------------------------------------------------


def store_with(path: Path, *types: ObjectType) -> Path:
    names = {ObjectType.ENTERPRISE: PropId.E_NAME, ObjectType.SITE: PropId.S_PATHNAME}
    with closing(open_store(str(path), create=True)) as store, store.write() as tx:
        for kind in types:
            name = PropVariant(VarType.LPWSTR, "Delft")
            events = DirectoryEvents(tx, 0, SystemEntropy())
            events.create_directory_object(kind, {names[kind]: name})
    return path


@pytest.mark.req("MQDS-1.5-01")
@pytest.mark.parametrize(
    ("types", "server", "message"),
    [
        (
            [],
            {"site": "Delft"},
            "holds no enterprise, so there is no directory to serve; 'mqis imp",
        ),
        ([ObjectType.SITE], {"site": "Delft"}, "holds no enterprise, so there is no directory"),
        ([ObjectType.ENTERPRISE], {"site": "Delft"}, "holds no site, so there is no directory"),
        (
            [ObjectType.ENTERPRISE, ObjectType.SITE],
            {},
            r"server\.site: not set; name the site of this server here or with --site: Delft",
        ),
        (
            [ObjectType.ENTERPRISE, ObjectType.SITE],
            {"name": "nobody"},
            r"server\.site: not set, and the directory has no machine 'nobody'; name the site",
        ),
        (
            [ObjectType.ENTERPRISE, ObjectType.SITE],
            {"site": "Atlantis"},
            r"server\.site: the directory has no site 'Atlantis'; it has: Delft",
        ),
    ],
)
def test_a_directory_that_cannot_be_served(
    tmp_path: Path,
    config: Config,
    types: list[ObjectType],
    server: dict[str, object],
    message: str,
) -> None:
    path = store_with(tmp_path / "bare.db", *types)
    bare = with_values(
        config, store={"url": f"sqlite:{path}"}, server={"name": "", "site": ""} | server
    )
    with pytest.raises(ConfigError, match=message):
        serving(bare, nothing)


def test_one_that_can(tmp_path: Path, config: Config) -> None:
    path = store_with(tmp_path / "bare.db", ObjectType.ENTERPRISE, ObjectType.SITE)

    async def look(server: DirectoryServer) -> None:
        assert (server.ready.enterprise, server.ready.site) == ("Delft", "Delft")

    store: dict[str, object] = {"url": f"sqlite:{path}"}
    serving(with_values(config, store=store, server={"name": "", "site": "delft"}), look)


def test_the_configuration_has_to_fit_the_store(config: Config) -> None:
    with pytest.raises(ConfigError, match=r"enterprise\.name: it is 'Other', but the store holds"):
        serving(with_values(config, enterprise={"name": "Other"}), nothing)
    with pytest.raises(ConfigError, match=r"server\.site: it is 'Berlin', but ams-dir1 belongs to"):
        serving(with_values(config, server={"site": "Berlin"}), nothing)
    with pytest.raises(ConfigError, match=r"/nowhere/d\.db: there is no store; restore a backup"):
        serving(with_values(config, store={"url": "sqlite:/nowhere/d.db"}), nothing)


def test_a_machine_tells_its_site(config: Config) -> None:
    async def look(server: DirectoryServer) -> None:
        assert server.ready.site == "Berlin"

    serving(with_values(config, server={"name": "ber-dir1"}), look)


# --- where it listens -----------------------------------------------------------------------------


@pytest.mark.req("MQDS-1.9-01", "MQDS-2.1-03")
def test_the_mapper_knows_both_interfaces(config: Config) -> None:
    async def look(server: DirectoryServer) -> None:
        ready = server.ready
        assert ready.mapper_port is not None
        mapper = epmapper.EPMAPPER
        asked = epmapper.LookupAsked(0, None, None, 1, ContextHandle.NULL, 10)
        async with await RpcClient.connect("127.0.0.1", ready.mapper_port, [mapper.syntax]) as rpc:
            given = {"max_entries": 10}
            found = await invoke(rpc, mapper, epmapper.EPT_LOOKUP, asked, given=given)
        towers = [Tower.from_bytes(entry.tower.octets) for entry in found.entries if entry.tower]
        assert {tower.interface for tower in towers} == {dscomm.SYNTAX, dscomm2.SYNTAX}
        assert {tower.port for tower in towers} == {ready.port}
        assert all(entry.annotation.startswith("Message Queuing - ") for entry in found.entries)

    serving(config, look)


@pytest.mark.departs("MQDS-3.1.4.1-05")
@pytest.mark.req("MQDS-2.1-04", "MQDS-3.1.3-01", "MQDS-3.1.3-02", "MQDS-3.3.3-01")
def test_a_port_of_its_own(config: Config) -> None:
    """Set in the configuration, with no mapper to ask; S_DSGetServerPort tells it."""
    port = free_port()

    async def look(server: DirectoryServer) -> None:
        assert server.ready.mapper_port is None
        async with await DirectoryClient.connect([ServerAddress("127.0.0.1", port)]) as client:
            assert await client.server_port() == port
            assert len(await client.computer_sites("ams-app1")) == 1

    serving(with_values(config, rpc={"port": port, "mapper": False}), look)


@pytest.mark.req("MQDS-2.1-01", "MQDS-3.1.4.1-02")
def test_both_interfaces_answer_on_the_dynamic_port(config: Config) -> None:
    async def look(server: DirectoryServer) -> None:
        port, interfaces = server.ready.port, [dscomm.SYNTAX, dscomm2.SYNTAX]
        async with await RpcClient.connect("127.0.0.1", port, interfaces) as client:
            assert all(client.offers(interface) for interface in interfaces)
        async with await DirectoryClient.connect([ServerAddress("127.0.0.1", port)]) as client:
            assert await client.server_port() == port

    serving(config, look)


@pytest.mark.parametrize("key", ["port", "mapper_port"])
def test_a_port_that_is_taken(config: Config, key: str) -> None:
    option = "--" + key.replace("_", "-")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            serving(with_values(config, rpc={key: port}), nothing)
    text = str(caught.value)
    assert text.startswith(f"cannot listen at 127.0.0.1:{port}: Address already in use; ")
    assert f"choose another port with rpc.{key} or {option} (0: a free one)" in text
    assert ("rpc.mapper = false" in text) == (key == "mapper_port")


def test_a_port_that_is_privileged(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, so the kernel's answer is given here."""

    async def denied(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mqis.runtime.rpc.rpc_server.RpcServer.listen", denied)
    with pytest.raises(
        ConfigError, match=r"CAP_NET_BIND_SERVICE: give the server one of them, or choose"
    ):
        serving(with_values(config, rpc={"mapper_port": 135}), nothing)


def test_an_address_of_somebody_else(config: Config) -> None:
    with pytest.raises(
        ConfigError, match=r"does not have that address: choose another with rpc\.l"
    ):
        serving(with_values(config, rpc={"listen": "192.0.2.1"}), nothing)


def test_what_could_not_start_leaves_nothing_open(config: Config) -> None:
    """The first port is free again after the second was refused."""
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = with_values(config, rpc={"port": port, "mapper_port": taken.getsockname()[1]})
        with pytest.raises(ConfigError):
            serving(busy, nothing)
    serving(with_values(config, rpc={"port": port}), nothing)


def test_more_connections_than_allowed(config: Config) -> None:
    """A stranger who says nothing makes room."""

    async def look(server: DirectoryServer) -> None:
        silent, writer = await asyncio.open_connection("127.0.0.1", server.ready.port)
        address = ServerAddress("127.0.0.1", server.ready.port)
        async with await DirectoryClient.connect([address]) as client:
            assert await client.known_servers()
            assert await silent.read() == b""
        writer.close()

    serving(with_values(config, rpc={"max_connections": 1}), look)


# --- who may do what ------------------------------------------------------------------------------


def logged_on(
    ready_port: int, name: str, password: str
) -> Callable[[], Awaitable[DirectoryClient]]:
    async def connect() -> DirectoryClient:
        initiator = PyspnegoInitiator(Secret(name, "", password))
        credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.PRIVACY, "127.0.0.1")
        address = ServerAddress("127.0.0.1", ready_port)
        return await DirectoryClient.connect([address], credentials=credentials, gss=initiator)

    return connect


async def may_create(client: DirectoryClient, path: str) -> bool:
    try:
        await client.create(ObjectType.QUEUE, path, LABEL)
    except DirectoryError as error:
        if error.hresult != HResult.MQ_ERROR_ACCESS_DENIED:
            raise
        return False
    return True


def test_a_reread_counts_for_connections_that_are_open(config: Config) -> None:
    file = AccountsFile(Path(config.security.accounts))
    account = file.add("dora", "pw")

    async def look(server: DirectoryServer) -> None:
        async with await logged_on(server.ready.port, "dora", "pw")() as client:
            assert not await may_create(client, "ams-app1\\a")
            new = with_values(
                config, security={"administrators": [str(account.sid)]}, rpc={"port": 1}
            )
            result = server.reread(new)
            assert (result.applied, result.waiting) == (["security.administrators"], ["rpc.port"])
            assert await may_create(client, "ams-app1\\a")
            assert await client.server_port() == server.ready.port
            server.reread(config)
            assert not await may_create(client, "ams-app1\\b")

    serving(config, look)


def test_anonymous_callers_are_not_everyone_if_so_configured(config: Config) -> None:
    async def look(server: DirectoryServer) -> None:
        address = ServerAddress("127.0.0.1", server.ready.port)
        async with await DirectoryClient.connect([address]) as client:
            path = "ams-app1\\orders"
            await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=path)
            server.reread(with_values(config, security={"anonymous": False}))
            with pytest.raises(DirectoryError) as caught:
                await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=path)
            assert caught.value.hresult == HResult.MQDS_OBJECT_NOT_FOUND

    serving(config, look)


@pytest.mark.parametrize(
    ("security", "allowed"),
    [
        ({"machine_policy": "everyone"}, True),
        ({"machine_policy": "owner"}, False),
        pytest.param({}, False, marks=pytest.mark.departs("MQDS-3.1.4.4-21"), id="by default"),
    ],
)
def test_who_controls_a_new_machine(
    config: Config, security: dict[str, object], allowed: bool
) -> None:
    file = AccountsFile(Path(config.security.accounts))
    file.add("root", "pw", groups=[ADMINISTRATORS])
    file.add("emil", "pw")

    async def look(server: DirectoryServer) -> None:
        async with await logged_on(server.ready.port, "root", "pw")() as root:
            made = await root.create(ObjectType.MACHINE, "new1", props({PropId.QM_OS: 0x400}))
            assert isinstance(made, Guid)
            got = await root.get(ObjectType.MACHINE, [PropId.QM_SITE_ID], guid=made)
            sites = [e.id async for e in root.sites(pathname="Amsterdam")]
            assert [got[PropId.QM_SITE_ID].value] == sites  # the server's own
        async with await logged_on(server.ready.port, "emil", "pw")() as emil:
            assert await may_create(emil, "new1\\q") is allowed

    serving(with_values(config, security=security), look)


@pytest.mark.req("MQDS-3.3.4.8-03")
def test_the_global_catalogs_of_the_configuration(config: Config) -> None:
    async def look(server: DirectoryServer) -> None:
        address = ServerAddress("127.0.0.1", server.ready.port)
        async with await DirectoryClient.connect([address]) as client:
            found = await client.global_catalogs("Corp.Test")
            assert [str(spec) for spec in found] == ["10gc1.corp.test", "10gc2"]
            with pytest.raises(DirectoryError, match="NO_GC_IN_DOMAIN"):
                await client.global_catalogs("other.test")

    catalogs = ["corp.test gc1.corp.test gc2"]
    serving(with_values(config, server={"global_catalogs": catalogs}), look)


def test_accounts_that_others_may_read_are_refused(config: Config) -> None:
    path = Path(config.security.accounts)
    AccountsFile(path).add("dora", "pw")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="run: chmod 600"):
        serving(config, nothing)


def test_accounts_that_break_later_let_nobody_in(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(config.security.accounts)
    AccountsFile(path).add("dora", "pw")

    async def look(server: DirectoryServer) -> None:
        connect = logged_on(server.ready.port, "dora", "pw")
        await (await connect()).close()
        kept = path.read_bytes()
        path.write_text("[[account", encoding="utf-8")
        with pytest.raises(Exception, match="access_denied"):
            await connect()
        with pytest.raises(ConfigError, match="not valid TOML"):
            server.reread(config)
        path.write_bytes(kept)
        await (await connect()).close()

    with caplog.at_level(logging.WARNING):
        serving(config, look)
    assert "nobody can log on: " in caplog.text
    assert "refused: dora cannot log on: " in caplog.text


def test_no_accounts_is_a_warning(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        serving(config, nothing)
    assert "no accounts yet, all callers are anonymous; 'mqis account add' makes" in caplog.text


def test_with_a_keytab_no_accounts_are_no_fault(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that was there and is lost is one still."""
    path = Path(config.security.accounts)

    async def look(server: DirectoryServer) -> None:
        connect = logged_on(server.ready.port, "dora", "pw")
        with pytest.raises(Exception, match="access_denied"):
            await connect()
        assert "no accounts: callers log on by Kerberos alone" in caplog.text
        assert "refused: dora cannot log on: " in caplog.text
        assert "nobody can log on" not in caplog.text
        assert "anonymous" not in caplog.text
        AccountsFile(path).add("dora", "pw")
        # She has logged on; only the server cannot prove itself, for its keytab is none.
        with pytest.raises(DirectoryError, match="the server did not authenticate itself"):
            await connect()
        path.unlink()
        with pytest.raises(Exception, match="access_denied"):
            await connect()
        assert "nobody can log on: " in caplog.text

    with caplog.at_level(logging.INFO):
        serving(with_values(config, security={"keytab": str(path.with_name("k"))}), look)
