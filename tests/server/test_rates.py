"""Connection rate of one address at the directory: each password guess needs a connection."""

from __future__ import annotations

import asyncio

import pytest

from mqis.config.file import override
from mqis.config.sections import Config
from mqis.protocol.budget import Quota
from mqis.protocol.discovery.limiter import RateLimit
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.peers import is_loopback
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.server.directory_server import DirectoryServer
from tests.waiting import until

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def admitted(streams: list[Streams]) -> int:
    """The number of connections that the server does not close."""
    kept = 0
    for reader, writer in streams:
        try:
            await asyncio.wait_for(reader.read(1), 0.3)
        except TimeoutError:
            kept += 1
        except ConnectionError:
            pass
        writer.close()
    return kept


@pytest.mark.parametrize(("loopback_is_free", "expected"), [(False, 3), (True, 5)])
def test_so_many_connections_of_one_address_at_once(loopback_is_free: bool, expected: int) -> None:
    async def run() -> None:
        exempt = is_loopback if loopback_is_free else lambda _peer: False
        server = RpcServer(
            [ManagementService(lambda: server.endpoint)],
            SystemEntropy(),
            rate=RateLimit(0.1, 3),
            exempt=exempt,
        )
        async with server:
            port = await server.listen("127.0.0.1", 0)
            streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            await until(lambda: server.endpoint.statistics.refused == 5 - expected)
            assert await admitted(streams) == expected
            assert server.endpoint.statistics.refused == 5 - expected

    asyncio.run(run())


def test_the_configuration_sets_the_bounds() -> None:
    values: dict[str, dict[str, object]] = {
        "rpc": {"connection_rate": 7, "connection_burst": 9, "max_connections_per_address": 11}
    }
    bounds = DirectoryServer(override(Config(), values, "test"))._bounds()
    assert (bounds["rate"].per_second, bounds["rate"].burst) == (7, 9)
    assert bounds["max_connections_per_peer"] == 11
    assert bounds["budgets"].memory.quota == Quota(96 << 20, 128 << 20, 128 << 20, 256 << 20)
    assert bounds["budgets"].handles.quota == Quota(256, 1024, 4096, 8192)
    assert bounds["budgets"].lookups.quota == Quota(64, 256, 512, 1024)
    assert bounds["exempt"]("127.0.0.1")
    assert bounds["exempt"]("::1")
    assert not bounds["exempt"]("192.0.2.1")


def test_the_configuration_sets_the_budgets() -> None:
    values: dict[str, dict[str, object]] = {
        "rpc": {"memory_mb": 8, "max_handles": 64, "max_lookups": 32}
    }
    budgets = DirectoryServer(override(Config(), values, "test"))._bounds()["budgets"]
    assert budgets.memory.quota == Quota(3 << 20, 4 << 20, 4 << 20, 8 << 20)
    assert budgets.handles.quota == Quota(2, 8, 32, 64)
    assert budgets.lookups.quota == Quota(2, 8, 16, 32)
