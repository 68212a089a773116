"""The files in a journal's directory, and explanations of operating system errors."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from mqis.files import PART, system_reason, whole_file
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View

_SEGMENT = re.compile(r"segment-(\d{10})\.mqj")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.jsonl")

_EXPLAINED = {
    errno.ENOSPC: "no room left; free some: nothing is lost, and writing resumes by itself",
    errno.EDQUOT: "the disk quota is used up; nothing is lost, and writing resumes by itself",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write; check its owner and mode",
    errno.EIO: "the disk failed",
}


def segment_name(number: int) -> str:
    return f"segment-{number:010}.mqj"


def snapshot_name(lsn: int) -> str:
    return f"snapshot-{lsn:020}.jsonl"


def is_segment(name: str) -> bool:
    return _SEGMENT.fullmatch(name) is not None


def segments(directory: Path) -> dict[int, Path]:
    """The segments by number, ascending."""
    return _listed(directory, _SEGMENT)


def others(directory: Path) -> list[Path]:
    """The complete files that are neither segments nor snapshots by their names, sorted."""
    with explained(directory):
        return sorted(
            path
            for path in directory.iterdir()
            if not (_SEGMENT.fullmatch(path.name) or _SNAPSHOT.fullmatch(path.name))
            and path.suffix != PART
            and path.is_file()
        )


def snapshots(directory: Path) -> dict[int, Path]:
    """The snapshots by their lsn, ascending."""
    return _listed(directory, _SNAPSHOT)


def _listed(directory: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    with explained(directory):
        matches = [(pattern.fullmatch(path.name), path) for path in directory.iterdir()]
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Converts operating system errors to ``StorageError`` with the path, the reason and advice."""
    try:
        yield
    except OSError as error:
        reason = _EXPLAINED.get(error.errno or 0, "")
        system = system_reason(error)
        text = f"{reason} ({system})" if reason else system
        raise StorageError(f"journal {path}: {text}") from error


# --- A snapshot: the directory as it was at one lsn, in the export format -------------------------

_LINES_A_WRITE = 500


def write_snapshot(view: View, directory: Path, lsn: int) -> Path:
    """Writes a snapshot, under another name until it is complete and flushed."""
    path = directory / snapshot_name(lsn)
    with explained(path), whole_file(path) as out:
        _, lines = exported_lines(view)
        while batch := list(islice(lines, _LINES_A_WRITE)):
            out.write(("\n".join(batch) + "\n").encode("ascii"))
    return path
