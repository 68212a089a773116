"""Long reads, done in slices between which the event loop serves other calls.

A lookup over 100,000 queues takes seconds. It is a generator with one step for each object, which
is run for a millisecond at a time: one slice of one walk in each turn of the loop, all over one
view, so that it sees one snapshot of the directory. Few walks run at a time, since each keeps a
read connection of the store. Others wait, in order, except that a caller at the limit of its
connection or address does not block the callers after it.

Most reads are short. They are tried at once, without waiting and without a task; if such a try
does not finish, its work is discarded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager
from time import perf_counter
from typing import Generic, TypeVar

from mqis.protocol.budget import Budget, Caller, Charge
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.hresult import HResult

T = TypeVar("T")

#: The duration of a slice; one step may take longer.
SLICE_S = 0.001

#: Begins a walk over a view; each step yields the bytes that it has added.
Begin = Callable[[View], Generator[int, None, T]]
#: Gives a view, which ends with its context.
ViewSource = Callable[[], AbstractContextManager[View]]


class WalkResult(Generic[T]):
    """The result of a walk, which may be None."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class LookupWalks:
    """The walks of one server."""

    def __init__(self, view: ViewSource, places: Budget) -> None:
        self._view = view
        self._places = places
        self._waiting: deque[tuple[Caller, asyncio.Future[None]]] = deque()
        self._turn = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """The number of walks that wait for a place."""
        return len(self._waiting)

    def at_once(self, begin: Begin[T], charge: Charge) -> WalkResult[T] | None:
        """The result, if one slice is enough for it; else None, and nothing is charged."""
        with self._view() as view:
            walk = begin(view)
            done = _slice(walk, charge)
            if done is None:
                walk.close()
                charge.end()
            return done

    async def in_slices(self, begin: Begin[T], charge: Charge, read: ViewSource | None = None) -> T:
        """The result of a walk of any length; ``read`` gives another view than the usual one."""
        async with self._place(charge.caller):
            with (read or self._view)() as view:
                walk = begin(view)
                while True:
                    async with self._turn:
                        done = _slice(walk, charge)
                        if done is not None:
                            return done.value
                        await asyncio.sleep(0)  # kept until then: one slice a turn, of one walk

    @asynccontextmanager
    async def _place(self, caller: Caller) -> AsyncIterator[None]:
        if self._places.take(caller) is not None:
            granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (caller, granted)
            self._waiting.append(entry)
            try:
                await granted
            except asyncio.CancelledError:
                if granted.done() and not granted.cancelled():
                    self._leave(caller)
                else:
                    self._waiting.remove(entry)
                raise
        try:
            yield
        finally:
            self._leave(caller)

    def _leave(self, caller: Caller) -> None:
        """Gives a place back, and admits the waiting walks that fit now, in order."""
        self._places.give_back(caller)
        for entry in list(self._waiting):
            waiter, granted = entry
            if not granted.done() and self._places.take(waiter) is None:
                self._waiting.remove(entry)
                granted.set_result(None)


def _slice(walk: Generator[int, None, T], charge: Charge) -> WalkResult[T] | None:
    """Continues a walk for ``SLICE_S``; returns the result if it has ended."""
    added, done = advance(walk, SLICE_S)
    charged(charge, added)
    return done


def advance(walk: Generator[int, None, T], slice_s: float) -> tuple[int, WalkResult[T] | None]:
    """Continues a walk for a while; returns the bytes added, and the result if it has ended."""
    until = perf_counter() + slice_s
    added = 0
    try:
        added += next(walk)  # one step at least, also where the machine is busy elsewhere
        while perf_counter() < until:
            added += next(walk)
    except StopIteration as end:
        return added, WalkResult(end.value)
    return added, None


def charged(charge: Charge, added: int) -> None:
    """Takes the memory that a slice has added out of the caller's budget."""
    shortage = charge.change(charge.amount + added)
    if shortage is not None:
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"the lookup needs more memory than there is: {shortage} bytes; ask for fewer objects "
            "or columns, or end other lookups",
        )
