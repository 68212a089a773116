"""Remembers for a moment where computers stand, so that a read by path need not search first."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from mqis.wire.ldap.names import DistinguishedName

#: Seconds for which a place is believed; one that has nothing any more is searched for at once.
BELIEVED_S: Final = 30.0
MOST_COMPUTERS: Final = 10_000


class ComputerPlaces:
    """The names of the entries of computers, by the names that callers used for them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._places: dict[str, tuple[float, DistinguishedName]] = {}

    def get(self, computer: str) -> DistinguishedName | None:
        found = self._places.get(computer.lower())
        return found[1] if found is not None and self._clock() < found[0] else None

    def put(self, computer: str, place: DistinguishedName) -> None:
        if len(self._places) >= MOST_COMPUTERS:
            self._places.clear()
        self._places[computer.lower()] = self._clock() + BELIEVED_S, place
