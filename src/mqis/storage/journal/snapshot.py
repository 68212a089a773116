"""A snapshot: the directory as it was at one lsn, in the export format."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from mqis.files import whole_file
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.ports import View
from mqis.storage.journal.files import explained, snapshot_name

_LINES_A_WRITE = 500


def write_snapshot(view: View, directory: Path, lsn: int) -> Path:
    """Writes a snapshot, under another name until it is complete and flushed."""
    path = directory / snapshot_name(lsn)
    with explained(path), whole_file(path) as out:
        _, lines = exported_lines(view)
        while batch := list(islice(lines, _LINES_A_WRITE)):
            out.write(("\n".join(batch) + "\n").encode("ascii"))
    return path
