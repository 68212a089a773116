"""Reads of a store that waits for a network: in threads, so that the event loop never waits.

A store of our own answers within microseconds, and its calls are answered in the event loop. An
Active Directory answers over a network, or not at all; each of its readers takes a thread as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar

from mqis.protocol.authentication import CallerTicket
from mqis.protocol.budget import Budget, Charge
from mqis.protocol.ports import Store, Transaction, View
from mqis.runtime.directory.walks import (
    Begin,
    LookupWalks,
    ViewSource,
    WalkResult,
    advance,
    charged,
)

T = TypeVar("T")

#: Calls that are read at the same time; others wait.
THREADS: Final = 32
#: The duration of a walk's slice; between two of them its memory is charged.
SLICE_S: Final = 0.05


class CallerViews(Protocol):
    """Gives each caller views and transactions with the caller's own rights."""

    def read(self, ticket: CallerTicket, peer: str) -> AbstractContextManager[View]:
        """``DirectoryError`` on entering it, if there is no room for one more caller."""

    def write(self, ticket: CallerTicket, peer: str) -> AbstractContextManager[Transaction]: ...


class StoreReaders:
    """The threads in which a server reads its store."""

    def __init__(self, store: Store, threads: int = THREADS) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mqis-read")

    async def ask(self, question: Callable[[View], T], read: ViewSource | None = None) -> T:
        """The result of a function over a view of its own; ``read`` gives it, if not the store."""

        def ask() -> T:
            with (read or self._store.read)() as view:
                return question(view)

        return await self.run(ask)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class ThreadedWalks(LookupWalks):
    """Walks whose slices run in threads."""

    def __init__(self, store: Store, readers: StoreReaders, places: Budget) -> None:
        super().__init__(store.read, places)
        self._readers = readers

    def at_once(self, begin: Begin[T], charge: Charge) -> WalkResult[T] | None:
        """Nothing is done at once: the answer takes a network."""
        return None

    async def in_slices(self, begin: Begin[T], charge: Charge, read: ViewSource | None = None) -> T:
        async with self._place(charge.caller):
            with (read or self._view)() as view:
                walk: Generator[int, None, T] = begin(view)
                done: WalkResult[T] | None = None
                try:
                    while done is None:
                        added, done = await self._readers.run(lambda: advance(walk, SLICE_S))
                        charged(charge, added)
                    return done.value
                finally:
                    if done is None:  # ends the query below the walk, wherever it has come to
                        await self._readers.run(walk.close)
