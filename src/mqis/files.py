"""Files that mqis writes: whole, flushed, and for their owner alone unless the caller says more.

Every file that is replaced as a whole is written here: configurations, keys, accounts, states,
snapshots, exports, reports, pictures. Whoever reads one sees the old content or the new, also after
a crash. So is every directory that is there as a whole or not at all. Journals and stores, which
grow in place, have their own ways.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
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
def whole_file(path: Path, mode: int = FILE_MODE, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Opens a draft that takes the place of ``path`` when it is complete and flushed.

    Two writers at once have a draft each, and the later one wins; without ``replace`` the first
    one does, and the other gets a ``FileExistsError``. Nobody can have placed the draft there to
    read it, because its name is new.
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
        if replace:
            Path(name).replace(path)
        else:
            path.hardlink_to(name)
            Path(name).unlink()
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def write_whole(
    path: Path, content: str | bytes, mode: int = FILE_MODE, *, replace: bool = True
) -> None:
    """Writes a file, or leaves what was there and raises ``OSError``."""
    with whole_file(path, mode, replace=replace) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def draft_directory(path: Path) -> Iterator[Path]:
    """Opens an empty directory beside ``path`` for this process alone, removed at the end.

    What a process that was killed left of its own is removed first. ``BlockingIOError`` if another
    process is at it.
    """
    draft = path.with_name(f".{path.name}{PART}")
    lock = _own_directory(draft, path)
    try:
        for left in draft.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield draft
    finally:
        if _is_at(lock, draft):
            shutil.rmtree(draft, ignore_errors=True)
        os.close(lock)  # not before: the next process would begin in what is removed here


def _own_directory(draft: Path, path: Path) -> int:
    """Makes the directory and locks it; returns the descriptor, which holds the lock."""
    while True:
        make_private_directory(draft)
        lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(lock, DIRECTORY_MODE)
            if _is_at(lock, draft):
                return lock
        except BlockingIOError:
            os.close(lock)
            text = "another process is writing it"
            raise BlockingIOError(errno.EAGAIN, text, str(path)) from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # its process has removed it meanwhile


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def whole_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Opens a draft that becomes the directory ``path`` when it is complete and flushed.

    An empty directory may be there, and with ``replace`` any other.
    """
    with draft_directory(path) as draft:
        yield draft
        for place, _, names in os.walk(draft):
            _flush_all(Path(place), names)
        if replace and path.exists():
            shutil.rmtree(path)
        elif path.exists():
            path.rmdir()
        draft.rename(path)
        flush_directory(path.parent)


def _flush_all(directory: Path, names: list[str]) -> None:
    for name in names:
        with (directory / name).open("rb") as file:
            flush(file.fileno())
    flush_directory(directory)


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


def is_open_to_others(file: Path | int) -> bool:
    """True if anybody but the owner may read, write or enter: a path, or an open file's number."""
    status = os.fstat(file) if isinstance(file, int) else file.stat()
    return bool(status.st_mode & OTHERS)


def system_reason(error: BaseException) -> str:
    """The system's words for a failure, without the names of files, which the caller says."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


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
