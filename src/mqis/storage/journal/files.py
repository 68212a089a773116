"""What lies in a journal's directory, and what the system's errors about it mean."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqis.protocol.errors import StorageError

_SEGMENT = re.compile(r"segment-(\d{10})\.mqj")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.jsonl")

_EXPLAINED = {
    errno.ENOSPC: "no room left; free some space, nothing is lost and it goes on by itself",
    errno.EDQUOT: "the quota is used up; nothing is lost, and it goes on by itself",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "may not be written; check its owner and mode",
    errno.EIO: "the disk failed",
}


def segment_name(number: int) -> str:
    return f"segment-{number:010}.mqj"


def snapshot_name(lsn: int) -> str:
    return f"snapshot-{lsn:020}.jsonl"


def segments(directory: Path) -> dict[int, Path]:
    """By number, ascending."""
    return _listed(directory, _SEGMENT)


def snapshots(directory: Path) -> dict[int, Path]:
    """By the lsn that they were taken at, ascending."""
    return _listed(directory, _SNAPSHOT)


def _listed(directory: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    with explained(directory):
        matches = [(pattern.fullmatch(path.name), path) for path in directory.iterdir()]
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """The system's errors as ``StorageError`` that says where, why and what to do."""
    try:
        yield
    except OSError as error:
        reason = _EXPLAINED.get(error.errno or 0, "")
        system = error.strerror or str(error)
        told = f"{reason} ({system})" if reason else system
        raise StorageError(f"journal {path}: {told}") from error


def flush(descriptor: int) -> None:
    """To the disk, and on macOS out of the drive's cache as well."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fsync(descriptor)


def flush_directory(directory: Path) -> None:
    """So that a file that was made, renamed or removed stays so."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
