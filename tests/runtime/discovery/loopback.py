"""Servers on loopback addresses of their own, and clients that look for them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
import uvloop

from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.discovery_client import DiscoveryClient
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.runtime.discovery.networks import network_of
from mqis.runtime.discovery.responder import DiscoveryResponder, ListenAddress
from mqis.runtime.discovery.seeker import Ground, Seeker
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.mqsd.request import TopologyClientRequest
from tests.waiting import DEADLINE_S, in_time

ENTERPRISE = Guid(b"an enterprise...")
SITE_A, SITE_B = Guid(b"site A.........."), Guid(b"site B..........")
NETWORK = Guid(b"the network.....")
A = DiscoveryQueueManager(ENTERPRISE, (SITE_A,), ("a1", "a2"), (NETWORK,))
B = DiscoveryQueueManager(ENTERPRISE, (SITE_B,), ("b1",), (NETWORK,))

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on either kind of loop."""

    def runner(work: Coroutine[Any, Any, T]) -> T:
        async def limited() -> T:
            return await in_time(work)

        with asyncio.Runner(loop_factory=request.param) as made:
            return made.run(limited())

    return runner


def responder(own: DiscoveryQueueManager, **options: Any) -> DiscoveryResponder:
    return DiscoveryResponder(DiscoveryServer(own), **options)


async def listen_together(
    *servers: tuple[DiscoveryResponder, str],
) -> tuple[int, list[ListenAddress]]:
    """One port that is free at every address; the broadcast address they all share."""
    for _ in range(20):
        (first, address), *others = servers
        found = [await first.listen(address, 0)]
        try:
            for other, at in others:
                found.append(await other.listen(at, found[0].port))
        except OSError:  # somebody has that port there: another one
            for server, _ in servers:
                server._close_sockets()
            await asyncio.sleep(0.01)
            continue
        return found[0].port, found
    raise AssertionError("no port is free at all addresses")


def seeker(
    own: DiscoveryQueueManager, timeout_s: float = 10.0, on_event: Callable[..., None] | None = None
) -> Seeker:
    return Seeker(DiscoveryClient(own, timeout_s=timeout_s), SystemEntropy(), on_event)


def ground(port: int, address: str = "127.0.0.1") -> Ground:
    return Ground.of(network_of(address), port)


def request(site: Guid = Guid.NULL, number: int = 1) -> bytes:
    return TopologyClientRequest(ENTERPRISE, Guid(number.to_bytes(16, "big")), site).to_bytes()


class Asking:
    """A plain socket of a client."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self.socket.setblocking(False)
        self.socket.bind((address, port))

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.socket.close()

    def send(self, data: bytes, target: tuple[str, int]) -> None:
        self.socket.sendto(data, target)

    async def receive(self, within_s: float = DEADLINE_S) -> tuple[bytes, tuple[str, int]]:
        """By polling: not every event loop reads addresses."""
        deadline = asyncio.get_running_loop().time() + within_s
        while True:
            try:
                return self.socket.recvfrom(65_535)
            except BlockingIOError:
                if asyncio.get_running_loop().time() > deadline:
                    raise TimeoutError from None
                await asyncio.sleep(0.005)
