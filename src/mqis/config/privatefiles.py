"""Files and directories that only their owner may read, whatever the umask is.

The configuration of a server and the directories of its store, key and journal are made here. So
are exports, comparisons, reports and pictures: they show what not everybody may read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
#: Permission bits of group and others.
OTHERS = 0o077
_SQLITE_MAGIC = b"SQLite format 3\0"


@contextmanager
def private_draft(path: Path) -> Iterator[BinaryIO]:
    """Opens a file of mode 0600 that takes the place of ``path`` when it is complete.

    An existing draft is deleted first: another user may have placed it there to read the content,
    or a link to have another file overwritten.
    """
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            yield file
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_private(path: Path, content: str | bytes) -> None:
    """Writes a file of mode 0600 atomically; raises ``OSError`` if it cannot be written."""
    with private_draft(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def private_output(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for what a user wants written; a device or a pipe is written to directly.

    An earlier output is replaced, a database never: its name was given by mistake.
    """
    refuse_database(path)
    is_plain = path.is_file() or not path.exists()
    with private_draft(path) if is_plain else path.open("wb") as file:
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
