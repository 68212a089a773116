"""Open connections, limited by address and in total.

A connection waits while no answer is being made for it: for its request, or for its client to read.
If there is no room for a new connection, one that waits is closed, so that silent connections do
not keep others out, not even from the same address, as all are on loopback. It is one of the
address that has most of them, and there the one that has waited longest: an address with many
connections thus loses to one with few.

Where callers log on, a connection gets a name then. Connections with a name are never closed for
others, and some places are kept for them, since every connection begins without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mqis.runtime.peers import source_of

C = TypeVar("C", bound=Hashable)


class Crowd(Generic[C]):
    """The open connections. ``cut`` closes one at once; it is already removed then."""

    def __init__(
        self,
        most: int,
        most_per_address: int,
        cut: Callable[[C], None],
        *,
        kept_for_named: int = 0,
        spares_busy: bool = True,
        exempt: Callable[[str], bool] = lambda _peer: False,
    ) -> None:
        """``exempt`` peers have no limit of their address. Without ``spares_busy``, a connection
        that is busy goes as well where none waits."""
        self._most = most
        self._most_per_address = most_per_address
        self._most_strangers = most - kept_for_named
        self._cut = cut
        self._spares_busy = spares_busy
        self._exempt = exempt
        self._address: dict[C, str] = {}
        self._numbers: Counter[str] = Counter()
        self._named: set[C] = set()
        #: Those without a name, by address, in the order in which they began to wait.
        self._waiting: dict[str, dict[C, None]] = {}
        #: Those without a name that are busy, in the order in which they began to be.
        self._busy: dict[C, None] = {}

    def __len__(self) -> int:
        return len(self._address)

    def enter(self, connection: C, peer: str) -> bool:
        """Adds a connection as waiting; returns whether there is room for it."""
        address = source_of(peer)
        crowded = self._numbers[address] >= self._most_per_address and not self._exempt(peer)
        if crowded and not self._make_room(address):
            return False
        if self._is_full and not self._make_room():
            return False
        self._address[connection] = address
        self._numbers[address] += 1
        self._wait(connection, address)
        return True

    @property
    def _is_full(self) -> bool:
        strangers = len(self._address) - len(self._named)
        return len(self._address) >= self._most or strangers >= self._most_strangers

    def name(self, connection: C) -> None:
        """Notes that a caller with a name has logged on over the connection."""
        if connection in self._address:
            self._forget_state(connection)
            self._named.add(connection)

    def busy(self, connection: C) -> None:
        """Notes that a request of the connection is under way."""
        if connection in self._address and connection not in self._named:
            self._forget_state(connection)
            self._busy[connection] = None

    def waits(self, connection: C) -> None:
        """Notes that the connection waits; one that waits already keeps its place."""
        address = self._address.get(connection)
        if address is not None and connection not in self._named:
            self._busy.pop(connection, None)
            self._wait(connection, address)

    def leave(self, connection: C) -> None:
        if connection not in self._address:
            return
        self._forget_state(connection)
        self._named.discard(connection)
        address = self._address.pop(connection)
        self._numbers[address] -= 1
        if not self._numbers[address]:
            del self._numbers[address]

    def _wait(self, connection: C, address: str) -> None:
        self._waiting.setdefault(address, {}).setdefault(connection)

    def _forget_state(self, connection: C) -> None:
        self._busy.pop(connection, None)
        address = self._address[connection]
        waiting = self._waiting.get(address)
        if waiting is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._waiting[address]

    def _make_room(self, address: str | None = None) -> bool:
        """Closes a connection, of an address or of any; returns False if none may be closed."""
        found = self._victim(address)
        if found is None:
            return False
        self.leave(found)
        self._cut(found)
        return True

    def _victim(self, address: str | None) -> C | None:
        if address is None:
            waiting = max(self._waiting.values(), key=len, default={})
        else:
            waiting = self._waiting.get(address, {})
        if waiting or self._spares_busy:
            return next(iter(waiting), None)
        return next((c for c in self._busy if address in (None, self._address[c])), None)
