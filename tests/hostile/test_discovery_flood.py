"""Discovery as a weapon: requests whose senders are forged, so that answers hit somebody else."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.server.directory_server import DirectoryServer
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from mqis.wire.propvariant import PropVariant
from tests.server.enterprises import client_of, id_of
from tests.waiting import DEADLINE_S, in_time, until

ADDRESS = "127.0.82.7"
REQUEST = TopologyClientRequest(Guid.NULL, Guid(b"number of asking"), Guid.NULL).to_bytes()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with closing(open_store(f"sqlite:{tmp_path / 'd.db'}", create=True)) as made:
        demo.build(made)
    return tmp_path


def configuration(directory: Path, **discovery: object) -> Config:
    return override(
        Config(),
        {
            "server": {"name": "ams-dir1"},
            "store": {"url": f"sqlite:{directory / 'd.db'}"},
            "rpc": {"mapper_port": 0},
            "security": {
                "accounts": str(directory / "accounts.toml"),
                "administrators": ["S-1-1-0"],
            },
            "discovery": {"enabled": True, "listen": ADDRESS, "port": 0, **discovery},
        },
        "test",
    )


async def ask(port: int, source: str, within_s: float) -> bytes | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
        victim.setblocking(False)
        victim.bind((source, 0))
        victim.sendto(REQUEST, (ADDRESS, port))
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.get_running_loop().sock_recv(victim, 65_535)
        except TimeoutError:
            return None


def record_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The senders of the requests that the server has handled, answered or not."""
    handled, answer = list[str](), DiscoveryServer.answer

    def answering(self: DiscoveryServer, data: bytes, source: str, *more: Any, **named: Any) -> Any:
        handled.append(source)
        return answer(self, data, source, *more, **named)

    monkeypatch.setattr(DiscoveryServer, "answer", answering)
    return handled


@pytest.mark.req("SEC-7-07")
def test_forged_senders_without_number_get_a_bounded_number_of_answers(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each address asks once, so a limit per address alone never applies."""
    handled = record_requests(monkeypatch)

    async def attack() -> None:
        async with DirectoryServer(configuration(store, total_rate=2), grace_s=1) as server:
            port = server.ready.discovery_port
            assert port is not None
            asking = [
                asyncio.create_task(ask(port, f"127.0.83.{n}", DEADLINE_S)) for n in range(1, 61)
            ]
            await until(lambda: len(handled) == len(asking))
            answered, others = await asyncio.wait(asking, timeout=0.5)
            for task in others:
                task.cancel()
            assert 4 <= len([task for task in answered if task.result()]) <= 8

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-07")
def test_one_address_gets_a_bounded_number_of_answers(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the whole process would allow all of them."""
    handled = record_requests(monkeypatch)

    async def attack() -> None:
        limits = {"rate": 1, "burst": 3, "total_rate": 1000}
        async with DirectoryServer(configuration(store, **limits), grace_s=1) as server:
            port = server.ready.discovery_port
            assert port is not None
            began = time.monotonic()
            asking = [asyncio.create_task(ask(port, "127.0.83.1", DEADLINE_S)) for _ in range(60)]
            await until(lambda: len(handled) == len(asking))
            earned = time.monotonic() - began + 1
            answered, others = await asyncio.wait(asking, timeout=0.5)
            for task in others:
                task.cancel()
            assert 3 <= len([task for task in answered if task.result()]) <= 3 + earned

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-07")
def test_an_answer_is_not_a_thousand_times_its_request(store: Path) -> None:
    """A site may have hundreds of servers; whoever adds some makes every answer longer."""

    async def attack() -> None:
        async with (
            DirectoryServer(configuration(store), grace_s=1) as server,
            client_of(server) as client,
        ):
            site = await id_of(client, ObjectType.SITE, "Amsterdam")
            for number in range(80):
                properties: dict[int, PropVariant] = props(
                    {
                        PropId.QM_SITE_ID: site,
                        PropId.QM_SERVICE: 2,
                    }
                )
                name = f"backup-{number:03}-{'x' * 40}"
                await client.create(ObjectType.MACHINE, name, properties)
        async with DirectoryServer(configuration(store), grace_s=1) as server:
            assert server.ready.discovery_port is not None
            answer = await ask(server.ready.discovery_port, "127.0.83.1", DEADLINE_S)
        assert answer is not None
        assert len(answer) <= 1400
        assert "ams-dir1" in [spec.name for spec in TopologyServerReply.from_bytes(answer).servers]

    asyncio.run(in_time(attack()))
