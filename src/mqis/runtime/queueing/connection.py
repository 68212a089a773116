"""The asyncio driver of one TCP connection between queue managers."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

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
