"""Open connections, limited by address and in total.

A connection waits while no answer is being made for it: for its request, or for its client to read.
If there is no room for a new connection, the one that has waited longest is closed, so that silent
connections do not keep others out, not even from the same address, as all are on loopback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mqis.runtime.peers import source_of

C = TypeVar("C", bound=Hashable)


class Crowd(Generic[C]):
    """The open connections. ``cut`` closes one at once; it is already removed then."""

    def __init__(self, most: int, most_per_address: int, cut: Callable[[C], None]) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._cut = cut
        self._address: dict[C, str] = {}
        self._numbers: Counter[str] = Counter()
        #: In the order in which they began to wait.
        self._waiting: dict[C, None] = {}

    def __len__(self) -> int:
        return len(self._address)

    def enter(self, connection: C, peer: str) -> bool:
        """Adds a connection as waiting; returns whether there is room for it."""
        address = source_of(peer)
        if self._numbers[address] >= self._most_per_address and not self._make_room(address):
            return False
        if len(self._address) >= self._most and not self._make_room():
            return False
        self._address[connection] = address
        self._numbers[address] += 1
        self._waiting[connection] = None
        return True

    def busy(self, connection: C) -> None:
        """Notes that a request of the connection is under way."""
        self._waiting.pop(connection, None)

    def waits(self, connection: C) -> None:
        """Notes that the connection waits; one that waits already keeps its place."""
        if connection in self._address:
            self._waiting.setdefault(connection)

    def leave(self, connection: C) -> None:
        address = self._address.pop(connection, None)
        if address is not None:
            self._waiting.pop(connection, None)
            self._numbers[address] -= 1
            if not self._numbers[address]:
                del self._numbers[address]

    def _make_room(self, address: str | None = None) -> bool:
        for connection in self._waiting:
            if address is None or self._address[connection] == address:
                self.leave(connection)
                self._cut(connection)
                return True
        return False
