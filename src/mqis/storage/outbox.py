"""The outbox in a database: a transaction numbers its records at once and writes them together.

Most transactions are a group of changes with a record each. So the counter is read and written
once, and a row holds a run of consecutive records, encoded as in the journal, under the number of
its last one. That costs the writer a third of what a row for each record would.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.errors import DamagedStore
from mqis.storage.database_session import DatabaseConnection
from mqis.texts import counted
from mqis.wire.errors import WireError
from mqis.wire.journal import JournalRecord, encode_record
from mqis.wire.journal.layout import split_records

#: The size at which a row is full.
ROW_BYTES = 1 << 16
#: The number of rows read at once.
_PAGE = 32

#: The number of records in the transaction, and of those already in the database.
Mark = tuple[int, int]
Row = tuple[int, bytes]


class OutboxTail:
    """The records that a transaction appends to the outbox."""

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._records: list[bytes] = []
        self._written = 0
        self._before: int | None = None

    def append(self, record: JournalRecord) -> int:
        if self._before is None:
            self._before = last_lsn(self._connection)
        lsn = self._before + len(self._records) + 1
        self._records.append(encode_record(lsn, record))
        return lsn

    def write(self) -> None:
        if self._written == len(self._records):
            return
        for row in self._rows():
            self._connection.run("INSERT INTO outbox (lsn, records) VALUES (?, ?)", row)
        self._written = len(self._records)
        self._connection.run("UPDATE outbox_last SET lsn=?", (self._number(self._written),))

    def _rows(self) -> Iterator[Row]:
        first, size = self._written, 0
        for index in range(first, len(self._records)):
            size += len(self._records[index])
            if size >= ROW_BYTES or index == len(self._records) - 1:
                yield self._number(index + 1), b"".join(self._records[first : index + 1])
                first, size = index + 1, 0

    def _number(self, count: int) -> int:
        assert self._before is not None
        return self._before + count

    def mark(self) -> Mark:
        return len(self._records), self._written

    def back_to(self, mark: Mark) -> None:
        """Returns to the state at ``mark``, as the database does."""
        length, self._written = mark
        del self._records[length:]


def last_lsn(connection: DatabaseConnection) -> int:
    """The number of the newest record, kept apart from the rows so that none is used twice."""
    rows = connection.run("SELECT lsn FROM outbox_last")
    if len(rows) != 1:
        raise DamagedStore(f"the outbox has {counted(len(rows), 'counter')} instead of one")
    return int(rows[0][0])


def restart_outbox(connection: DatabaseConnection, last: int) -> None:
    """Drops what waits for the journal; the next record has the number behind ``last``."""
    connection.run("DELETE FROM outbox")
    connection.run("UPDATE outbox_last SET lsn=?", (last,))


def split_row(row: Row) -> list[tuple[int, bytes]]:
    """Splits a row into records with their numbers; checks that they are intact and without gap."""
    try:
        found = split_records(row[1])
        lsns = [lsn for lsn, _ in found]
        if lsns != list(range(row[0] - len(found) + 1, row[0] + 1)) or not lsns:
            raise ValueError(f"it does not end with record {row[0]}")
    except (WireError, ValueError, TypeError) as error:
        raise DamagedStore(f"row {row[0]} of the outbox is damaged: {error}") from error
    return found


def read_outbox(connection: DatabaseConnection, after: int, limit: int) -> list[tuple[int, bytes]]:
    """The encoded records after ``after``."""
    sql = f"SELECT lsn, records FROM outbox WHERE lsn>? ORDER BY lsn LIMIT {_PAGE}"
    found: list[tuple[int, bytes]] = []
    while len(found) < limit and (rows := connection.run(sql, (after,))):
        for row in rows:
            found += [record for record in split_row(row) if record[0] > after]
        after = rows[-1][0]
    return found[:limit]


def trim_outbox(connection: DatabaseConnection, through: int) -> None:
    """Deletes records up to ``through``: whole rows, and the first part of the next row."""
    connection.run("DELETE FROM outbox WHERE lsn<=?", (through,))
    sql = "SELECT lsn, records FROM outbox ORDER BY lsn LIMIT 1"
    for row in connection.run(sql):
        left = [(lsn, record) for lsn, record in split_row(row) if lsn > through]
        rest = b"".join(record for _, record in left)
        if len(rest) < len(row[1]):
            connection.run("UPDATE outbox SET records=? WHERE lsn=?", (rest, row[0]))
