"""The journal of a restored store.

Server and number identify a record for ever, so numbers that may have been used are skipped: the
next one comes from the clock, which is ahead of every server that writes less than 2^24 records a
second. Records that waited for the old journal are dropped: the new one begins with a snapshot of
the directory as it is now.
"""

from __future__ import annotations

from pathlib import Path
from time import time

from mqis.files import make_private_directory
from mqis.protocol.errors import StorageError
from mqis.storage import outbox
from mqis.storage.database import DatabaseStore
from mqis.storage.journal.journal_files import segments, write_snapshot
from mqis.storage.journal.journal_reader import Segment
from mqis.wire.journal import Whole

#: Numbers that are skipped at least, if the clock is behind.
LSN_JUMP = 1 << 20
_CLOCK_SHIFT = 24


def last_lsn(directory: Path | None) -> int:
    """The number of a journal's newest record; 0 if there is none, or none is readable."""
    if directory is None or not directory.is_dir():
        return 0
    try:
        paths = list(segments(directory).values())
        entries = Segment.load(paths[-1]).entries() if paths else ()
        return max((entry.lsn for entry in entries if isinstance(entry, Whole)), default=0)
    except StorageError:
        return 0


def begin_journal(store: DatabaseStore, directory: Path | None, seen: int) -> None:
    """Skips numbers, and begins a new journal in a directory, unless the server keeps none."""
    with store.writing() as rows:
        known = outbox.last_lsn(rows)
        last = max(max(known, seen) + LSN_JUMP, int(time()) << _CLOCK_SHIFT)
        outbox.restart_outbox(rows, last)
    if directory is None:
        return
    make_private_directory(directory)
    with store.read() as view:
        write_snapshot(view, directory, last)
