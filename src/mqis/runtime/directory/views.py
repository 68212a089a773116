"""One view for all calls that one turn of the event loop answers.

To begin and end a transaction takes longer than to read an object, and calls that arrive
together may share a snapshot. The end of a view is scheduled in the loop when the view begins.
Writes are acknowledged through the same loop, after their commit. So a client that knows of its
change never reads a view from before it.

The same holds for remembered answers, which need no view: to ask the store for its last commit
takes as long as all the rest of such a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import AnswerMemory, View


class SharedViews:
    """Views of a store, shared by the calls of one turn of an event loop."""

    __slots__ = ("_moment", "_now", "_read")

    def __init__(self, read: Callable[[], AbstractContextManager[View]]) -> None:
        self._read = read
        self._now: _Shared | None = None
        self._moment: tuple[asyncio.AbstractEventLoop, int] | None = None

    def view(self) -> AbstractContextManager[View]:
        """The view of this turn; a separate one without a loop, or in another loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._read()
        shared = self._now
        if shared is None or shared.failed:
            shared = self._now = _Shared(loop, self._read())
            loop.call_soon(self._turn, shared)
        return shared if shared.loop is loop else self._read()

    def moment(self, memory: AnswerMemory) -> int:
        """The moment whose answers all calls of this turn get: that of its view, if it has one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return memory.moment()
        if self._moment is None:
            shared = self._now
            self._moment = loop, memory.moment(None if shared is None else shared.shown)
            loop.call_soon(self._pass)
        among, moment = self._moment
        return moment if among is loop else memory.moment()

    def _pass(self) -> None:
        self._moment = None

    def _turn(self, shared: _Shared) -> None:
        if self._now is shared:
            self._now = None
        shared.leave()


class _Shared:
    """A view that ends after its turn, when all its users have left."""

    __slots__ = ("_context", "_users", "failed", "loop", "shown")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: AbstractContextManager[View]
    ) -> None:
        self.loop = loop
        self._context = context
        self.shown = context.__enter__()
        self._users = 1
        #: True after the store has failed in it: the next call gets a new view.
        self.failed = False

    def __enter__(self) -> View:
        self._users += 1
        return self.shown

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, StorageError):
            self.failed = True
        self.leave()

    def leave(self) -> None:
        self._users -= 1
        if not self._users:
            # What was read stays true if the store fails now, and there is no caller to raise to.
            with suppress(StorageError):
                self._context.__exit__(None, None, None)
