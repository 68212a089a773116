"""A snapshot: the directory as it was at one lsn, in the export format."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.ports import View
from mqis.storage.journal.files import explained, flush, flush_directory, snapshot_name

_LINES_A_WRITE = 500


def _open_private(path: str, flags: int) -> int:
    """Opens with mode 0600, like segments: a snapshot contains what few may read."""
    return os.open(path, flags, 0o600)


def write_snapshot(view: View, directory: Path, lsn: int) -> Path:
    """Writes a snapshot, under another name until it is complete and flushed."""
    path = directory / snapshot_name(lsn)
    aside = path.with_name(f"{path.name}.part")
    with explained(path):
        try:
            with open(aside, "wb", opener=_open_private) as out:
                _, lines = exported_lines(view)
                while batch := list(islice(lines, _LINES_A_WRITE)):
                    out.write(("\n".join(batch) + "\n").encode("ascii"))
                out.flush()
                flush(out.fileno())
            aside.replace(path)
            flush_directory(directory)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    return path
