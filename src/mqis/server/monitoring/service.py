"""The monitoring endpoint of a directory server: /status, /metrics, /health.

Answers are gathered in a separate thread, so neither calls nor replication wait for them, and a
store that hangs blocks nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from mqis.config.logs import details
from mqis.config.monitoring import MonitoringSection
from mqis.protocol.errors import REPORTED, StorageError
from mqis.protocol.ports import Store
from mqis.runtime.http import HttpAnswer, HttpServer
from mqis.server.monitoring.gather import server_status, update_lag
from mqis.server.monitoring.health import UNREADABLE, health_json, own_verdict, trouble_of
from mqis.server.monitoring.sources import Sources

if TYPE_CHECKING:
    from mqis.server.monitoring.metrics.exposition import Exposition

log = logging.getLogger(__name__)

#: Seconds between two observations of the lag.
LOOK_S = 1.0


async def start_monitoring(
    section: MonitoringSection, sources: Sources, stack: AsyncExitStack
) -> int:
    """Starts an endpoint; returns its port; raises ``OSError`` if it cannot listen."""
    service = MonitoringService(sources)
    stack.push_async_callback(service.close)
    port = await service.listen(section.listen, section.port)
    log.info("monitoring", extra=details(address=section.listen, port=port))
    return port


class MonitoringService:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._thread = ThreadPoolExecutor(1, "mqis-monitoring")
        self._exposition: Exposition | None = None
        self._observing: asyncio.Task[None] | None = None
        documents = {
            "/status": self._status,
            "/metrics": self._metrics,
            "/health": self._health,
        }
        self._server = HttpServer(
            {path: partial(self._answer, document) for path, document in documents.items()}
        )

    async def listen(self, address: str, port: int) -> int:
        bound = await self._server.listen(address, port)
        self._observing = asyncio.create_task(self._observe_lag())
        return bound

    async def close(self) -> None:
        await self._server.close()
        if self._observing is not None:
            self._observing.cancel()
            await asyncio.gather(self._observing, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    async def _answer(self, document: Callable[[], HttpAnswer]) -> HttpAnswer:
        self._sources.sample_traffic()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _explained, document, self._sources.store)

    async def _observe_lag(self) -> None:
        """Observes the lag periodically: it shows only from one observation to the next."""
        loop = asyncio.get_running_loop()
        while True:
            self._sources.sample_traffic()
            await loop.run_in_executor(self._thread, update_lag, self._sources, loop.time())
            await asyncio.sleep(LOOK_S)

    # --- in the thread ----------------------------------------------------------------------------

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


def _explained(make: Callable[[], HttpAnswer], store: Store) -> HttpAnswer:
    try:
        return make()
    except StorageError as error:
        if not isinstance(error, REPORTED):
            log.warning("the store cannot be read: %s", error)
        return HttpAnswer.text(trouble_of(store) or UNREADABLE, HTTPStatus.SERVICE_UNAVAILABLE)
