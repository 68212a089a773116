"""Reads of a store that waits for a network: in threads, so that the event loop never waits.

A file answers within microseconds, and its calls are answered in the event loop. An Active
Directory or a database server answers over a network, or not at all; each of its readers takes a
thread as long. What is in memory is read in the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar

from mqis.protocol.authentication import CallerTicket
from mqis.protocol.budget import Budget, Charge
from mqis.protocol.errors import StoreUnavailable
from mqis.protocol.ports import AskedStore, Store, Transaction, View
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
#: The same of a database, each with a session of its own.
SESSIONS: Final = 8
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

        store = self._store

        def ask() -> T:
            if read is None and isinstance(store, AskedStore):
                return store.ask(question)
            with (read or store.read)() as view:
                return question(view)

        return await self.run(ask)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class ThreadedWalks(LookupWalks):
    """Walks whose slices run in threads."""

    def __init__(
        self,
        store: Store,
        readers: StoreReaders,
        places: Budget,
        quick: Callable[[], AbstractContextManager[View]] | None = None,
    ) -> None:
        """``quick`` gives a view of what is in memory, if there is a memory."""
        super().__init__(store.read if quick is None else quick, places)
        self._store = store
        self._readers = readers
        self._remembers = quick is not None

    def at_once(self, begin: Begin[T], charge: Charge) -> WalkResult[T] | None:
        """Nothing but what is in memory is found at once: the answer takes a network."""
        if not self._remembers:
            return None
        try:
            return super().at_once(begin, charge)
        except StoreUnavailable:
            charge.end()
            return None

    async def in_slices(self, begin: Begin[T], charge: Charge, read: ViewSource | None = None) -> T:
        run = self._readers.run
        async with self._place(charge.caller):
            context = (read or self._store.read)()
            view = await run(context.__enter__)
            try:
                walk: Generator[int, None, T] = begin(view)
                done: WalkResult[T] | None = None
                try:
                    while done is None:
                        added, done = await run(lambda: advance(walk, SLICE_S))
                        charged(charge, added)
                    return done.value
                finally:
                    if done is None:  # ends the query below the walk, wherever it has come to
                        await run(walk.close)
            finally:
                await run(lambda: context.__exit__(None, None, None))
