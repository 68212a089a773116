"""Proxies between the servers of an enterprise: each link can be cut on its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mqis.config.file import default_toml, override, read
from mqis.config.nodes import Nodes
from mqis.enterprise.control import ask
from tools.harness.ledger import Ledger

HOST = "127.0.0.1"
#: Ranges of the time between two cuts, and of their duration.
CUT_EVERY_S, CUT_S = (0.5, 2.0), (0.2, 3.0)


class Link:
    """A proxy from one server to another, which can be cut for a while."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.up = True

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self.up = False
        for writer in list(self._writers):
            writer.transport.abort()
        self._writers.clear()

    def mend(self) -> None:
        self.up = True

    def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
            self._writers.discard(writer)


@asynccontextmanager
async def proxied(run: Path, nodes: Nodes) -> AsyncIterator[list[Link]]:
    """Puts a proxy between each two servers, and starts the servers again with it."""
    links: list[Link] = []
    try:
        for near in nodes:
            hosts = {near.name: f"{near.address}:{near.queue_port}"}
            for far in nodes:
                if far.name != near.name:
                    link = Link(far.address, far.queue_port)
                    links.append(link)
                    await link.open()
                    hosts[far.name] = f"{HOST}:{link.port}"
            config = Path(near.config)
            changed = override(read(config), {"hosts": hosts}, "proxies")
            config.write_text(default_toml(changed), encoding="utf-8")
            for what in ("stop", "start"):
                await asyncio.to_thread(ask, run, what, near.name)
        yield links
    finally:
        for link in links:
            link.close()


async def cutter(
    links: list[Link], ledger: Ledger, rng: random.Random, is_over: Callable[[], bool]
) -> None:
    """Cuts links, each for a while; all are up when it returns."""
    cut: dict[Link, asyncio.TimerHandle] = {}
    while not is_over():
        await asyncio.sleep(rng.uniform(*CUT_EVERY_S))
        link = rng.choice(links)
        link.cut()
        ledger.cuts += 1
        if link in cut:
            cut[link].cancel()
        later = asyncio.get_running_loop().call_later
        cut[link] = later(rng.uniform(*CUT_S), link.mend)
    for link, timer in cut.items():
        timer.cancel()
        link.mend()
