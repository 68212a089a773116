"""Threads that read the store: what waits when the server stops is never begun."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from mqis.runtime.directory.readers import StoreReaders
from mqis.storage.memory_store import MemoryStore
from tests.waiting import DEADLINE_S, run


def test_closing_cancels_the_reads_that_wait() -> None:
    began, release, late = Event(), Event(), Event()

    def first() -> str:
        began.set()
        assert release.wait(DEADLINE_S)
        return "done"

    async def scene() -> None:
        readers = StoreReaders(MemoryStore(), 1)
        running = asyncio.create_task(readers.run(first))
        with ThreadPoolExecutor(1) as helper:
            assert await asyncio.get_running_loop().run_in_executor(helper, began.wait, DEADLINE_S)
        waiting = asyncio.create_task(readers.run(late.set))
        await asyncio.sleep(0)
        readers.close()
        release.set()
        assert await running == "done"
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not late.is_set()

    run(scene())
