"""The index rows that a transaction adds, written together.

An object has a few of them. A statement for each would be slow, and so is one with several rows:
SQLite prepares to undo it alone. Sorted, rows that lie side by side in the index are written side
by side.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.database_session import DatabaseConnection
from mqis.wire.mqds.propid import PropId

#: The most rows that wait; an import adds a million in one transaction.
MAX_WAITING = 8_192

_INSERT = "INSERT INTO lookup_keys (object_type, propid, key, id) VALUES (?, ?, ?, ?)"
_DELETE = "DELETE FROM lookup_keys WHERE object_type=? AND propid=? AND key=? AND id=?"

_KeyRow = tuple[int, int, bytes, bytes]


class KeyRows:
    """Rows that wait. Whoever reads the index, or sets a savepoint, writes them before."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._waiting: list[_KeyRow] = []

    def add(self, obj: DirectoryObject, keys: Iterable[tuple[PropId, bytes]]) -> None:
        kind, raw = int(obj.type), obj.id.raw
        self._waiting += [(kind, propid, key, raw) for propid, key in keys]
        if len(self._waiting) > MAX_WAITING:
            self.write()

    def drop(self, obj: DirectoryObject, keys: Iterable[tuple[PropId, bytes]]) -> None:
        dropped = list(keys)
        if dropped:
            self.write()
        for propid, key in dropped:
            self._connection.run(_DELETE, (obj.type, propid, key, obj.id.raw))

    def write(self) -> None:
        if self._waiting:
            waiting, self._waiting = sorted(self._waiting), []
            self._connection.run_many(_INSERT, waiting)

    def forget(self) -> None:
        """Drops what waits, because a savepoint before it is rolled back."""
        self._waiting = []
