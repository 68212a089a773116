"""The files that a path means, and a share of one as Spark's tasks get it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pyspark.sql.datasource import InputPartition

from mqis.wire.errors import MqisError


class SourceError(MqisError):
    """A path does not lead to what a source reads: which, and what to give instead."""


@dataclass(frozen=True, slots=True)
class Share(InputPartition):
    """Bytes ``start`` to ``end`` of a file; records begin at both."""

    path: str
    start: int
    end: int


def paths_in(options: Mapping[str, str], pattern: str, what: str) -> list[Path]:
    """The file, or every file of that pattern at and below the directory; several with commas."""
    given = options.get("path")
    if not given:
        raise SourceError(f"where are the {what}? Give a path: .load('directory')")
    found: list[Path] = []
    for part in given.split(","):
        place = Path(part.strip().removeprefix("file:"))
        if place.is_file():  # whoever names a link means what it leads to
            found.append(place.resolve() if place.is_symlink() else place)
        elif place.is_dir():
            found += sorted(place.rglob(pattern))
        else:
            raise SourceError(f"{place}: there is no such file or directory")
    if not found and options.get("allow_empty", "") != "true":
        raise SourceError(f"{given}: there are no {what} in it ({pattern})")
    return found


def open_plain(path: str | Path) -> BinaryIO:
    """Open a file that was found in a directory; ``OSError`` if it is anything else than that.

    Whoever fills the directory must not choose what else is read: a link leads anywhere, and a
    pipe or a device never ends.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link; name what it leads to") from None
        raise
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "it is no plain file")
    return os.fdopen(number, "rb")


def size_of(path: Path) -> int:
    """Of the file itself, not of what a link leads to; 0 if it is gone."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def unreadable(error: OSError) -> str:
    """A file that cannot be read is a row too, and this is its reason."""
    return f"cannot be read: {error.strerror or error}"


def chosen(names: Iterable[str], known: Iterable[str], source: str) -> list[str]:
    """The columns that a reader is to make; an unknown one is an error that lists the others."""
    listed = list(known)
    wanted = list(names)
    unknown = [name for name in wanted if name not in listed]
    if unknown:
        raise SourceError(f"{source} has no column {unknown[0]!r}; it has {', '.join(listed)}")
    return wanted
