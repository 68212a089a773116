"""Regular snapshots, and the deletion of older history.

A journal contains changes, not the directory at its start: the first snapshot has that. Later ones
let history start later, so that earlier segments may be deleted.
"""

from __future__ import annotations

from mqis.protocol.ports import Store
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.files import snapshots
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.retention import retain


class Keeper:
    """An ``Appender`` that takes a snapshot at the start and after ``every`` records.

    ``keep`` is the number of snapshots kept, with the segments after the oldest of them; 0: all.
    """

    def __init__(self, store: Store, journal: Journal, *, every: int, keep: int) -> None:
        self._store = store
        self._journal = journal
        self._appender = Appender(store, journal)
        self._every = every
        self._keep = keep
        self._snapshot_lsn = max(snapshots(journal.directory), default=None)

    def copy(self) -> int:
        return self._appender.copy()

    def flush(self) -> int:
        copied = self._appender.flush()
        if self._is_due():
            self._appender.snapshot()
            self._snapshot_lsn = self._journal.last_lsn
            if self._keep:
                retain(self._journal.directory, self._keep)
        return copied

    def _is_due(self) -> bool:
        if self._snapshot_lsn is not None:
            return self._journal.last_lsn - self._snapshot_lsn >= self._every
        with self._store.read() as view:  # a new server has no directory yet
            return any(view.partitions())
