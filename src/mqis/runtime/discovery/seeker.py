"""The driver of a discovery client: one socket per network, opened in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqis.protocol.discovery.announced import NetworkAddress
from mqis.protocol.discovery.discovery_client import DiscoveryClient
from mqis.protocol.discovery.events import Broadcast, Event, ServerListComplete
from mqis.protocol.ports import Entropy
from mqis.runtime.discovery.networks import LocalNetwork, broadcasting_socket
from mqis.runtime.discovery.responder import EVERY_ADDRESS, PORT

#: A host and a port.
Endpoint = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Ground:
    """A network to send requests on: the local address, and the targets.

    If no broadcast reaches the servers (loopback without one, other ports), the datagram is sent
    to each known endpoint instead.
    """

    network: NetworkAddress
    targets: tuple[Endpoint, ...]
    broadcast: bool = True

    @classmethod
    def of(cls, local: LocalNetwork, port: int = PORT) -> Ground:
        network = NetworkAddress(local.address, local.point_to_point)
        return cls(network, ((local.broadcast, port),))

    @classmethod
    def at_endpoints(cls, endpoints: Sequence[Endpoint], address: str = EVERY_ADDRESS) -> Ground:
        return cls(NetworkAddress(address), tuple(endpoints), broadcast=False)


class Seeker:
    """Drives a client through one run after another."""

    def __init__(
        self,
        client: DiscoveryClient,
        entropy: Entropy,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.client = client
        self._entropy = entropy
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._grounds: dict[str, Ground] = {}
        self._transports: list[asyncio.DatagramTransport] = []

    async def run(self, grounds: Sequence[Ground], *, force: bool = False) -> ServerListComplete:
        """Runs Get Directory Server List to its end."""
        self._grounds = {ground.network.address: ground for ground in grounds}
        self.client.get_directory_server_list(
            [ground.network for ground in grounds],
            self._entropy.guid(),
            self._loop.time(),
            force=force,
        )
        try:
            while True:
                for effect in self.client.effects():
                    await self._broadcast(effect)
                finished = self._report_events()
                if finished is not None:
                    return finished
                await self._wait()
        finally:
            for transport in self._transports:
                transport.close()
            self._transports.clear()

    def _report_events(self) -> ServerListComplete | None:
        while (event := self.client.next_event()) is not None:
            if self._on_event is not None:
                self._on_event(event)
            if isinstance(event, ServerListComplete):
                return event
        return None

    async def _wait(self) -> None:
        """Waits for a datagram, or for the timer."""
        due = self.client.next_timer()
        try:
            async with asyncio.timeout_at(due):
                await self._news.wait()
        except TimeoutError:
            self.client.handle_timer(self._loop.time())
        self._news.clear()

    async def _broadcast(self, effect: Broadcast) -> None:
        ground = self._grounds[effect.network]
        try:
            transport, _ = await self._loop.create_datagram_endpoint(
                lambda: _Inbox(self, effect.network), sock=broadcasting_socket(effect.network)
            )
        except OSError as error:
            self.failed(effect.network, error)
            return
        self._transports.append(transport)
        for target in ground.targets:
            transport.sendto(effect.data, target)

    def received(self, network: str, source: str, data: bytes) -> None:
        self.client.receive(network, source, data, self._loop.time())
        self._news.set()

    def failed(self, network: str, error: Exception) -> None:
        """Reports a failed send, unless the network has other targets that may have worked."""
        if len(self._grounds[network].targets) == 1 and not isinstance(error, ConnectionError):
            self.client.broadcast_failed(network, str(error), self._loop.time())
            self._news.set()


class _Inbox(asyncio.DatagramProtocol):
    def __init__(self, seeker: Seeker, network: str) -> None:
        self._seeker = seeker
        self._network = network

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._seeker.received(self._network, addr[0], data)

    def error_received(self, exc: Exception) -> None:
        self._seeker.failed(self._network, exc)
