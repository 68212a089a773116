"""The connections of browsers: bounded in number, and cut off when they are silent.

uvicorn waits for a request, its body and its reader for as long as it takes. Here each of them has
its time: whoever sends nothing, or a byte now and then, or reads nothing, loses the connection. A
connection counts from its first packet, before TLS is agreed on, which asyncio would wait for
without counting; so TLS begins here too.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from mqis.runtime.crowd import Crowd


@dataclass(frozen=True, slots=True)
class Bounds:
    most: int
    most_per_address: int
    #: For a request to come, its body included.
    request_s: float
    #: For a browser to read on, when it has left much unread.
    read_s: float
    tls: ssl.SSLContext | None = None


class Bounded(H11Protocol):
    """One connection. ``bounded`` makes the class for one server."""

    bounds: ClassVar[Bounds]
    crowd: ClassVar[Crowd[Bounded]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._securing: asyncio.Task[None] | None = None
        #: What came between the end of the handshake and the moment that we heard of it.
        self._early = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.crowd.enter(self, self.client[0] if self.client else ""):
            transport.abort()
            return
        self._request_timer = self._cut_after(self.bounds.request_s)
        if self.bounds.tls is not None:
            self._securing = self.loop.create_task(self._secure(transport, self.bounds.tls))

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            secured = await self.loop.start_tls(transport, self, context, server_side=True)
        except OSError:  # who speaks no TLS
            secured = None
        if secured is None:  # or was cut off meanwhile
            transport.abort()
            self.connection_lost(None)
            return
        self._securing = None
        super().connection_made(secured)
        if self._early:
            self.data_received(self._early)

    def connection_lost(self, exc: Exception | None) -> None:
        if self not in self.connections:  # asyncio tells it in most cases of a failed handshake
            return
        self.crowd.leave(self)
        self._stop_waiting()
        self._stop_waiting_to_be_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._securing is not None:
            self._early += data
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        self._stop_waiting()
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.crowd.waits(self)
        self._read_timer = self._cut_after(self.bounds.read_s)

    def resume_writing(self) -> None:
        self._stop_waiting_to_be_read()
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """After something happened: whether a request is under way, or one is waited for."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self.crowd.busy(self)
        else:
            self.crowd.waits(self)
        if answering and not self.cycle.more_body:
            self._stop_waiting()
        elif self._request_timer is None:
            self._request_timer = self._cut_after(self.bounds.request_s)

    def _cut_after(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _stop_waiting_to_be_read(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def bounded(bounds: Bounds) -> type[Bounded]:
    def cut(connection: Bounded) -> None:
        connection.transport.abort()

    attributes = {
        "bounds": bounds,
        "crowd": Crowd(bounds.most, bounds.most_per_address, cut),
    }
    return type("BoundedHere", (Bounded,), attributes)
