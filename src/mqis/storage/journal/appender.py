"""The appender: it moves records from a store's outbox to the journal's files, idempotently by lsn.

The outbox is trimmed only after the files are flushed, so a crash in between leaves records in
both. Those are compared before anything is appended: equal ones are skipped, a damaged end is
written again, and a different one means that store and journal do not belong together.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.storage.journal.belonging import remember_record
from mqis.storage.journal.checking import copied_lsn
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.journal_files import write_snapshot
from mqis.storage.journal.journal_reader import load_behind
from mqis.wire.journal import Whole, encode_record

#: The number of records read from the outbox at once.
BATCH = 2000


@runtime_checkable
class EncodedOutbox(Protocol):
    """A view that can return the records already encoded."""

    def encoded_outbox(self, after: int, limit: int) -> list[tuple[int, bytes]]: ...


class Appender:
    """The appender of one journal; records committed while it works wait in the outbox."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._lock = Lock()
        #: Up to this lsn the outbox is known to agree with the journal.
        self._settled = 0
        self._trimmed = 0
        #: The newest record that was settled, encoded.
        self._newest: tuple[int, bytes] = (0, b"")

    def copy(self) -> int:
        """Appends waiting records without flushing; returns their number."""
        with self._lock, self._store.read() as view:
            return self._copy(view)

    def flush(self) -> int:
        """Appends waiting records, flushes them and trims the outbox; returns their number."""
        with self._lock:
            with self._store.read() as view:
                copied = self._copy(view)
            self._flush()
            return copied

    def snapshot(self) -> Path:
        """Writes a snapshot of the directory at the last record; the next one begins a segment."""
        with self._lock:
            with self._store.read() as view:
                self._copy(view)
                self._flush_files()
                # A store whose journal was moved away has given out numbers before.
                lsn = max(self._journal.last_lsn, copied_lsn(view))
                path = write_snapshot(view, self._journal.directory, lsn)
            self._journal.seal()
            self._flush()
            return path

    def seal(self) -> None:
        """Ends the segment; the next record begins another one, whose header seals it."""
        with self._lock:
            self._journal.seal()

    def _copy(self, view: View) -> int:
        # Ending a segment flushes it too. If that failed, the journal has cut off its last records.
        self._settled = min(self._settled, self._journal.last_lsn)
        copied = 0
        while rows := _waiting(view, self._settled):
            known = [row for row in rows if row[0] <= self._journal.last_lsn]
            if known:
                self._compare(known)
            new = [row for row in rows if row[0] > self._journal.last_lsn]
            self._journal.append(new)
            self._settled = rows[-1][0]
            self._newest = rows[-1]
            copied += len(new)
        return copied

    def _compare(self, rows: list[tuple[int, bytes]]) -> None:
        """Compares waiting records with the files; truncates a damaged end."""
        held: dict[int, bytes] = {}
        for segment in load_behind(self._journal.directory, rows[0][0] - 1):
            for entry in segment.entries():
                if isinstance(entry, Whole):
                    held[entry.lsn] = segment.bytes_of(entry)
        for lsn, data in rows:
            if lsn not in held:
                if not self._journal.cut(lsn):
                    raise self._error(f"record {lsn} is damaged")
                return
            if held[lsn] != data:
                raise self._error(f"record {lsn} differs from the store's")

    def _error(self, fault: str) -> StorageError:
        return StorageError(
            f"journal {self._journal.directory}: {fault}; nothing is copied, and the store keeps "
            "its records: move this directory away, or restore the one that belongs to the store"
        )

    def _flush(self) -> None:
        self._flush_files()
        through = min(self._journal.durable_lsn, self._settled)
        if through > self._trimmed:
            with self._store.write() as transaction:
                transaction.trim_outbox(through)
                if self._newest[0] == through:
                    remember_record(transaction, *self._newest)
            self._trimmed = through

    def _flush_files(self) -> None:
        try:
            self._journal.sync()
        finally:  # after a failure the journal has truncated the file
            self._settled = min(self._settled, self._journal.last_lsn)


def copy(store: Store, journal: Journal) -> int:
    """Moves all waiting records and flushes; returns how many were new to the journal."""
    return Appender(store, journal).flush()


def _waiting(view: View, after: int) -> list[tuple[int, bytes]]:
    """The next records, encoded."""
    if isinstance(view, EncodedOutbox):
        return view.encoded_outbox(after, BATCH)
    return [(lsn, encode_record(lsn, record)) for lsn, record in view.outbox(after, BATCH)]
