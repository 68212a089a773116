"""Peers with IPv6 addresses: whoever has one has the 2^64 of its network."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import cast

import pytest

from mqis.config.file import override
from mqis.config.sections import Config
from mqis.protocol.discovery.limiter import RateLimit
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.http import HttpAnswer, HttpServer
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.server_connection import ServerProtocol
from mqis.server.directory_server import DirectoryServer
from tests.hostile.test_queue_port import ended, pec
from tests.waiting import DEADLINE_S, in_time


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this computer has no ::1")


class _From:
    """A connection of somebody."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.closed = False

    def abort(self) -> None:
        self.closed = True


def admitted(server: RpcServer, *peers: str) -> list[bool]:
    """Which of them are open in the end; one more may close one that waits."""
    made = [_From(peer) for peer in peers]
    let_in = [server.admit(cast(ServerProtocol, connection)) for connection in made]
    return [entered and not one.closed for entered, one in zip(let_in, made, strict=True)]


@pytest.mark.req("SEC-10-02")
def test_addresses_of_one_network_count_as_one() -> None:
    server = RpcServer([], SystemEntropy(), max_connections_per_peer=2)
    assert admitted(server, *(f"2001:db8::{n}" for n in range(1, 6))) == [False] * 3 + [True] * 2
    assert admitted(server, "2001:db8:0:1::1") == [True]


@pytest.mark.req("SEC-10-02")
def test_a_mapped_address_is_no_second_one() -> None:
    server = RpcServer([], SystemEntropy(), max_connections_per_peer=1)
    assert admitted(server, "192.0.2.1", "::ffff:192.0.2.1") == [False, True]


@pytest.mark.req("SEC-10-02")
def test_a_new_address_for_every_attempt_is_no_way_around_the_rate() -> None:
    server = RpcServer([], SystemEntropy(), rate=RateLimit(0.001, 3))
    assert admitted(server, *(f"2001:db8::{n}" for n in range(1, 9))) == [True] * 3 + [False] * 5


@pytest.mark.req("SEC-10-02")
def test_only_this_computer_is_not_counted() -> None:
    """As the directory's server has it: ``rpc.max_connections_per_address`` is for others."""
    config = override(Config(), {"rpc": {"max_connections_per_address": 1}}, "test")
    bounds = DirectoryServer(config)._bounds()
    server = RpcServer([], SystemEntropy(), **bounds | {"max_connections_per_peer": 0})
    ours = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    others = ("::ffff:192.0.2.1", "fe80::1%lo", "::127.0.0.1", "::", "2001:db8::1")
    assert admitted(server, *ours, *others) == [True] * len(ours) + [False] * len(others)


@needs_ipv6
@pytest.mark.req("SEC-10-02")
def test_silent_connections_over_ipv6_are_bounded_at_the_queue_port(tmp_path: Path) -> None:
    async def attack() -> None:
        async with pec(tmp_path, listen="::1", silence_s=600) as (_, port):
            held = [await asyncio.open_connection("::1", port) for _ in range(40)]
            assert all([await ended(reader, DEADLINE_S) for reader, _ in held[:24]])
            assert not await ended(held[-1][0], 0.2)
            for _, writer in held:
                writer.transport.abort()

    asyncio.run(in_time(attack()))


@needs_ipv6
@pytest.mark.req("SEC-10-02")
def test_a_page_of_another_name_reads_nothing_over_ipv6() -> None:
    async def document() -> HttpAnswer:
        return HttpAnswer.text("the names of all queues")

    async def ask(port: int, host: str) -> bytes:
        reader, writer = await asyncio.open_connection("::1", port)
        writer.write(f"GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def attack() -> None:
        async with HttpServer({"/status": document}) as server:
            port = await server.listen("::1", 0)
            for host in (f"[::1]:{port}", f"localhost:{port}"):
                assert b"200 OK" in await ask(port, host)
            for host in ("evil.test", "[::1].evil.test", "::1.evil.test", "[evil.test]", "[::1"):
                assert b"421" in await ask(port, host), host

    asyncio.run(in_time(attack()))
