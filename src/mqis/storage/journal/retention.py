"""Retention: deletes segments before the oldest kept snapshot, and older snapshots."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from mqis.storage.journal.files import explained, flush_directory, segments, snapshots
from mqis.storage.journal.reader import first_lsn


def expendable(directory: Path, keep_snapshots: int) -> list[Path]:
    """The files that are not needed from the oldest kept snapshot on, oldest first.

    Nothing, if there are fewer snapshots than are to be kept: history would lose its start.
    """
    if keep_snapshots < 1:
        raise ValueError("a journal needs its snapshots; keep at least one")
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
    """Deletes expendable files, oldest first, so that the rest has no gaps; returns them."""
    doomed = expendable(directory, keep_snapshots)
    for path in doomed:
        with explained(path):
            path.unlink()
    if doomed:
        with explained(directory):
            flush_directory(directory)
    return doomed
