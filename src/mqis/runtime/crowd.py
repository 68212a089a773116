"""Open connections, bounded for each address and in all.

A connection waits while no answer is made for it: for its request, or for its reader. Where there
is no room, the one that has waited for longest is cut off for the newcomer, so that silent
connections keep nobody out: not even those who come from the same address, as all do on loopback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mqis.runtime.peers import source_of

C = TypeVar("C", bound=Hashable)


class Crowd(Generic[C]):
    """``cut`` ends a connection at once; it has left already then."""

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
        """Whether there is room for it; it waits then."""
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
        """A request of it is under way."""
        self._waiting.pop(connection, None)

    def waits(self, connection: C) -> None:
        """It waits again; one that did already keeps its place."""
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
