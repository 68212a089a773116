"""What may go: segments that lie wholly before a snapshot that stays, and older snapshots."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from mqis.storage.journal.files import explained, flush_directory, segments, snapshots
from mqis.storage.journal.reader import first_lsn


def expendable(directory: Path, keep_snapshots: int) -> list[Path]:
    """What is not needed to go from the oldest of the kept snapshots to now, oldest first.

    Where there are fewer snapshots than are to be kept, nothing is: history would lose its start.
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
    """Delete what is expendable, oldest first, so that what stays is without gaps; what it was."""
    doomed = expendable(directory, keep_snapshots)
    for path in doomed:
        with explained(path):
            path.unlink()
    if doomed:
        with explained(directory):
            flush_directory(directory)
    return doomed
