"""Regular snapshots and seals, and the deletion of older history.

A journal contains changes, not the directory at its start: the first snapshot has that. Later ones
let history start later, so that earlier segments may be deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic

from mqis.files import flush_directory
from mqis.protocol.ports import Store
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.journal_files import explained, segments, snapshots
from mqis.storage.journal.journal_reader import first_lsn


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
        #: False after everything was deleted that may be; an earlier process may have been killed.
        self._unpruned = True
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
            self._unpruned = True  # the segment behind the snapshot has not begun
            return copied
        if self._unpruned and self._journal.last_lsn > (self._snapshot_lsn or 0):
            self.prune()
        if self._seal_s and self._clock() - self._sealed_s >= self._seal_s:
            self._appender.seal()
            self._sealed_s = self._clock()
        return copied

    def prune(self) -> None:
        """Deletes what need not be kept any more; any thread may call this."""
        with self._retaining:
            self._unpruned = True
            if self._keep:
                retain(self._journal.directory, self._keep, self._is_archived)
            self._unpruned = False

    def _is_due(self) -> bool:
        if self._snapshot_lsn is not None:
            return self._journal.last_lsn - self._snapshot_lsn >= self._every
        with self._store.read() as view:  # a new server has no directory yet
            return any(view.partitions())


def expendable(directory: Path, keep_snapshots: int) -> list[list[Path]]:
    """Returns the files before each snapshot at which history may begin, the newest of them first.

    That is the oldest snapshot to keep, or an older one, if a segment begins behind it: history
    never begins in the middle of a segment. Each list is in the order in which it is deleted.
    """
    if keep_snapshots < 1:
        raise ValueError("a journal without a snapshot keeps everything; keep at least one")
    taken = snapshots(directory)
    # A crash can leave a segment without records: the next one has the same first number.
    present = [(first_lsn(path), path) for path in segments(directory).values()]
    begun = {lsn - 1 for lsn, _ in present}
    beginnings = [lsn for lsn in list(taken)[: 1 - keep_snapshots or None] if lsn in begun]
    return [
        [path for lsn, path in present if lsn <= beginning]
        + [path for lsn, path in taken.items() if lsn < beginning]
        for beginning in reversed(beginnings)
    ]


def retain(
    directory: Path, keep_snapshots: int, is_archived: Callable[[Path], bool] | None = None
) -> list[Path]:
    """Deletes what is expendable, oldest first so that no gap arises, and returns the files.

    With an archive, history goes on until the last snapshot before which everything is archived.
    """
    doomed: list[Path] = []
    for before in expendable(directory, keep_snapshots):
        if is_archived is None or all(map(is_archived, before)):
            doomed = before
            break
    for path in doomed:
        with explained(path):
            path.unlink()
    if doomed:
        with explained(directory):
            flush_directory(directory)
    return doomed
