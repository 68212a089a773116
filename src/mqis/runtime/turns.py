"""The work that strangers ask for, a little in each turn of the event loop.

A turn handles everything that has arrived, so without a bound a caller with a name would wait for
all that strangers have sent. Their work gets a short time of each turn. What is left waits for the
next one: there, each address has its turn, and at an address the connection that has waited
longest. Somebody who is about to log on thus does not wait for an address that asks for much.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import Protocol

from mqis.runtime.peers import source_of

log = logging.getLogger(__name__)

#: Seconds of each turn for the work of strangers.
TURN_S = 0.002


class Worker(Protocol):
    """A connection over which nobody with a name has logged on."""

    @property
    def peer(self) -> str:
        """The address of the client."""

    def work(self) -> None:
        """Does some of what was asked for, until ``Turns.must_wait``; nothing if it has ended."""

    def abort(self) -> None:
        """Closes the connection at once."""


class Turns:
    """Who waits for a turn of the event loop."""

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn_s = turn_s
        #: By address, in the order of their turns.
        self._waiting: dict[str, dict[Worker, None]] = {}
        #: The one whose turn it is.
        self._working: Worker | None = None
        self._is_counted = False
        self._ends_at = 0.0

    def must_wait(self, worker: Worker) -> bool:
        """Returns whether the time of this turn is used up: ``worker.work`` is called later."""
        now = perf_counter()
        if not self._is_counted:
            self._is_counted = True
            self._ends_at = now + self._turn_s
            asyncio.get_running_loop().call_soon(self._turn)
        if now < self._ends_at and (worker is self._working or not self._waiting):
            return False
        self._waiting.setdefault(source_of(worker.peer), {})[worker] = None
        return True

    def _turn(self) -> None:
        """Lets those that wait work, one at least."""
        self._ends_at = perf_counter() + self._turn_s
        while self._waiting:
            address = next(iter(self._waiting))
            waiting = self._waiting.pop(address)
            self._working = next(iter(waiting))
            del waiting[self._working]
            if waiting:  # the last now
                self._waiting[address] = waiting
            try:
                self._working.work()
            except Exception:  # as the event loop does: the others have their turns
                log.exception("the connection of %s is closed", self._working.peer)
                self._working.abort()
            self._working = None
            if perf_counter() >= self._ends_at:
                break
        self._is_counted = bool(self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)
