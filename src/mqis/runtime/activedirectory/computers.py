"""Remembers computers for a moment, so that a read by path need not search first.

A queue needs the names of its computer, too, and most queues of a search have the same few.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from mqis.protocol.activedirectory.view import NameKey
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.ldap.names import DistinguishedName

#: Seconds; a computer that is not where it was is searched for at once.
BELIEVED_S: Final = 30.0
MOST_COMPUTERS: Final = 10_000


class KnownComputers:
    """Entries of computers, by the names that callers used for them and by their places."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._entries: dict[str | NameKey, tuple[float, LdapEntry]] = {}

    def named(self, name: str) -> LdapEntry | None:
        return self._get(name.lower())

    def at(self, place: DistinguishedName) -> LdapEntry | None:
        return self._get(place.key)

    def _get(self, key: str | NameKey) -> LdapEntry | None:
        found = self._entries.get(key)
        return found[1] if found is not None and self._clock() < found[0] else None

    def put(self, computer: LdapEntry, name: str = "") -> None:
        """Remembers a computer, and that a caller means it with ``name``."""
        if len(self._entries) >= MOST_COMPUTERS:
            self._entries.clear()
        until = self._clock() + BELIEVED_S
        self._entries[computer.distinguished_name.key] = until, computer
        if name:
            self._entries[name.lower()] = until, computer
