"""The accounts that objects count for: who created each of them (``security.max_owned``).

An owner can give an object away, and then it would no longer count for anybody who is limited. So
the account that created an object is kept beside it, in a table of this server alone: replication
has no place for it. A server knows the creator of what its own callers create, forwarded to another
server or not. Every other object counts for the owner that its descriptor named when it came first,
whoever owns it later. A deleted object counts for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.directory.indexing import account_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.database_session import DatabaseConnection
from mqis.storage.row_conversion import hex_id
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sid import Sid

#: The most rows that wait; an import adds a million in one transaction.
MAX_WAITING = 8_192

_GUID_BYTES = 16
_INSERT = "INSERT INTO creators (object_type, id, account) VALUES (?, ?, ?) ON CONFLICT"
_FIRST = f"{_INSERT} DO NOTHING"
_KNOWN = f"{_INSERT} (object_type, id) DO UPDATE SET account=excluded.account"
_DELETE = "DELETE FROM creators WHERE object_type=? AND id=?"


class CreatorRows:
    """Rows of a transaction, some of which wait, as ``KeyRows`` does and for the same reason."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._waiting: dict[tuple[int, bytes], bytes] = {}

    def add(self, obj: DirectoryObject) -> None:
        """Counts a new object for its owner, unless its creator is known already."""
        account = account_of(obj)
        if account is not None:
            self._waiting[int(obj.type), obj.id.raw] = account
            if len(self._waiting) > MAX_WAITING:
                self.write()

    def put(self, object_type: ObjectType, id_: Guid, account: bytes) -> None:
        self._waiting.pop((int(object_type), id_.raw), None)
        self._connection.run(_KNOWN, (object_type, id_.raw, account))

    def drop(self, obj: DirectoryObject) -> None:
        self._waiting.pop((int(obj.type), obj.id.raw), None)
        self._connection.run(_DELETE, (obj.type, obj.id.raw))

    def write(self) -> None:
        if self._waiting:
            waiting, self._waiting = sorted(self._waiting.items()), {}
            self._connection.run_many(_FIRST, [(*key, account) for key, account in waiting])

    def forget(self) -> None:
        """Drops what waits, because a savepoint before it is rolled back."""
        self._waiting = {}


def creator_faults(connection: DatabaseConnection) -> Iterator[str]:
    """Yields rows whose identifier or account is none.

    A row without an object is sound: the object may be on its way.
    """
    for id_, account in connection.run("SELECT id, account FROM creators ORDER BY id"):
        try:
            Sid.from_bytes(account)
        except WireError as error:
            yield f"the creator of object {hex_id(id_)} is no account: {error}"
        if len(id_) != _GUID_BYTES:
            yield f"the creator of an object: {hex_id(id_)} is no identifier"
