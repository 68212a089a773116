"""Input files: finding and opening them, and the share of a file that one task reads."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from pyspark.sql.datasource import InputPartition

from mqis.pipeline.locations import input_places
from mqis.places import PlaceError, RemoteAddress, is_remote, listed, open_at, parse_place, size_at
from mqis.wire.errors import MqisError


@dataclass(frozen=True, slots=True)
class Share(InputPartition):
    """Bytes ``start`` to ``end`` of a file, which one task reads.

    Shares of a journal begin and end between records; shares of an export may cut lines.
    """

    path: str
    start: int
    end: int


#: A local file, or one in a store of objects.
SourceFile = Path | RemoteAddress


def source_file(text: str) -> SourceFile:
    """The file that a listing of ``paths_in`` named."""
    return parse_place(text) if is_remote(text) else Path(text)


def parent_of(path: str) -> str:
    """The directory of a file."""
    return str(source_file(path).parent)


def files_beside(directory: SourceFile, pattern: str) -> list[SourceFile]:
    """The files of one directory that match, sorted."""
    if isinstance(directory, Path):
        return sorted(directory.glob(pattern))
    return [file for file, _ in listed(directory) if fnmatchcase(file.name, pattern)]


def paths_in(options: Mapping[str, str], what: str, *patterns: str) -> list[SourceFile]:
    """The files that the option ``path`` names (several with commas).

    A directory stands for all files below it that match a pattern; ``what`` names them in errors.
    """
    given = options.get("path")
    if not given:
        raise MqisError(f"no path to {what} was given; give one: .load('directory')")
    found: list[SourceFile] = []
    for place in input_places(given):
        if isinstance(place, RemoteAddress):
            found += _in_store(place, patterns)
        elif place.is_file():  # a symbolic link that the user names is followed
            found.append(place.resolve() if place.is_symlink() else place)
        elif place.is_dir():
            found += sorted(path for pattern in patterns for path in place.rglob(pattern))
        else:
            raise MqisError(f"{place}: there is no such file or directory")
    if not found and options.get("allow_empty", "") != "true":
        raise MqisError(f"{given}: there are no {what} in it ({', '.join(patterns)})")
    return list(dict.fromkeys(found))  # a directory and one below it may both be given


def _in_store(place: RemoteAddress, patterns: Iterable[str]) -> list[SourceFile]:
    try:
        below = [file for file, _ in listed(place, recursive=True)]
        if not below and size_at(place) is not None:
            return [place]
    except PlaceError as error:
        raise MqisError(str(error)) from None
    return [file for file in below if any(fnmatchcase(file.name, p) for p in patterns)]


def local_copy(path: SourceFile) -> AbstractContextManager[BinaryIO]:
    """Opens a file that can be memory-mapped; one of a store is fetched into a temporary file."""
    return open_plain(path) if isinstance(path, Path) else _fetched(path)


@contextmanager
def _fetched(place: RemoteAddress) -> Iterator[BinaryIO]:
    with TemporaryFile() as made, open_at(place) as source:
        shutil.copyfileobj(source, made, 1 << 20)
        made.flush()
        made.seek(0)
        yield made


def open_plain(path: str | SourceFile) -> BinaryIO:
    """Opens a regular file that was found in a directory; raises ``OSError`` for anything else.

    People who can write to the directory must not choose what else is read: a symbolic link can
    lead anywhere, and a pipe or a device never ends.
    """
    if is_remote(str(path)):
        return open_at(parse_place(str(path)))
    try:
        number = os.open(str(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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


def size_of(path: SourceFile) -> int:
    """The size of the file itself, not of a link's target; 0 if it cannot be found."""
    try:
        if isinstance(path, RemoteAddress):
            return size_at(path) or 0
        return path.lstat().st_size
    except OSError:
        return 0


def unreadable(error: OSError) -> str:
    """The reason in the error row of a file that cannot be read."""
    return f"cannot be read: {error.strerror or error}"


def check_names(names: Iterable[str], known: Iterable[str], source: str) -> None:
    """Raises ``MqisError`` if ``source`` has no column of one of these names."""
    listed = list(known)
    if unknown := [name for name in names if name not in listed]:
        raise MqisError(f"{source} has no column {unknown[0]!r}; it has {', '.join(listed)}")
