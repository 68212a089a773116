"""Takes the samples of the overview's charts while no browser is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from mqis.views.console.faults import MqisError

log = logging.getLogger(__name__)


class Sampler:
    """Calls ``sample`` in a thread again and again, as that waits for servers."""

    def __init__(self, sample: Callable[[], object], every_s: float) -> None:
        self._sample = sample
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._sample)
            except MqisError as error:  # the run directory; it may come back
                log.debug("no sample: %s", error)
            except Exception:
                log.exception("the console could not poll the servers; it tries again")
            await asyncio.sleep(self._every_s)
