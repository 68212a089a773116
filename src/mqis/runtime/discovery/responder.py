"""A discovery server's sockets: its own address, and the broadcast address of its network.

A socket that is bound to one address receives no broadcasts, so a second one is bound to the
broadcast address, which all servers of a computer share. Both answer from the first. A server
that listens at 0.0.0.0 needs only one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from mqis.protocol.discovery.announced import DiscoveryQueueManager
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.runtime.discovery.networks import listening_socket, network_of
from mqis.wire.errors import MqisError

log = logging.getLogger(__name__)

#: IANA: msmq, of which this is the UDP half (1.9). TCP 1801 is another protocol's.
PORT = 1801
EVERY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The endpoint of a server. Without ``broadcast`` clients have to name this endpoint."""

    address: str
    port: int
    broadcast: str | None


class DiscoveryResponder:
    """Answers between ``listen`` and ``close``.

    ``load`` reads the directory; it is called every ``refresh_s`` seconds, in a thread of its own.
    After a failed send the sockets are reopened (3.2.5), at most once in ``reopen_s``; if that
    fails ``attempts`` times, the responder ends.
    """

    def __init__(
        self,
        server: DiscoveryServer,
        load: Callable[[], DiscoveryQueueManager] | None = None,
        *,
        refresh_s: float = 5.0,
        reopen_s: float = 1.0,
        attempts: int = 5,
    ) -> None:
        self.server = server
        self.reopened = 0
        self._load = load
        self._refresh_s, self._reopen_s, self._attempts = refresh_s, reopen_s, attempts
        self._loop = asyncio.get_running_loop()
        self._listening: ListenAddress | None = None
        self._transports: list[asyncio.DatagramTransport] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._reopen_after = 0.0
        self._reopening = False
        #: Done when the responder has ended, by ``close`` or because reopening its sockets failed.
        self.ended: asyncio.Future[None] = self._loop.create_future()

    async def __aenter__(self) -> DiscoveryResponder:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def listen(self, address: str, port: int = PORT) -> ListenAddress:
        """Listens for requests; port 0 selects a free one. ``OSError`` if it cannot."""
        self._listening = await self._open(address, port)
        if self._load is not None:
            self._start(self._refresh(self._load))
        return self._listening

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._close_sockets()
        self._end()

    # --- sockets ----------------------------------------------------------------------------------

    async def _open(self, address: str, port: int) -> ListenAddress:
        own = listening_socket(address, port)
        port = own.getsockname()[1]
        transport, _ = await self._loop.create_datagram_endpoint(lambda: _Listener(self), sock=own)
        self._transports.append(transport)
        if address == EVERY_ADDRESS:
            return ListenAddress(address, port, EVERY_ADDRESS)
        return ListenAddress(address, port, await self._open_broadcast(address, port, transport))

    async def _open_broadcast(
        self, address: str, port: int, answers: asyncio.DatagramTransport
    ) -> str | None:
        broadcast = network_of(address).broadcast
        try:
            shared = listening_socket(broadcast, port, shared=True)
        except OSError as error:  # macOS has no such address
            log.warning(
                "cannot receive broadcasts at %s:%d, clients have to name this endpoint: %s",
                *(broadcast, port, error),
            )
            return None
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Listener(self, answers), sock=shared
        )
        self._transports.append(transport)
        return broadcast

    def _close_sockets(self) -> None:
        for transport in self._transports:
            transport.abort()
        self._transports.clear()

    def failed(self, error: OSError) -> None:
        """Reopens the sockets after an error of one (3.2.5)."""
        if isinstance(error, ConnectionError):
            return  # an ICMP message about an earlier datagram (E-MQSD-19)
        now = self._loop.time()
        if self._reopening or self.ended.done() or now < self._reopen_after:
            return
        log.warning("a discovery reply could not be sent, reopening the sockets: %s", error)
        self._reopening = True
        self._reopen_after = now + self._reopen_s
        self._start(self._reopen())

    async def _reopen(self) -> None:
        assert self._listening is not None
        for attempt in range(self._attempts):
            self._close_sockets()
            await asyncio.sleep(self._reopen_s if attempt else 0)  # abort closes in the next turn
            try:
                await self._open(self._listening.address, self._listening.port)
            except OSError as error:
                log.warning("the discovery port cannot be opened: %s", error)
            else:
                self._reopening = False
                self.reopened += 1
                return
        log.error("discovery has ended, its port cannot be opened any more")
        self._close_sockets()
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    # --- the directory ----------------------------------------------------------------------------

    async def _refresh(self, load: Callable[[], DiscoveryQueueManager]) -> None:
        while not self.ended.done():
            await asyncio.sleep(self._refresh_s)
            try:
                found = await asyncio.to_thread(load)
            except MqisError as error:  # the last known state is still the best answer
                log.warning(
                    "discovery cannot read the directory, and answers from its last state: %s",
                    error,
                )
            else:
                if found != self.server.queue_manager:
                    self.server.update(found)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Listener(asyncio.DatagramProtocol):
    """The protocol of one socket; ``answers`` is the transport for replies, by default its own."""

    def __init__(
        self, responder: DiscoveryResponder, answers: asyncio.DatagramTransport | None = None
    ) -> None:
        self._responder = responder
        self._answer = responder.server.answer
        self._answers = answers
        self._time = asyncio.get_running_loop().time

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._answers is None:
            self._answers = cast(asyncio.DatagramTransport, transport)  # uvloop's is its own class

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = self._answer(data, addr[0], self._time())
        answers = self._answers
        if reply is None or answers is None or answers.is_closing() or not addr[1]:
            return
        answers.sendto(reply, addr)

    def error_received(self, exc: Exception) -> None:
        if isinstance(exc, OSError):
            self._responder.failed(exc)

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, OSError):
            self._responder.failed(exc)
