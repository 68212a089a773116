"""The monitoring endpoint of a directory server: /status, /metrics, /health, /keys.

Answers are gathered in a separate thread, so neither calls nor replication wait for them, and a
store that hangs blocks nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any

from mqis.config.logs import details
from mqis.config.monitoring import MonitoringSection
from mqis.protocol.errors import REPORTED, StorageError
from mqis.protocol.ports import Store
from mqis.runtime.http import HttpAnswer, HttpServer
from mqis.server.monitoring.health import UNREADABLE, health_json, own_verdict, trouble_of
from mqis.server.monitoring.key_list import known_keys
from mqis.server.monitoring.status import ServerStatus
from mqis.server.monitoring.status_gathering import has_lag, server_status, update_lag
from mqis.server.monitoring.status_sources import Sources

if TYPE_CHECKING:
    from mqis.server.monitoring.metrics.exposition import Exposition

log = logging.getLogger(__name__)

#: Seconds between two observations of the lag, and between two comparisons with a peer. One peer is
#: asked at a time, so the load does not grow with their number.
LOOK_S = 1.0
COMPARE_S = 5.0
#: The rest after a document has been made, in the time that this took. Python runs one thread at a
#: time, so whoever asks again and again would take much of the server. At most so many seconds: a
#: document that waits for its store takes little of it, and /health has to answer then.
REST, LONGEST_REST_S = 3.0, 0.5


async def start_monitoring(
    section: MonitoringSection, sources: Sources, stack: AsyncExitStack
) -> MonitoringService:
    """Starts an endpoint; raises ``OSError`` if it cannot listen."""
    service = MonitoringService(sources, section)
    stack.push_async_callback(service.close)
    service.port = await service.listen(section.listen, section.port)
    log.info("monitoring", extra=details(address=section.listen, port=service.port))
    return service


class MonitoringService:
    #: The port that it listens at.
    port = 0

    def __init__(self, sources: Sources, section: MonitoringSection) -> None:
        self._sources = sources
        self._section = section
        self._thread = ThreadPoolExecutor(1, "mqis-monitoring")
        #: Verifies the store, checks the journal and asks peers, which all take long.
        self._slow = ThreadPoolExecutor(3, "mqis-contents")
        self._exposition: Exposition | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Documents that have been asked for and are not begun.
        self._making: dict[Callable[[], HttpAnswer], asyncio.Task[HttpAnswer]] = {}
        self._turn = asyncio.Lock()
        self._rests_until = 0.0
        documents = {
            "/status": self._status,
            "/metrics": self._metrics,
            "/health": self._health,
        }
        self._server = HttpServer(
            {path: partial(self._answer, document) for path, document in documents.items()},
            queried={"/keys": self._keys},
        )
        sources.monitoring = self._server

    async def listen(self, address: str, port: int) -> int:
        bound = await self._server.listen(address, port)
        section = self._section
        self._tasks.add(asyncio.create_task(self._observe_lag()))
        if section.verify_s:
            self._tasks.add(asyncio.create_task(self._verify(section.verify_s)))
            self._tasks.add(asyncio.create_task(self._check_journal(section.verify_s)))
        self._tasks.add(asyncio.create_task(self._compare()))
        return bound

    def reread(self, section: MonitoringSection) -> None:
        """Takes the live keys."""
        self._section = section

    async def close(self) -> None:
        await self._server.close()
        self._sources.contents.stopped.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for thread in (self._slow, self._thread):
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)

    async def _answer(self, document: Callable[[], HttpAnswer]) -> HttpAnswer:
        """Requests that wait share one answer: what they cost does not grow with their number."""
        making = self._making.get(document)
        if making is None:
            making = self._making[document] = asyncio.create_task(self._made(document))
            self._tasks.add(making)
            making.add_done_callback(self._tasks.discard)
        return await asyncio.shield(making)  # others wait for it too

    async def _made(self, document: Callable[[], HttpAnswer]) -> HttpAnswer:
        """Makes one document after the other, and lets the server work in between."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(self._rests_until - loop.time())
            del self._making[document]  # who asks from now on wants to see what happens meanwhile
            self._sources.sample_traffic()
            began = loop.time()
            try:
                store = self._sources.store
                return await loop.run_in_executor(self._thread, _explained, document, store)
            finally:
                now = loop.time()
                self._rests_until = now + min(REST * (now - began), LONGEST_REST_S)

    async def _keys(self, query: str) -> HttpAnswer:
        def document() -> HttpAnswer:
            return HttpAnswer.json(known_keys(self._sources, query).to_json())

        return await self._answer(document)

    async def _observe_lag(self) -> None:
        """Observes the lag periodically: it shows only from one observation to the next."""
        loop = asyncio.get_running_loop()
        while True:
            self._sources.sample_traffic()
            if has_lag(self._sources):
                await loop.run_in_executor(self._thread, update_lag, self._sources, loop.time())
            await asyncio.sleep(LOOK_S)

    async def _verify(self, every_s: float) -> None:
        """Verifies the store periodically."""
        loop = asyncio.get_running_loop()
        while True:
            await loop.run_in_executor(self._slow, self._verify_once)
            await asyncio.sleep(every_s)

    async def _check_journal(self, every_s: float) -> None:
        """Checks the journal periodically, from when the server serves: before, it is not open."""
        loop = asyncio.get_running_loop()
        while not self._sources.serving:
            await asyncio.sleep(LOOK_S)
        while self._sources.replication is not None:
            await loop.run_in_executor(self._slow, self._check_journal_once)
            await asyncio.sleep(every_s)

    async def _compare(self) -> None:
        """Compares this server's copies with those of one peer after the other."""
        loop = asyncio.get_running_loop()
        for turn in count():
            if peers := self._section.peers:
                found = await loop.run_in_executor(self._slow, _asked, peers[turn % len(peers)])
                if isinstance(found, ServerStatus):
                    await loop.run_in_executor(self._thread, self._compare_with, found)
            await asyncio.sleep(COMPARE_S)

    # --- in the thread ----------------------------------------------------------------------------

    def _verify_once(self) -> None:
        with suppress(StorageError):  # /health and the log tell
            self._sources.contents.verify(self._sources.store)

    def _check_journal_once(self) -> None:
        service = self._sources.replication
        assert service is not None
        try:
            stopped = self._sources.contents.stopped
            self._sources.chain.check(service, self._sources.store, stopped)
        except (StorageError, OSError) as error:
            log.warning("the journal cannot be checked: %s", error)

    def _compare_with(self, peer: ServerStatus) -> None:
        with suppress(StorageError):
            self._sources.contents.compare(server_status(self._sources), peer)

    def _status(self) -> HttpAnswer:
        return HttpAnswer.json(server_status(self._sources).to_json())

    def _metrics(self) -> HttpAnswer:
        from mqis.server.monitoring.metrics.exposition import (  # noqa: PLC0415 -- slow
            CONTENT_TYPE,
            Exposition,
        )

        if self._exposition is None:
            self._exposition = Exposition(self._sources)
        return HttpAnswer(self._exposition.text(), CONTENT_TYPE)

    def _health(self) -> HttpAnswer:
        try:
            status = server_status(self._sources)
        except StorageError:  # it is among the problems
            status = None
        healthy, document = health_json(self._sources, own_verdict(self._sources, status))
        code = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpAnswer.json(document, code)


def _asked(peer: str) -> ServerStatus | str:
    from mqis.server.monitoring.fetching import fetch  # noqa: PLC0415 -- an HTTP client

    return fetch(peer)


def _explained(make: Callable[[], HttpAnswer], store: Store) -> HttpAnswer:
    try:
        return make()
    except StorageError as error:
        if not isinstance(error, REPORTED):
            log.warning("the store cannot be read: %s", error)
        return HttpAnswer.text(trouble_of(store) or UNREADABLE, HTTPStatus.SERVICE_UNAVAILABLE)
