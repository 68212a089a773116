"""The connections of browsers: limited in number, and with timeouts.

uvicorn waits without limit for a request, its body and its reader. Here each of them has a timeout:
a client that sends nothing, sends too slowly, or does not read, loses the connection. A connection
counts from the start, before the TLS handshake. asyncio would not count connections in a handshake,
so TLS is started here too.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from mqis.runtime.crowd import Crowd
from mqis.web.limiting import FewLines


@dataclass(frozen=True, slots=True)
class Bounds:
    most: int
    most_per_address: int
    #: The time for a request to arrive, its body included.
    request_s: float
    #: The time for a browser to read on, if it has left much unread.
    read_s: float
    tls: ssl.SSLContext | None = None


class Bounded(H11Protocol):
    """One connection; ``bounded`` makes the subclass for one server."""

    bounds: ClassVar[Bounds]
    crowd: ClassVar[Crowd[Bounded]]
    lines: ClassVar[FewLines]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # It tells of malformed requests, which anybody can send.
        self.logger = self.lines  # type: ignore[assignment]
        self._request_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._securing: asyncio.Task[None] | None = None
        #: Data that arrived between the end of the handshake and ``start_tls`` returning.
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
        except OSError:  # the client does not speak TLS
            secured = None
        if secured is None:  # or the connection was closed meanwhile
            transport.abort()
            self.connection_lost(None)
            return
        self._securing = None
        super().connection_made(secured)
        if self._early:
            self.data_received(self._early)

    def connection_lost(self, exc: Exception | None) -> None:
        if self not in self.connections:  # asyncio calls this after most failed handshakes too
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
        self._update_state()

    def on_response_complete(self) -> None:
        self._stop_waiting()
        super().on_response_complete()
        self._update_state()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.crowd.waits(self)
        self._read_timer = self._cut_after(self.bounds.read_s)

    def resume_writing(self) -> None:
        self._stop_waiting_to_be_read()
        super().resume_writing()
        self._update_state()

    def _update_state(self) -> None:
        """Updates state and timer: a request is being answered, or the next one is awaited."""
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
        "lines": FewLines(logging.getLogger("uvicorn.error")),
    }
    return type("BoundedHere", (Bounded,), attributes)
