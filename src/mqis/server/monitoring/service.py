"""The monitoring endpoint beside a directory server: /status, /metrics, /health.

What it tells is gathered in one thread of its own, so neither calls nor replication wait for it,
and a store that hangs hangs nobody else.
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
from mqis.runtime.http import Answer, HttpServer
from mqis.server.monitoring.gather import look_at_lag, server_status
from mqis.server.monitoring.health import UNREADABLE, problems, trouble_of
from mqis.server.monitoring.sources import Sources

if TYPE_CHECKING:
    from mqis.server.monitoring.metrics.exposition import Exposition

log = logging.getLogger(__name__)

#: Between two looks at who is behind.
LOOK_S = 1.0


async def start_monitoring(
    section: MonitoringSection, sources: Sources, stack: AsyncExitStack
) -> int:
    """An endpoint that listens, and its port; ``OSError`` if it cannot."""
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
        self._looking: asyncio.Task[None] | None = None
        documents = {
            "/status": self._status,
            "/metrics": self._metrics,
            "/health": self._health,
        }
        self._server = HttpServer(
            {path: partial(self._tell, document) for path, document in documents.items()}
        )

    async def listen(self, address: str, port: int) -> int:
        bound = await self._server.listen(address, port)
        self._looking = asyncio.create_task(self._keep_looking())
        return bound

    async def close(self) -> None:
        await self._server.close()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    async def _tell(self, document: Callable[[], Answer]) -> Answer:
        self._sources.look()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _explained, document, self._sources.store)

    async def _keep_looking(self) -> None:
        """For what only shows from one look to the next."""
        loop = asyncio.get_running_loop()
        while True:
            self._sources.look()
            await loop.run_in_executor(self._thread, look_at_lag, self._sources, loop.time())
            await asyncio.sleep(LOOK_S)

    # --- in the thread ----------------------------------------------------------------------------

    def _status(self) -> Answer:
        return Answer.json(server_status(self._sources).to_json())

    def _metrics(self) -> Answer:
        from mqis.server.monitoring.metrics.exposition import (  # noqa: PLC0415 -- slow
            CONTENT_TYPE,
            Exposition,
        )

        if self._exposition is None:
            self._exposition = Exposition(self._sources)
        return Answer(self._exposition.text(), CONTENT_TYPE)

    def _health(self) -> Answer:
        found = problems(self._sources)
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        return Answer.json({"healthy": not found, "problems": found}, status)


def _explained(make: Callable[[], Answer], store: Store) -> Answer:
    try:
        return make()
    except StorageError as error:
        if not isinstance(error, REPORTED):
            log.warning("the store cannot be read: %s", error)
        return Answer.text(trouble_of(store) or UNREADABLE, HTTPStatus.SERVICE_UNAVAILABLE)
