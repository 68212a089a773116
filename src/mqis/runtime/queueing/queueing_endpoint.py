"""The driver of a queue manager: listener, outgoing connections, ping responder, timer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import Protocol, cast

from mqis.protocol.discovery.limiter import RateLimit, SharedLimiter
from mqis.protocol.queueing.events import Close, Connect, Event, Write
from mqis.protocol.queueing.limits import PING_PORT, PORT
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.runtime.peers import source_of
from mqis.wire.mqqb.identifier import MessageIdentifier

#: Limits on answers to pings, by address and in total: sources are easily forged.
PINGS = RateLimit(10, 20)
ALL_PINGS = RateLimit(500, 1000)

#: Resolves a machine's name to the address of its queue manager.
Resolver = Callable[[str], Awaitable[tuple[str, int]]]


class QueueingEndpoint:
    """Drives a queue manager.

    ``async with QueueingEndpoint(manager, resolve) as endpoint: await endpoint.listen(host)``
    """

    def __init__(
        self,
        manager: QueueingMachine,
        resolve: Resolver,
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_news`` is called when the manager may have events, instead of ``next_event``."""
        self.manager = manager
        self._resolve = resolve
        self._on_news = on_news
        self._loop = asyncio.get_running_loop()
        self._connections: dict[int, QueueConnection] = {}
        self._connects: dict[int, asyncio.Task[None]] = {}
        self._listener: asyncio.Server | None = None
        self._pings: list[asyncio.DatagramTransport] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._reading = True
        self._waking = False
        self._news = asyncio.Event()
        self._open = True

    async def __aenter__(self) -> QueueingEndpoint:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def listen(self, host: str, port: int = PORT) -> int:
        """Listens for sessions; returns the port, a free one for 0."""
        self._listener = await self._loop.create_server(lambda: QueueConnection(self), host, port)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def listen_ping(self, host: str, port: int = PING_PORT) -> int:
        """Answers pings; returns the port, a free one for 0."""
        limiter = SharedLimiter(PINGS, ALL_PINGS)
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Responder(self.manager, limiter), local_addr=(host, port)
        )
        self._pings.append(transport)
        bound: int = transport.get_extra_info("sockname")[1]
        return bound

    # --- the application --------------------------------------------------------------------------

    def send(self, machine: str, message: QueuedMessage) -> MessageIdentifier:
        """Queues a message. Messages of one turn of the loop are written together."""
        identifier = self.manager.send(machine, message, self._loop.time(), int(time.time()))
        self.wake()
        return identifier

    def send_routed(self, message: QueuedMessage) -> MessageIdentifier:
        """Queues a message for a queue by its identifier. The manager's router names next hops by
        machine, whose addresses are resolved like all others."""
        identifier = self.manager.send_routed(message, self._loop.time(), int(time.time()))
        self.wake()
        return identifier

    def wake(self) -> None:
        """Schedules the manager's effects, once a turn; for callers that use it directly."""
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._act)

    async def next_event(self) -> Event:
        """Waits for the next event; for one reader."""
        while (event := self.manager.next_event()) is None:
            self._news.clear()
            await self._news.wait()
        if not self._reading:
            self._regulate()
        return event

    async def close(self, grace_s: float = 5.0) -> None:
        """Sends what open sessions accept, acknowledges received messages, and closes."""
        if not self._open:
            return
        self._open = False
        deadline = self._loop.time() + grace_s
        while self.manager.unwritten and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        if self._listener is not None:
            self._listener.close()
        for transport in self._pings:
            transport.close()
        self.manager.close()
        self._act()
        self._cancel_timer()
        while self._connections and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._connections.values()):
            connection.abort()
        if self._connects:
            await asyncio.gather(*self._connects.values(), return_exceptions=True)
        if self._listener is not None:
            await self._listener.wait_closed()

    # --- connections ------------------------------------------------------------------------------

    def made(self, connection: QueueConnection) -> None:
        now = self._loop.time()
        if connection.number:
            self._connections[connection.number] = connection
            self.manager.connected(connection.number, connection.address, now)
        else:
            address = connection.address
            number = self.manager.accepted(address, now, source_of(address))
            if number is None:
                connection.abort()
                return
            connection.number = number
            self._connections[number] = connection
        connection.pause(not self._reading)
        self._act()

    def received(self, connection: QueueConnection, data: bytes) -> None:
        self.manager.receive(connection.number, data, self._loop.time())
        self._act()

    def lost(self, connection: QueueConnection, reason: str) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self.manager.connection_lost(connection.number, self._loop.time(), reason)
            self._act()

    async def _connect(self, number: int, machine: str) -> None:
        try:
            host, port = await self._resolve(machine)
            await self._loop.create_connection(lambda: QueueConnection(self, number), host, port)
        except Exception as error:  # whatever a resolver raises, the next attempt may succeed
            reason = f"no connection to {machine}: {error}"
            self.manager.connect_failed(number, reason, self._loop.time())
        finally:
            self._connects.pop(number, None)
        self._act()

    # --- the machine ------------------------------------------------------------------------------

    def _act(self) -> None:
        """Carries out the manager's effects, and wakes the reader of events."""
        self._waking = False
        for effect in self.manager.effects():
            if isinstance(effect, Write):
                if (connection := self._connections.get(effect.connection)) is not None:
                    connection.write(effect.data)
            elif isinstance(effect, Connect):
                number = effect.connection
                task = self._loop.create_task(self._connect(number, effect.machine))
                self._connects[number] = task
            elif isinstance(effect, Close):
                self._close(effect.connection)
        self._news.set()
        self._on_news()
        self._regulate()
        self._arm()

    def _close(self, number: int) -> None:
        if (task := self._connects.get(number)) is not None:
            task.cancel()
        if (connection := self._connections.get(number)) is not None:
            connection.close()

    def _regulate(self) -> None:
        """Pauses reading while the application does not take events."""
        if self.manager.wants_data is not self._reading:
            self._reading = not self._reading
            for connection in self._connections.values():
                connection.pause(not self._reading)

    def _arm(self) -> None:
        """Sets a timer that expires no later than the manager's next; early does no harm."""
        due = self.manager.next_timer()
        if due is not None and due < self._due and self._open:
            self._cancel_timer()
            self._due = due
            self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._due = None, inf
        self.manager.handle_timer(self._loop.time())
        self._act()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _Responder(asyncio.DatagramProtocol):
    def __init__(self, manager: QueueingMachine, limiter: SharedLimiter) -> None:
        self._manager = manager
        self._limiter = limiter
        self._time = asyncio.get_running_loop().time
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        answer = self._manager.ping(data)
        if answer is None or self._transport is None:
            return
        if self._limiter.allows(source_of(str(addr[0])), self._time()):
            self._transport.sendto(answer, addr)


# --- The asyncio driver of one TCP connection between queue managers ------------------------------

#: Seconds that the peer has to read the last data after this side has closed.
LINGER_S = 2.0


class Owner(Protocol):
    """The interface that a connection needs of its endpoint."""

    def made(self, connection: QueueConnection) -> None: ...

    def received(self, connection: QueueConnection, data: bytes) -> None: ...

    def lost(self, connection: QueueConnection, reason: str) -> None: ...


class QueueConnection(asyncio.Protocol):
    """A TCP connection. ``number`` identifies it to the queue manager; 0 until it has one."""

    def __init__(self, owner: Owner, number: int = 0) -> None:
        self.number = number
        self.address = ""
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._paused = False

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        self._owner.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = "the peer closed the connection" if exc is None else f"connection lost: {exc}"
        self._owner.lost(self, reason)

    # --- the endpoint -----------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause(self, paused: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or paused is self._paused:
            return
        self._paused = paused
        if paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def close(self) -> None:
        """Closes after the written data is sent; aborts if the peer does not read it in time."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, transport.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
