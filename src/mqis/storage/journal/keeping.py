"""Snapshots in time, and an end for what lies before those that are kept.

A journal tells what changed, not what was there when it began: the first snapshot does. Later ones
let history begin later, so that the segments before them may go.
"""

from __future__ import annotations

from mqis.protocol.ports import Store
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.files import snapshots
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.retention import retain


class Keeper:
    """An ``Appender`` that takes a snapshot at first and after ``every`` records.

    ``keep`` is how many snapshots stay, with the segments behind the oldest of them; 0: all.
    """

    def __init__(self, store: Store, journal: Journal, *, every: int, keep: int) -> None:
        self._store = store
        self._journal = journal
        self._appender = Appender(store, journal)
        self._every = every
        self._keep = keep
        self._taken = max(snapshots(journal.directory), default=None)

    def copy(self) -> int:
        return self._appender.copy()

    def flush(self) -> int:
        copied = self._appender.flush()
        if self._is_due():
            self._appender.snapshot()
            self._taken = self._journal.last_lsn
            if self._keep:
                retain(self._journal.directory, self._keep)
        return copied

    def _is_due(self) -> bool:
        if self._taken is not None:
            return self._journal.last_lsn - self._taken >= self._every
        with self._store.read() as view:  # a new server has nothing yet to tell
            return any(view.partitions())
