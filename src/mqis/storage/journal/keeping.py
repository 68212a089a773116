"""Regular snapshots and seals, and the deletion of older history.

A journal contains changes, not the directory at its start: the first snapshot has that. Later ones
let history start later, so that earlier segments may be deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path
from threading import Lock
from time import monotonic

from mqis.protocol.ports import Store
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.files import explained, flush_directory, segments, snapshots
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.reader import first_lsn


class Keeper:
    """An ``Appender`` that takes a snapshot at the start and after ``every`` records.

    ``keep`` is the number of snapshots kept, with the segments after the oldest of them; 0: all.
    ``seal_s`` is the number of seconds after which a segment ends, so that it gets sealed; 0: it
    ends only when it is full or a snapshot is taken. With ``is_archived``, a file is deleted only
    after that has returned true for it.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        *,
        every: int,
        keep: int,
        seal_s: float = 0,
        is_archived: Callable[[Path], bool] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._journal = journal
        self._appender = Appender(store, journal)
        self._every = every
        self._keep = keep
        self._snapshot_lsn = max(snapshots(journal.directory), default=None)
        self._seal_s = seal_s
        self._is_archived = is_archived
        self._retaining = Lock()
        self._clock = clock
        self._sealed_s = clock()

    def copy(self) -> int:
        return self._appender.copy()

    def flush(self) -> int:
        copied = self._appender.flush()
        if self._is_due():
            self._appender.snapshot()
            self._snapshot_lsn = max(snapshots(self._journal.directory))
            self._sealed_s = self._clock()
            self.prune()
        elif self._seal_s and self._clock() - self._sealed_s >= self._seal_s:
            self._appender.seal()
            self._sealed_s = self._clock()
        return copied

    def prune(self) -> None:
        """Deletes what need not be kept any more; any thread may call this."""
        if self._keep:
            with self._retaining:
                retain(self._journal.directory, self._keep, self._is_archived)

    def _is_due(self) -> bool:
        if self._snapshot_lsn is not None:
            return self._journal.last_lsn - self._snapshot_lsn >= self._every
        with self._store.read() as view:  # a new server has no directory yet
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


def retain(
    directory: Path, keep_snapshots: int, is_archived: Callable[[Path], bool] | None = None
) -> list[Path]:
    """Deletes what is expendable, oldest first so that no gap arises, and returns the files.

    Stops at the first file that is not archived, if there is an archive.
    """
    doomed = expendable(directory, keep_snapshots)
    if is_archived is not None:
        doomed = list(takewhile(is_archived, doomed))
    for path in doomed:
        with explained(path):
            path.unlink()
    if doomed:
        with explained(directory):
            flush_directory(directory)
    return doomed
