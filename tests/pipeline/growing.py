"""Journals of an enterprise in many small segments, as they were at a moment of their growth."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

from mqis.storage.journal.journal import Journal
from mqis.wire.journal import Whole, encode_record, segment_header, walk


def in_segments(journals: Path, target: Path, segment_bytes: int) -> None:
    """Writes the records of journals anew, in segments of about so many bytes."""
    for path in sorted(journals.rglob("segment-0000000001.mqj")):
        data = path.read_bytes()
        header, start = segment_header(data)
        place = target / path.parent.relative_to(journals)
        place.mkdir(parents=True)
        named = header.server, header.server_id
        with closing(Journal(place, *named, segment_bytes=segment_bytes)) as journal:
            for entry in walk(data, start):
                if isinstance(entry, Whole):
                    journal.append([(entry.lsn, encode_record(entry.lsn, entry.record))])
        (place / "lock").unlink(missing_ok=True)


def grow(whole: Path, target: Path, share: float) -> None:
    """Lets each journal below a directory have so much of its bytes: it may end in a record."""
    for place in sorted({path.parent for path in whole.rglob("*.mqj")}):
        grow_one(place, target / place.relative_to(whole), share)


def grow_one(whole: Path, target: Path, share: float) -> None:
    """Lets a journal have so much of its bytes."""
    segments = sorted(whole.glob("*.mqj"))
    left = int(share * sum(path.stat().st_size for path in segments))
    target.mkdir(parents=True, exist_ok=True)
    for path in segments:
        size = path.stat().st_size
        place = target / path.name
        if left >= size and not (place.exists() and place.stat().st_size == size):
            shutil.copy2(path, place)
        elif 0 < left < size:
            place.write_bytes(path.read_bytes()[:left])
        left -= size


def garble(path: Path) -> bytes:
    """Replaces the bytes of a file, as whoever does not read it cannot see; returns the old ones.

    A run that read the file again would find nothing in it.
    """
    status, old = path.stat(), path.read_bytes()
    path.write_bytes(bytes(len(old)))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return old


def restore(path: Path, data: bytes) -> None:
    """Gives a file its bytes back, with its old time."""
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
