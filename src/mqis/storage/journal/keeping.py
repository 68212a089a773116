"""Snapshots in time, and an end for what lies before those that are kept.

A journal tells what changed, not what was there when it began: the first snapshot does. Later ones
let history begin later, so that the segments before them may go.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from mqis.protocol.ports import Store
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.files import explained, flush_directory, segments, snapshots
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.reader import first_lsn


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


def expendable(directory: Path, keep_snapshots: int) -> list[Path]:
    """Returns the files that lie before the oldest snapshot to keep, oldest first.

    With fewer snapshots than are to be kept there are none: history would lose its start.
    """
    if keep_snapshots < 1:
        raise ValueError("a journal without a snapshot keeps everything; keep at least one")
    taken = snapshots(directory)
    if len(taken) < keep_snapshots:
        return []
    kept = list(taken)[-keep_snapshots]
    present = list(segments(directory).values())
    before = []
    for path, following in pairwise(present):
        if first_lsn(following) > kept + 1:
            break
        before.append(path)
    return before + [path for lsn, path in taken.items() if lsn < kept]


def retain(directory: Path, keep_snapshots: int) -> list[Path]:
    """Deletes what is expendable, oldest first so that no gap arises, and returns the files."""
    doomed = expendable(directory, keep_snapshots)
    for path in doomed:
        with explained(path):
            path.unlink()
    if doomed:
        with explained(directory):
            flush_directory(directory)
    return doomed
