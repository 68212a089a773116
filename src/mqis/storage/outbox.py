"""What one transaction adds to the outbox: numbered at once, written together at the end.

Most transactions are a group of changes with a record each, so the counter is read once and
written once, and the rows go to the database in one call.
"""

from __future__ import annotations

from mqis.protocol.errors import StorageError
from mqis.storage.session import Connection
from mqis.wire.journal import JournalRecord, encode_record

#: How many records the transaction has, and how many of them the database has.
Mark = tuple[int, int]


class OutboxTail:
    """The records of a transaction behind those that were there when it began."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[tuple[int, bytes]] = []
        self._written = 0
        self._before: int | None = None

    def append(self, record: JournalRecord) -> int:
        if self._before is None:
            self._before = self._last()
        lsn = self._before + len(self._rows) + 1
        self._rows.append((lsn, encode_record(lsn, record)))
        return lsn

    def _last(self) -> int:
        """The counter outlives the rows: a number that was trimmed does not come again."""
        rows = self._connection.run("SELECT lsn FROM outbox_last")
        if len(rows) != 1:
            raise StorageError(
                f"the outbox has {len(rows)} counters instead of one; restore from an export"
            )
        return int(rows[0][0])

    def write(self) -> None:
        if self._written == len(self._rows):
            return
        waiting = self._rows[self._written :]
        self._connection.run_many("INSERT INTO outbox (lsn, record) VALUES (?, ?)", waiting)
        self._connection.run("UPDATE outbox_last SET lsn=?", (waiting[-1][0],))
        self._written = len(self._rows)

    def mark(self) -> Mark:
        return len(self._rows), self._written

    def back_to(self, mark: Mark) -> None:
        """As it was at ``mark``, to which the database goes back as well."""
        length, self._written = mark
        del self._rows[length:]
