"""A server whose store is an Active Directory, from its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.errors import ConfigError
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.protocol.discovery.announced import queue_manager_of
from mqis.protocol.errors import DirectoryError
from mqis.server.directory_server import DirectoryServer
from mqis.server.pass_through import open_directory
from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.hresult import HResult
from mqis.wire.ldap.requests import SimpleBind
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.acl import Acl
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.ldap.certificates import server_context
from tests.waiting import in_time


def configured(server: ScriptedDomain, tmp_path: Path, **store: Any) -> Config:
    values = {
        "server": {"name": "SRV1"},
        "store": {"url": server.url, **store},
        "rpc": {"mapper": False},
        "discovery": {"enabled": True, "port": 0, "listen": "127.0.0.1"},
        "security": {"accounts": str(tmp_path / "accounts.toml")},
        "monitoring": {"port": 0},
    }
    return override(Config(), values, "test")


def serve(tmp_path: Path, test: Callable[[Estate, Config], Awaitable[None]]) -> None:
    async def run() -> None:
        async with ScriptedDomain.of() as server:
            await test(Estate(server), configured(server, tmp_path))

    asyncio.run(in_time(run()))


@pytest.mark.req("MQSD-2.3-01")
def test_a_server_finds_its_place_and_announces_what_the_directory_has(tmp_path: Path) -> None:
    async def test(estate: Estate, config: Config) -> None:
        async with DirectoryServer(config) as running:
            ready = running.ready
            assert (ready.enterprise, ready.site, ready.role) == (
                estate.server.root,
                "Berlin",
                "none",
            )
            assert ready.discovery_port
            store = open_directory(config)

            def announced() -> Any:
                with store.read() as view:
                    return queue_manager_of(view, "SRV1", estate.berlin)

            found = await asyncio.to_thread(announced)
            assert found.site_ids == (estate.berlin,)
            assert found.connected_networks == (estate.berlin,)  # connected networks are sites
            await asyncio.to_thread(store.close)

    serve(tmp_path, test)


@pytest.mark.parametrize("role", ["pec", "psc", "bsc"])
def test_a_role_of_our_replication_is_refused(tmp_path: Path, role: str) -> None:
    async def test(estate: Estate, config: Config) -> None:
        config = override(config, {"server": {"role": role}}, "test")
        with pytest.raises(ConfigError, match=f"server.role: {role} is a role .* set .* to none"):
            await DirectoryServer(config).start()

    serve(tmp_path, test)


@pytest.mark.req("MQDSSM-1.5-01")
def test_an_account_without_a_password_is_named(tmp_path: Path) -> None:
    async def test(estate: Estate, config: Config) -> None:
        config = override(config, {"store": {"user": "mqis@corp.example"}}, "test")
        with pytest.raises(ConfigError, match=r"store.user: no password for mqis@.*password_file"):
            open_directory(config, {})

    serve(tmp_path, test)


@pytest.mark.req("MQDSSM-1.5-01")
def test_the_configuration_says_how_to_reach_the_directory(tmp_path: Path) -> None:
    """Address, port, TLS, the name in the certificate, and who logs on."""

    async def test() -> None:
        server = ScriptedDomain.of()
        server.tls, server.ldaps = server_context(tmp_path, host=""), True
        server.users = {"mqis@corp.example": b"secret"}
        (tmp_path / "password").write_text("secret\n")
        (tmp_path / "password").chmod(0o600)
        async with server:
            Estate(server)
            section = {
                "user": "mqis@corp.example",
                "password_file": str(tmp_path / "password"),
                "ca_file": str(tmp_path / "ca.pem"),
                "server_name": "dc1.corp.example",
                "simple": True,
            }
            async with DirectoryServer(configured(server, tmp_path, **section)) as running:
                assert running.ready.enterprise == server.root
        assert set(server.operations(SimpleBind)) == {SimpleBind("mqis@corp.example", b"secret")}

    asyncio.run(in_time(test()))


@pytest.mark.req("MQDSSM-1.6-01")
def test_a_store_of_our_own_takes_no_directory(tmp_path: Path) -> None:
    async def test(estate: Estate, config: Config) -> None:
        for url in ("memory:", f"sqlite:{tmp_path}/mqis.db"):
            own = override(config, {"store": {"url": url}}, "test")
            with pytest.raises(ConfigError, match=r"no enterprise|no store"):
                await DirectoryServer(own).__aenter__()
        assert estate.server.connections == 0

    serve(tmp_path, test)


def test_a_directory_that_does_not_answer_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    async def test(estate: Estate, config: Config) -> None:
        config = override(config, {"store": {"url": "ldap://127.0.0.1:1"}}, "test")
        with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
            await DirectoryServer(config).start()

    serve(tmp_path, test)


@pytest.mark.req("MQDSSM-2.4-01")
def test_what_the_schema_lacks_is_named_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(estate: Estate, config: Config) -> None:
        server = estate.server
        async with DirectoryServer(config):
            assert "schema" not in caplog.text
        lost = "mSMQSettings", "mSMQQueueQuota", "mSMQDsService", "servicePrincipalName"
        server.schema = tuple(name.upper() for name in server.schema if name not in lost)
        async with DirectoryServer(config):
            pass
        named = "mSMQDsService, mSMQQueueQuota, mSMQSettings, servicePrincipalName"
        assert f"the schema does not show {named}; extend it" in caplog.text

    serve(tmp_path, test)


@pytest.mark.req("MQDSSM-5.1-02")
def test_callers_read_through_it_by_their_own_rights(tmp_path: Path) -> None:
    async def test(estate: Estate, config: Config) -> None:
        nobody = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl(()))
        estate.add_queue("secret", nTSecurityDescriptor=nobody.to_bytes())
        async with DirectoryServer(config) as running:
            address = ServerAddress("127.0.0.1", running.ready.port)
            async with await DirectoryClient.connect([address]) as client:
                found = await client.get(ObjectType.QUEUE, [PropId.Q_QUOTA], "srv1\\orders")
                assert found[PropId.Q_QUOTA].value == 7
                with pytest.raises(DirectoryError) as refused:
                    await client.get(ObjectType.QUEUE, [PropId.Q_QUOTA], "srv1\\secret")
                # Who may not read an object does not learn that it is there.
                assert refused.value.hresult == HResult.MQDS_OBJECT_NOT_FOUND

    serve(tmp_path, test)
