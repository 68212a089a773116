"""Lets plain functions use the asynchronous LDAP client: an event loop in a thread of its own.

The methods of MS-MQDS are plain functions over a view. They run in threads of the server and wait
here for the answers of the directory, while one connection carries the requests of all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from mqis.protocol.errors import StorageError

T = TypeVar("T")

#: Items of a search that are handed over at a time.
HANDOVER: Final = 50


class LoopThread:
    """An event loop that runs in a thread until ``close``."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._closing = Lock()
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the result; the client's time limits end every wait."""
        # In half the time of run_coroutine_threadsafe, whose futures can do more than this needs.
        done: SimpleQueue[asyncio.Task[T]] = SimpleQueue()
        with self._closing:
            if self._closed:
                work.close()
                raise StorageError("the connection to the directory is closed")
            self._loop.call_soon_threadsafe(self._begin, work, done)
        try:
            return done.get().result()
        except asyncio.CancelledError:
            raise StorageError("the connection to the directory is closed") from None

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins work that nobody waits for."""
        with self._closing:
            if self._closed:
                work.close()
                return
            self._loop.call_soon_threadsafe(self._begin, work, SimpleQueue())

    def _begin(self, work: Coroutine[Any, Any, T], done: SimpleQueue[asyncio.Task[T]]) -> None:
        self._loop.create_task(work).add_done_callback(done.put)

    def iterate(self, found: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yields the items of a search, a handful at a time; leaving it early ends the search."""
        more = True
        try:
            while more:
                taken, more = self.run(_take(found))
                yield from taken
        finally:
            if more and not self._closed:
                self.run(found.aclose())

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Runs ``last``, ends what still waits, then stops the thread; once is enough."""
        if self._closed:
            last.close()
            return
        try:
            self.run(last)
        finally:
            with self._closing:
                self._closed = True
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _take(found: AsyncGenerator[T, None]) -> tuple[list[T], bool]:
    """The next items, and whether there may be more: threads change hands as seldom as possible."""
    taken: list[T] = []
    async for item in found:
        taken.append(item)
        if len(taken) == HANDOVER:
            return taken, True
    return taken, False


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
