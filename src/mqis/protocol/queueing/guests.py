"""Incoming connections, and the choice of one to evict when there are too many.

Any machine can connect to a queue port, and the first packet of a session only claims a GUID, which
everyone can read in the directory. Only a signed message proves an identity. So a connection passes
through three stages, and one of a later stage is never evicted for one of an earlier stage:

    WAITING   no first packet yet
    SESSION   claims to be a server of the directory
    PROVED    a message of it was delivered

An address has a few waiting connections, the oldest of which is evicted for the next, and a limit
on all. When no room is left, a new connection replaces one of the address that holds most in the
same stage, if that is more than its own address holds. An address with many connections thus loses
to one with few, and servers that reconnect find room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from mqis.protocol.queueing.limits import QueueingLimits

NO_ROOM = "too many sessions"
GAVE_WAY = "gave way to another connection: too many of this address"


class Stage(IntEnum):
    WAITING = 0
    SESSION = 1
    PROVED = 2


@dataclass(slots=True)
class _Source:
    """The connections of one address, by stage, oldest first."""

    stages: tuple[dict[int, None], dict[int, None], dict[int, None]] = field(
        default_factory=lambda: ({}, {}, {})
    )

    @property
    def connections(self) -> int:
        return sum(map(len, self.stages))

    @property
    def sessions(self) -> int:
        return len(self.stages[Stage.SESSION]) + len(self.stages[Stage.PROVED])


class Guests:
    """The incoming connections. ``arrive`` and ``begin`` name a connection to evict, if needed."""

    def __init__(self, limits: QueueingLimits) -> None:
        self._limits = limits
        self._sources: dict[str, _Source] = {}
        self._where: dict[int, tuple[str, Stage]] = {}
        self._counts: Counter[Stage] = Counter()

    def __len__(self) -> int:
        return len(self._where)

    @property
    def sessions(self) -> int:
        return self._counts[Stage.SESSION] + self._counts[Stage.PROVED]

    def arrive(self, source: str) -> tuple[bool, int | None]:
        """Returns whether a new connection of ``source`` may stay, and the one to evict for it."""
        limits, own = self._limits, self._sources.get(source, _Source())
        waiting = own.stages[Stage.WAITING]
        full = own.connections >= limits.max_connections_per_address
        if len(waiting) >= limits.max_waiting_per_address or (full and waiting):
            return True, next(iter(waiting))
        if full:
            return False, None
        if len(self) < limits.max_connections:
            return True, None
        victim = self._greediest(Stage.WAITING, own.connections)
        return victim is not None, victim

    def add(self, connection: int, source: str) -> None:
        self._put(connection, source, Stage.WAITING)

    def begin(self, connection: int) -> tuple[bool, int | None]:
        """Returns whether a waiting connection may have a session, and the one to evict for it."""
        victim = None
        source, _ = self._where[connection]
        if self.sessions >= self._limits.max_sessions:
            victim = self._greediest(Stage.SESSION, self._sources[source].sessions)
            if victim is None:
                return False, None
        self.forget(connection)
        self._put(connection, source, Stage.SESSION)
        return True, victim

    def prove(self, connection: int) -> None:
        """Notes that a message of a connection was delivered; ignores outgoing connections."""
        source, stage = self._where.get(connection, ("", Stage.PROVED))
        if stage is Stage.SESSION:
            self.forget(connection)
            self._put(connection, source, Stage.PROVED)

    def forget(self, connection: int) -> None:
        source, stage = self._where.pop(connection, ("", None))
        if stage is None:
            return
        kept = self._sources[source]
        del kept.stages[stage][connection]
        self._counts[stage] -= 1
        if not kept.connections:
            del self._sources[source]

    def hoarder(self, connection: int, held: Mapping[int, int]) -> int:
        """The connection to evict when too much is buffered; ``held`` has the bytes of each.

        It is ``connection`` itself, unless the unproved connections of another address hold more
        than those of its own.
        """
        bytes_of: Counter[str] = Counter()
        for number, size in held.items():
            source, stage = self._where.get(number, ("", Stage.PROVED))
            if stage is not Stage.PROVED:
                bytes_of[source] += size
        own, _ = self._where.get(connection, ("", Stage.PROVED))
        greediest = max(bytes_of, key=bytes_of.__getitem__, default=own)
        if bytes_of[greediest] <= bytes_of[own]:
            return connection
        unproved = [*self._sources[greediest].stages[0], *self._sources[greediest].stages[1]]
        return max(unproved, key=lambda number: held.get(number, 0))

    def _put(self, connection: int, source: str, stage: Stage) -> None:
        self._sources.setdefault(source, _Source()).stages[stage][connection] = None
        self._where[connection] = source, stage
        self._counts[stage] += 1

    def _greediest(self, stage: Stage, more_than: int) -> int | None:
        """The oldest connection in this stage of the address that has most of them."""
        held = max((s.stages[stage] for s in self._sources.values()), key=len, default={})
        return next(iter(held)) if len(held) > more_than else None
