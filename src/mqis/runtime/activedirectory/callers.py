"""The connections with which a pass-through server acts as its callers.

Each logon has a connection of its own, bound with the caller's ticket, and Active Directory decides
what it may do. A connection is never used for another logon, not even one of the same user. Few are
kept: one that is idle is closed after a minute, or when another caller needs its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final

from mqis.protocol.authentication import CallerTicket
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction, View
from mqis.runtime.activedirectory.changing import ForestTransaction
from mqis.runtime.activedirectory.connection import CallerConnection, ForestConnection
from mqis.runtime.activedirectory.forestview import ForestView
from mqis.texts import counted
from mqis.wire.hresult import HResult

#: Seconds after which an idle connection is closed, and between two looks for such.
IDLE_S: Final = 60.0
#: The share of one user, as a fraction of all connections.
_SHARE: Final = 8


@dataclass(slots=True)
class _Held:
    """A connection, how many calls use it now, and when one did last."""

    connection: CallerConnection
    users: int
    last: float


class CallerConnections:
    """Views and transactions of callers; thread-safe, and never waits for the network itself."""

    def __init__(
        self,
        server: ForestConnection,
        most: int,
        *,
        sites_allowed: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._server = server
        self._most = most
        self._most_each = max(2, most // _SHARE)
        self._sites_allowed = sites_allowed
        self._clock = clock
        self._held: dict[CallerTicket, _Held] = {}
        self._lock = Lock()
        self._sweeping = False

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def read(self, ticket: CallerTicket, peer: str) -> Iterator[View]:
        """A view with the rights of a caller; ``DirectoryError`` if there is no room for one."""
        with self._used(ticket, peer) as connection:
            yield ForestView(connection)

    @contextmanager
    def write(self, ticket: CallerTicket, peer: str) -> Iterator[Transaction]:
        with self._used(ticket, peer) as connection:
            yield ForestTransaction(connection, sites_allowed=self._sites_allowed)

    @contextmanager
    def _used(self, ticket: CallerTicket, peer: str) -> Iterator[CallerConnection]:
        held = self._take(ticket, peer)
        try:
            yield held.connection
        finally:
            with self._lock:
                held.users -= 1
                held.last = self._clock()

    def _take(self, ticket: CallerTicket, peer: str) -> _Held:
        with self._lock:
            held = self._held.get(ticket)
            if held is None:
                self._make_room(ticket.principal)
                connection = CallerConnection(self._server, ticket, peer)
                held = self._held[ticket] = _Held(connection, 0, self._clock())
            held.users += 1
            if not self._sweeping:
                self._sweeping = True
                self._server.begin(self._sweep())
            return held

    def _make_room(self, principal: str) -> None:
        """Closes the connection that was idle for longest if the user, or all, have too many."""
        own = [each for each in self._held if each.principal == principal]
        if len(own) >= self._most_each:
            self._close_one_of(own, f"{principal} uses {counted(len(own), 'connection')}")
        elif len(self._held) >= self._most:
            self._close_one_of(list(self._held), f"all {self._most} are in use")

    def _close_one_of(self, tickets: list[CallerTicket], shortage: str) -> None:
        idle = [ticket for ticket in tickets if not self._held[ticket].users]
        if not idle:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"no more connections to the directory: {shortage}; end lookups, or raise "
                "store.caller_connections",
            )
        self._close(min(idle, key=lambda ticket: self._held[ticket].last))

    def _close(self, ticket: CallerTicket) -> None:
        self._held.pop(ticket).connection.leave()

    def close(self) -> None:
        """Ends all connections; the server's own is closed after them."""
        with self._lock:
            held, self._held = self._held, {}
        for each in held.values():
            each.connection.close()

    async def _sweep(self) -> None:
        """Closes idle connections, for as long as the server's own connection is there."""
        while True:
            await asyncio.sleep(IDLE_S)
            self.close_idle()

    def close_idle(self) -> None:
        with self._lock:
            now = self._clock()
            for ticket, held in list(self._held.items()):
                if not held.users and now >= held.last + IDLE_S:
                    self._close(ticket)
