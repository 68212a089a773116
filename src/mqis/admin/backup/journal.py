"""The journal of a store that was put back.

Server and number identify a record for good, so numbers that may have been given out are skipped:
they go on where the clock is, which is ahead of every server that writes less than 2^24 a second.
What waited for the old journal has no place in the new one, which begins with a snapshot of the
directory as it is now.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from time import time

from mqis.protocol.errors import StorageError
from mqis.storage import outbox
from mqis.storage.database import DatabaseStore
from mqis.storage.journal.files import segments
from mqis.storage.journal.reader import Segment
from mqis.storage.journal.snapshot import write_snapshot
from mqis.wire.journal import Whole

#: And at least this far behind what is known, if the clock is not.
LSN_JUMP = 1 << 20
_CLOCK_SHIFT = 24


def last_lsn(directory: Path | None) -> int:
    """The newest record of a journal; 0 where there is none, or none that can be read."""
    if directory is None or not directory.is_dir():
        return 0
    try:
        paths = list(segments(directory).values())
        entries = Segment.load(paths[-1]).entries() if paths else ()
        return max((entry.lsn for entry in entries if isinstance(entry, Whole)), default=0)
    except StorageError:
        return 0


def draft_of(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.restoring")


def begin_journal(store: DatabaseStore, directory: Path | None, seen: int) -> Path | None:
    """Skip numbers; the draft of a new journal, if the server keeps one."""
    with store.writing() as rows:
        known = outbox.last_lsn(rows)
        last = max(max(known, seen) + LSN_JUMP, int(time()) << _CLOCK_SHIFT)
        outbox.restart_outbox(rows, last)
    if directory is None:
        return None
    draft = draft_of(directory)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    with store.read() as view:
        write_snapshot(view, draft, last)
    return draft
