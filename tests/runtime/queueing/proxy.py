"""A TCP proxy that breaks its connections when told to, or after so many bytes."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Proxy:
    """``async with Proxy(host, port) as proxy: proxy.port``"""

    def __init__(self, host: str, port: int, *, cut_every: int | None = None) -> None:
        self._target = host, port
        self._cut_every = cut_every
        self._left = cut_every
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.cuts = 0

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._cut_every = None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
                self._count(len(data))
        except OSError:
            pass
        finally:
            writer.close()
            self._writers.discard(writer)

    def _count(self, size: int) -> None:
        if self._cut_every is not None and self._left is not None:
            self._left -= size
            if self._left <= 0:
                self._left = self._cut_every
                self.cut()
