"""Input files: finding and opening them, and the share of a file that one task reads."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pyspark.sql.datasource import InputPartition

from mqis.pipeline.locations import local_path
from mqis.wire.errors import MqisError


class SourceError(MqisError):
    """A path, column or option of a source is wrong; the text says what to give instead."""


@dataclass(frozen=True, slots=True)
class Share(InputPartition):
    """Bytes ``start`` to ``end`` of a file, which one task reads.

    Shares of a journal begin and end between records; shares of an export may cut lines.
    """

    path: str
    start: int
    end: int


def paths_in(options: Mapping[str, str], pattern: str, what: str) -> list[Path]:
    """The files that the option ``path`` names (several with commas).

    A directory stands for all files below it that match ``pattern``; ``what`` names them in errors.
    """
    given = options.get("path")
    if not given:
        raise SourceError(f"no path to {what} was given; give one: .load('directory')")
    found: list[Path] = []
    for place in [local_path(part.strip()) for part in given.split(",")]:
        if place.is_file():  # a symbolic link that the user names is followed
            found.append(place.resolve() if place.is_symlink() else place)
        elif place.is_dir():
            found += sorted(place.rglob(pattern))
        else:
            raise SourceError(f"{place}: there is no such file or directory")
    if not found and options.get("allow_empty", "") != "true":
        raise SourceError(f"{given}: there are no {what} in it ({pattern})")
    return list(dict.fromkeys(found))  # a directory and one below it may both be given


def open_plain(path: str | Path) -> BinaryIO:
    """Opens a regular file that was found in a directory; raises ``OSError`` for anything else.

    People who can write to the directory must not choose what else is read: a symbolic link can
    lead anywhere, and a pipe or a device never ends.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link; name its target") from None
        raise
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(number, "rb")


def size_of(path: Path) -> int:
    """The size of the file itself, not of a link's target; 0 if it cannot be found."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def unreadable(error: OSError) -> str:
    """The reason in the error row of a file that cannot be read."""
    return f"cannot be read: {error.strerror or error}"


def chosen(names: Iterable[str], known: Iterable[str], source: str) -> list[str]:
    """Returns ``names`` as a list; raises ``SourceError`` if ``source`` has no such column."""
    listed = list(known)
    wanted = list(names)
    unknown = [name for name in wanted if name not in listed]
    if unknown:
        raise SourceError(f"{source} has no column {unknown[0]!r}; it has {', '.join(listed)}")
    return wanted
