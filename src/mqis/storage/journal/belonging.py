"""Notices that a store and a journal do not belong together: one of them was replaced.

The store remembers the first and the last record that it gave to the journal, by number and
SHA-256. A store that was replaced by another one, or by an older copy of itself, remembers others
than the journal has, or has given out fewer numbers.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from mqis.protocol.ports import NumberedOutbox, Transaction, View
from mqis.storage.journal.checking import copied_lsn
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import Segment, load_behind
from mqis.wire.journal import Whole

_FAMILY = "journal"
_FIRST, _LAST = b"first", b"last"
_REMEDY = (
    "put back the store that wrote this journal; or restore a backup with 'mqis restore', which "
    "begins a new journal; or, to keep this store, move the journal's directory away and start "
    "with 'mqis serve --restored', so that the server asks the others first"
)


def remember_record(tx: Transaction, lsn: int, data: bytes) -> None:
    """Remembers an encoded record that is on the disk now."""
    mark = lsn.to_bytes(8) + sha256(data).digest()
    if tx.state(_FAMILY, _FIRST) is None:
        tx.put_state(_FAMILY, _FIRST, mark)
    tx.put_state(_FAMILY, _LAST, mark)


def belonging_fault(view: View, directory: Path) -> str | None:
    """The reason why the store cannot have written the journal, with advice; None if it can."""
    reason = _fault(view, directory)
    return None if reason is None else f"journal {directory}: {reason}; {_REMEDY}"


def _fault(view: View, directory: Path) -> str | None:
    if not directory.is_dir() or not segments(directory):
        return None
    last = newest_lsn(directory)
    known = view.last_lsn() if isinstance(view, NumberedOutbox) else copied_lsn(view)
    if last > known:
        return (
            f"it has records up to {last}, but the store has made only {known}: the store was "
            "replaced by another one, or by an older copy"
        )
    for key in (_FIRST, _LAST):
        mark = view.state(_FAMILY, key)
        lsn = 0 if mark is None else int.from_bytes(mark[:8])
        data = _record(directory, lsn) if 0 < lsn <= last else None
        if mark is not None and data is not None and sha256(data).digest() != mark[8:]:
            return f"its record {lsn} is not the one that the store wrote: one of them was replaced"
    return None


def newest_lsn(directory: Path) -> int:
    """The number of the newest record; of a segment without any, the one before its first."""
    paths = list(segments(directory).values())
    if not paths:
        return 0
    segment = Segment.load(paths[-1])
    found = (entry.lsn for entry in segment.entries() if isinstance(entry, Whole))
    return max(found, default=segment.header.first_lsn - 1)


def _record(directory: Path, lsn: int) -> bytes | None:
    """The bytes of a record; None if retention has deleted it, or it is damaged."""
    for segment in load_behind(directory, lsn - 1):
        for entry in segment.entries():
            if isinstance(entry, Whole) and entry.lsn >= lsn:
                return segment.bytes_of(entry) if entry.lsn == lsn else None
    return None
