"""Files that mqis writes: whole, flushed, and for their owner alone unless the caller says more.

Every file that is replaced as a whole is written here: configurations, keys, accounts, states,
snapshots, exports, reports, pictures. Whoever reads one sees the old content or the new, also after
a crash. Journals and stores, which grow in place, have their own ways.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
#: Permission bits of group and others.
OTHERS = 0o077
_SQLITE_MAGIC = b"SQLite format 3\0"
#: The end of the name of a draft.
PART = ".part"


@contextmanager
def whole_file(path: Path, mode: int = FILE_MODE) -> Iterator[BinaryIO]:
    """Opens a draft that takes the place of ``path`` when it is complete and flushed.

    Two writers at once have a draft each, and the later one wins. Nobody can have placed the
    draft there to read it, because its name is new.
    """
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(file.fileno(), mode)
            if os.geteuid() == 0 and path.exists():  # a server's file stays the server's
                os.fchown(file.fileno(), path.stat().st_uid, path.stat().st_gid)
            yield file
            file.flush()
            flush(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def write_whole(path: Path, content: str | bytes, mode: int = FILE_MODE) -> None:
    """Writes a file, or leaves what was there and raises ``OSError``."""
    with whole_file(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def open_log(path: Path) -> BinaryIO:
    """Opens a file that grows, for its owner alone."""
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    return os.fdopen(number, "ab")


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for what a user wants written; a device or a pipe is written to directly.

    An earlier output is replaced, a database never: its name was given by mistake.
    """
    refuse_database(path)
    is_plain = path.is_file() or not path.exists()
    with whole_file(path) if is_plain else path.open("wb") as file:
        yield file


def refuse_database(path: Path) -> None:
    """Raises ``FileExistsError`` if an output would replace a store."""
    if path.is_file() and is_sqlite_file(path):
        text = "a store or another database is there; name another file"
        raise FileExistsError(errno.EEXIST, text, str(path))


def is_sqlite_file(path: Path) -> bool:
    """Returns whether a file is an SQLite database; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


def make_private_directory(path: Path) -> None:
    """Makes a directory and its missing parents with mode 0700; leaves an existing one as it is."""
    if path.is_dir():
        return
    if path.parent != path:
        make_private_directory(path.parent)
    path.mkdir(exist_ok=True, mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)


def is_open_to_others(path: Path) -> bool:
    """True if anybody but the owner may read, write or enter."""
    return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)


def flush(descriptor: int) -> None:
    """Flushes to the disk, and on macOS also the drive's cache."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fsync(descriptor)


def flush_directory(directory: Path) -> None:
    """Flushes a directory, so that files made, renamed or removed in it stay so."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
