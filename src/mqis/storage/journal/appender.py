"""From the outbox of a store to the files of a journal, idempotent by lsn.

The outbox is trimmed only when the files are on the disk, so a crash in between leaves records in
both. These are compared before anything is added: equal ones are there already, a damaged end is
written again, and one that differs means that store and journal do not belong together.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.reader import load_behind
from mqis.storage.journal.snapshot import write_snapshot
from mqis.wire.journal import Whole, encode_record

#: How many records are read from the outbox at once.
BATCH = 2000


@runtime_checkable
class EncodedOutbox(Protocol):
    """A view that has the records as bytes already."""

    def encoded_outbox(self, after: int, limit: int) -> list[tuple[int, bytes]]: ...


class Appender:
    """Moves records, one caller at a time; what is committed meanwhile waits in the outbox."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._turn = Lock()
        #: Up to here the outbox is known to agree with the journal.
        self._settled = 0
        self._trimmed = 0

    def copy(self) -> int:
        """Append what waits, not yet on the disk; how many records it was."""
        with self._turn, self._store.read() as view:
            return self._copy(view)

    def flush(self) -> int:
        """Append what waits, put it on the disk, and trim the outbox; how many records it was."""
        with self._turn:
            with self._store.read() as view:
                copied = self._copy(view)
            self._flush()
            return copied

    def snapshot(self) -> Path:
        """Write the directory as it is behind the last record, where a new segment begins."""
        with self._turn:
            with self._store.read() as view:
                self._copy(view)
                self._flush_files()
                path = write_snapshot(view, self._journal.directory, self._journal.last_lsn)
            self._journal.seal()
            self._flush()
            return path

    def _copy(self, view: View) -> int:
        copied = 0
        while rows := _waiting(view, self._settled):
            known = [row for row in rows if row[0] <= self._journal.last_lsn]
            if known:
                self._compare(known)
            new = [row for row in rows if row[0] > self._journal.last_lsn]
            self._journal.append(new)
            self._settled = rows[-1][0]
            copied += len(new)
        return copied

    def _compare(self, rows: list[tuple[int, bytes]]) -> None:
        """What is in the outbox and should be in the files; a damaged end is cut off."""
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
                raise self._error(f"record {lsn} is another one than the store's")

    def _error(self, fault: str) -> StorageError:
        return StorageError(
            f"journal {self._journal.directory}: {fault}; nothing is copied, and the store keeps "
            "its records: move this directory away, or bring the one that belongs to the store"
        )

    def _flush(self) -> None:
        self._flush_files()
        through = min(self._journal.durable_lsn, self._settled)
        if through > self._trimmed:
            with self._store.write() as transaction:
                transaction.trim_outbox(through)
            self._trimmed = through

    def _flush_files(self) -> None:
        try:
            self._journal.sync()
        finally:  # where that failed, the journal has gone back
            self._settled = min(self._settled, self._journal.last_lsn)


def copy(store: Store, journal: Journal) -> int:
    """Move everything that waits, durably; how many records were new to the journal."""
    return Appender(store, journal).flush()


def _waiting(view: View, after: int) -> list[tuple[int, bytes]]:
    """The next records as they go to the files."""
    if isinstance(view, EncodedOutbox):
        return view.encoded_outbox(after, BATCH)
    return [(lsn, encode_record(lsn, record)) for lsn, record in view.outbox(after, BATCH)]
