"""A directory server that clients can discover: what it answers, and what it needs for that."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.discovery import discover_servers
from mqis.config.errors import ConfigError
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.server import discovery_responder
from mqis.server.directory_server import DirectoryServer
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from tests.waiting import in_time


@pytest.fixture
def config(tmp_path: Path) -> Config:
    url = f"sqlite:{tmp_path / 'd.db'}"
    with closing(open_store(url, create=True)) as store:
        demo.build(store)
    return override(
        Config(),
        {
            "server": {"name": "ams-dir1"},
            "store": {"url": url},
            "rpc": {"mapper_port": 0},
            "security": {"accounts": str(tmp_path / "accounts.toml")},
            "discovery": {"enabled": True, "listen": "127.0.82.1", "port": 0},
        },
        "test",
    )


def changed(config: Config, section: str, **values: object) -> Config:
    return override(config, {section: values}, "test")


def serving(config: Config, work: Callable[[DirectoryServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with DirectoryServer(config, grace_s=1) as server:
            await work(server)

    asyncio.run(in_time(run()))


async def ask(server: DirectoryServer, request: TopologyClientRequest) -> TopologyServerReply:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        address = server.config.discovery.listen, server.ready.discovery_port
        await loop.sock_sendto(asking, request.to_bytes(), address)
        return TopologyServerReply.from_bytes(await loop.sock_recv(asking, 65_535))


def request_of(store: str, site: str | None = None) -> tuple[TopologyClientRequest, Any]:
    """A client's request, and the identifiers of what has a name."""
    with closing(open_store(store)) as opened, opened.read() as view:
        found = {
            obj.path: obj.id
            for kind in (ObjectType.SITE, ObjectType.CN, ObjectType.ENTERPRISE)
            for obj in view.objects(kind)
        }
    own = Guid.NULL if site is None else found[site]
    return TopologyClientRequest(found["Meridian"], Guid(b"number of asking"), own), found


@pytest.mark.req("MQSD-1.6-01", "MQSD-3.2.3-01", "MQSD-3.2.5.1-05", "MQSD-3.2.5.1-06")
def test_it_answers_from_its_directory(config: Config) -> None:
    async def work(server: DirectoryServer) -> None:
        for site in (None, "Berlin"):
            request, ids = request_of(config.store.url, site)
            reply = await ask(server, request)
            assert reply.correlation_id == request.request_id
            assert reply.responding_site_id == ids["Amsterdam"]
            assert [spec.name for spec in reply.servers] == ["ams-dir1", "ams-dir2"]
            assert reply.connected_networks == (ids["Corporate IP"],)
        request, _ = request_of(config.store.url, "Amsterdam")
        assert (await ask(server, request)).own_site

    serving(config, work)


def test_it_follows_its_directory(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery_responder, "REFRESH_S", 0.05)

    async def work(server: DirectoryServer) -> None:
        request, _ = request_of(config.store.url)
        directory = server._directory
        assert directory is not None
        service = 2

        def promote(events: DirectoryEvents) -> None:
            machine = events.transaction.find(ObjectType.MACHINE, "ams-app1")
            assert machine is not None
            events.update_directory_object(machine, props({PropId.QM_SERVICE: service}))

        await directory.change(promote)
        while len((await ask(server, request)).servers) != 3:
            await asyncio.sleep(0.2)

    serving(config, work)


def test_nothing_listens_unless_it_is_asked_for(config: Config) -> None:
    async def work(server: DirectoryServer) -> None:
        assert server.ready.discovery_port is None

    serving(changed(config, "discovery", enabled=False), work)
    assert not Config().discovery.enabled
    assert Config().discovery.listen == "127.0.0.1"
    assert Config().discovery.port == 1801


def test_networks_of_the_configuration(config: Config) -> None:
    guid = "0a0b0c0d-0001-0002-0003-040506070809"

    async def work(server: DirectoryServer) -> None:
        request, ids = request_of(config.store.url)
        reply = await ask(server, request)
        assert reply.connected_networks == (ids["Branch IP"], Guid.parse(guid))

    serving(changed(config, "discovery", networks=["branch ip", guid]), work)
    wrong = changed(config, "discovery", networks=["nowhere"])
    with pytest.raises(ConfigError, match=r"no connected network 'nowhere'; it has: Branch IP, C"):
        serving(wrong, work)


@pytest.mark.req("MQSD-2.2.3-03")
def test_a_server_on_no_network_says_that_it_is_silent(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(server: DirectoryServer) -> None:
        request, _ = request_of(config.store.url)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, request), 0.2)

    stranger = changed(config, "server", name="stranger", site="Berlin")
    with caplog.at_level(logging.WARNING):
        serving(stranger, work)
    assert "discovery is silent: the directory does not say which connected" in caplog.text
    assert "discovery.networks" in caplog.text


def test_limits_and_the_enterprise_of_the_configuration(config: Config) -> None:
    async def work(server: DirectoryServer) -> None:
        request, _ = request_of(config.store.url)
        await ask(server, request)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, request), 0.2)  # the burst is used up

    async def strict(server: DirectoryServer) -> None:
        request, _ = request_of(config.store.url)
        stranger = TopologyClientRequest(Guid.NULL, request.request_id, request.site_id)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, stranger), 0.2)
        await ask(server, request)

    serving(changed(config, "discovery", rate=1, burst=1), work)
    serving(changed(config, "discovery", own_enterprise_only=True), strict)


def test_a_port_that_is_taken(config: Config) -> None:
    async def work(_server: DirectoryServer) -> None:
        raise AssertionError("it should not start")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.82.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"at UDP 127\.0\.82\.1:{port}: .* in use; choose"):
            serving(changed(config, "discovery", port=port), work)


def test_a_client_finds_its_server_and_talks_to_it(config: Config) -> None:
    async def work(server: DirectoryServer) -> None:
        port, mapper = server.ready.discovery_port, server.ready.mapper_port
        assert port is not None
        assert mapper is not None
        _, ids = request_of(config.store.url)
        found = await discover_servers(
            networks=["127.0.0.1"], port=port, site=ids["Amsterdam"], mapper_port=mapper
        )
        assert [server.host for server in found] == ["127.0.82.1"]
        async with await DirectoryClient.connect(found) as directory:
            sites = await directory.known_servers()
        assert [site.site_name for site in sites] == ["Amsterdam", "Berlin", "Chicago"]

    same = changed(config, "rpc", listen="127.0.82.1")
    serving(same, work)
