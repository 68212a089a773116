"""A server of ours in a thread, for judges that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from tests.waiting import DEADLINE_S

T = TypeVar("T")


@contextmanager
def in_thread(server: AbstractAsyncContextManager[T], start_s: float = DEADLINE_S) -> Iterator[T]:
    """Enter ``server`` on a loop of its own; leave it at the end."""
    started: list[T] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with server as value:
            started.append(value)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(start_s)
    if failed:
        thread.join()
        raise failed[0]
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE_S)
    if failed:
        raise failed[0]
