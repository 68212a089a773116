"""The connection for applications: messages in both directions."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol

from mqis.protocol.authentication import Identity
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import CmpoSession
from mqis.protocol.errors import ProtocolError
from mqis.protocol.multiplexer import multiplexed
from mqis.protocol.multiplexer.events import Congested, NotOpen
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.wire.cmp.packet import Packet
from mqis.wire.cmpo.codes import result_text
from mqis.wire.cmpo.ixnremote import BoundVersionSet

log = logging.getLogger(__name__)

#: Beyond this many unread bytes, messages stay with the multiplexer, which stops the partner
#: when it has too many.
_PAUSE_AT = 256 * 1024
_RESUME_AT = _PAUSE_AT // 2
_OVERHEAD = 128
#: Boxcars that may wait while one is in flight. With one ready and one being filled no time is
#: lost; a sender that never waits would keep the loop from sending any of them.
BOXCARS_AHEAD = 2


class ConnectionClosed(ProtocolError):
    """The connection has ended, or its session has."""


class ConnectionDenied(ConnectionClosed):
    """The partner denied the connection."""

    def __init__(self, reason: int) -> None:
        super().__init__(f"the partner denied the connection: {result_text(reason)}")
        self.reason = reason

    def __reduce__(self) -> tuple[type[ConnectionDenied], tuple[int]]:
        return type(self), (self.reason,)


class Message(NamedTuple):
    """A user message: dwUserMsgType and its data."""

    type: int
    body: bytes


class ConnectionLink(Protocol):
    """The session of a connection, and the multiplexer that carries it."""

    session: CmpoSession
    mux: Multiplexer
    #: True if a send is scheduled.
    touched: bool

    @property
    def identity(self) -> Identity | None: ...

    def touch(self) -> None:
        """Schedules a send at the end of this turn of the loop."""

    async def drain(self) -> None:
        """Waits until few enough boxcars wait, or the session is down."""

    def resume(self, connection: OleTxConnection) -> None: ...

    def disconnect(self, connection: OleTxConnection) -> None: ...


class OleTxConnection:
    """One connection, from either end.

    ``async for message in connection`` ends when the opener disconnects. It raises
    ``ConnectionDenied`` if the partner denied it, ``ConnectionClosed`` if the session is
    lost. Only the opener may ``disconnect``; leaving ``async with`` does so.
    """

    def __init__(self, link: ConnectionLink, raw: multiplexed.MultiplexedConnection) -> None:
        self._link = link
        self.raw = raw
        raw.interface, raw.sink = self, self._enqueue
        self._callback: multiplexed.Sink | None = None
        self._loop = asyncio.get_running_loop()
        self._messages: deque[Message] = deque()
        self._buffered = 0
        self._paused = False
        self._leaving = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._error: ConnectionClosed | None = None
        self._ended = False

    def __repr__(self) -> str:
        return f"<OleTxConnection with {self.partner}: {self.raw!r}>"

    # --- what it is -------------------------------------------------------------------------------

    @property
    def partner(self) -> NameObject:
        return self._link.session.name

    @property
    def connection_type(self) -> int:
        return self.raw.type

    @property
    def id(self) -> int | None:
        """dwConnectionId; None while it waits for a slot."""
        return self.raw.id

    @property
    def outgoing(self) -> bool:
        return self.raw.outgoing

    @property
    def version(self) -> BoundVersionSet:
        return self._link.session.version

    @property
    def identity(self) -> Identity | None:
        """The authenticated identity of the partner, if any."""
        return self._link.identity

    @property
    def closed(self) -> bool:
        return self._ended

    # --- sending ----------------------------------------------------------------------------------

    def send_nowait(self, message_type: int, body: bytes | bytearray | memoryview = b"") -> None:
        """Queues a message; ``Congested`` if there is no room for it."""
        link = self._link
        try:
            link.mux.send(self.raw, message_type, body)
        except NotOpen:
            raise self._error or ConnectionClosed(f"{self!r} is closed") from None
        if not link.touched:
            link.touch()

    async def send(self, message_type: int, body: bytes | bytearray | memoryview = b"") -> None:
        """Queues a message, waiting for room. Messages of one turn share a boxcar."""
        while True:
            try:
                self.send_nowait(message_type, body)
            except Congested:
                self._link.touch()
                waiter: asyncio.Future[None] = self._loop.create_future()
                self._writers.append(waiter)
                await waiter
            else:
                break
        if self._link.mux.boxcars_waiting > BOXCARS_AHEAD:
            await self._link.drain()

    async def drain(self) -> None:
        """Waits until the session has caught up, as ``send`` does, after ``send_nowait``."""
        if self._link.mux.boxcars_waiting > BOXCARS_AHEAD:
            await self._link.drain()

    # --- receiving --------------------------------------------------------------------------------

    async def receive(self) -> Message | None:
        """The next message; None when the connection has ended orderly. For one reader."""
        while not self._messages:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return None
            if self._reader is not None:
                raise RuntimeError("another task already reads this connection")
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._take()

    def receive_nowait(self) -> Message | None:
        """A message that has already arrived, or None."""
        return self._take() if self._messages else None

    def _take(self) -> Message:
        message = self._messages.popleft()
        self._buffered -= _OVERHEAD + len(message.body)
        if self._paused and self._buffered <= _RESUME_AT:
            self._paused = False
            self._link.resume(self)
        return message

    def deliver_to(self, callback: Callable[[int, bytes], None]) -> None:
        """Passes type and body of every message to ``callback`` at once; ``receive`` gets none.

        No task wakes up for it, which matters with thousands of connections. Exceptions of the
        callback are logged; only the time that it takes slows the partner down.
        """
        self._callback = callback
        self.raw.sink = self._run_callback
        while self._messages:
            self._run_callback(*self._take())

    def _run_callback(self, message_type: int, body: bytes) -> None:
        assert self._callback is not None
        try:
            self._callback(message_type, body)
        except Exception:
            log.exception("the callback for messages of %r failed", self)

    async def __aiter__(self) -> AsyncIterator[Message]:
        messages, take = self._messages, self._take
        while (message := await self.receive()) is not None:
            yield message
            while messages:  # messages that have already arrived cost no coroutine
                yield take()

    # --- the end ----------------------------------------------------------------------------------

    async def opened(self) -> OleTxConnection:
        """Waits for a slot; the partner may still deny the connection."""
        await asyncio.shield(self._opened)
        return self

    async def disconnect(self) -> None:
        """Closes a connection that was opened here, and waits for the partner's answer."""
        self._link.disconnect(self)
        # The partner's answer comes after its messages, which must not be held up now.
        self._leaving = True
        self._link.resume(self)
        await asyncio.shield(self._gone)

    async def wait_closed(self) -> None:
        await asyncio.shield(self._gone)

    async def __aenter__(self) -> OleTxConnection:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self.outgoing:
            await self.disconnect()

    # --- the link ---------------------------------------------------------------------------------

    def on_opened(self) -> None:
        self._opened.set_result(None)

    def received(self, raw: multiplexed.MultiplexedConnection, packet: Packet) -> None:
        """Takes a message that has waited, as a copy: a view would keep the whole boxcar."""
        take = self._enqueue if self._callback is None else self._run_callback
        take(packet.user_msg_type, bytes(packet.data))

    def _enqueue(self, message_type: int, body: bytes) -> None:
        self._messages.append(Message(message_type, body))
        self._buffered += _OVERHEAD + len(body)
        if self._buffered > _PAUSE_AT and not self._paused and not self._leaving:
            self._paused = True
            self._link.mux.pause(self.raw)
        if self._reader is not None:
            self._wake_reader()

    def denied(self, raw: multiplexed.MultiplexedConnection, reason: int) -> None:
        """Handles a denial: the opener disconnects it all the same (MS-CMP 4.2.1.1)."""
        self._error = ConnectionDenied(reason)
        self._wake_writers()
        self._link.disconnect(self)

    def disconnected(self, raw: multiplexed.MultiplexedConnection) -> None:
        self._end(None)

    def lost(self, reason: str) -> None:
        """Ends the connection because the session is down or there was no slot."""
        self._end(ConnectionClosed(reason))

    def writable(self) -> None:
        self._wake_writers()

    def _end(self, error: ConnectionClosed | None) -> None:
        self._ended = True
        self._error = self._error or error
        if not self._opened.done():
            self._opened.set_exception(self._error or ConnectionClosed("the connection is gone"))
            self._opened.exception()  # marks it as retrieved: perhaps no task waits for it
        if not self._gone.done():
            self._gone.set_result(None)
        self._wake_reader()
        self._wake_writers()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake_writers(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)
