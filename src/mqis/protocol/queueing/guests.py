"""Connections that others opened, and who gives way when there are too many.

Anybody can connect to a queue port, and the first packet of a session only claims a GUID, which the
directory tells to everybody. A signed message is the first thing that proves something. So a
connection passes through three stages, and those further on never give way to those before:

    WAITING   no first packet yet
    SESSION   claims to be a server of the directory
    PROVED    a message of it was taken

One address has a few waiting connections, of which the oldest gives way to the next, and a bounded
number in all. When everything is taken, a newcomer gets the place of a connection of the address
that holds most in the same stage, if that is more than its own address holds. Whoever has many
connections thus loses to whoever has few, and servers that reconnect find room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from mqis.protocol.queueing.limits import Limits

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
    """Who is there. ``arrive`` and ``begin`` name a connection to close, if one has to be."""

    def __init__(self, limits: Limits) -> None:
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
        """Whether a new connection of ``source`` may stay, and which one gives way to it."""
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
        """Whether a waiting connection may have a session, and which one gives way to it."""
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
        """A message of this connection was taken. Own connections are no guests."""
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
        """Which connection gives way when too much is buffered: ``held`` is the bytes of each.

        ``connection`` itself, unless another address whose connections have proved nothing holds
        more than its own.
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
