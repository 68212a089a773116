"""Input files: finding and opening them, and the share of a file that one task reads."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, ClassVar
from zlib import compress, decompress

from pyspark.sql.datasource import DataSource, InputPartition

from mqis.files import system_reason
from mqis.pipeline.locations import input_places
from mqis.places import (
    PlaceError,
    RemoteAddress,
    is_remote,
    listed,
    open_at,
    parse_place,
    part_at,
    size_at,
    stamp,
    stamped,
)
from mqis.texts import joined, meant
from mqis.wire.errors import MqisError

#: Options of every source: what is read, and in what portions. ``mqis pipeline`` uses the others.
_EVERYWHERE = ("path", "paths", "allow_empty", "share_bytes", "task_bytes", "open_bytes")
_ITS_OWN = ("pushdown", "without", "only")


class CheckedSource(DataSource):
    """A source that refuses options which it does not have: Spark would pass them by in silence."""

    OPTIONS: ClassVar[tuple[str, ...]] = ()

    @property
    def given(self) -> dict[str, str]:
        """The options, by names in lower case; raises ``MqisError`` for one that is not known."""
        options = dict(self.options)
        known = [*self.OPTIONS, *_EVERYWHERE]
        words = {each.lower() for each in (*known, *_ITS_OWN)}
        for name in options:
            if name.lower() not in words:
                raise MqisError(f"{self.name()}: {name}: no such option; {meant(name, known)}")
        return options


@dataclass(frozen=True, slots=True)
class Share(InputPartition):
    """Bytes ``start`` to ``end`` of a file, which one task reads.

    Shares of a journal begin and end between records; shares of an export may cut lines.
    """

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shares(InputPartition):
    """The shares that one task reads, one after the other."""

    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class TaskSize:
    """How much a task reads: the options that journals and exports share.

    A task gets small files until they have ``share_bytes``, or cost more than ``task_bytes`` if
    to open one costs as much as ``open_bytes``, as Spark's own sources count.
    """

    share_bytes: int = 16 << 20
    task_bytes: int = 128 << 20
    open_bytes: int = 4 << 20

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TaskSize:
        default = cls()
        sizes = (
            size_given(options, name, getattr(default, name))
            for name in ("share_bytes", "task_bytes", "open_bytes")
        )
        return cls(*sizes)

    def packed(self, shares: Iterable[Share]) -> list[Shares]:
        found: list[Shares] = []
        waiting: list[Share] = []
        size = 0
        for share in shares:
            length = share.end - share.start
            cost = size + length + self.open_bytes * (len(waiting) + 1)
            if waiting and (size + length > self.share_bytes or cost > self.task_bytes):
                found.append(Shares(tuple(waiting)))
                waiting, size = [], 0
            waiting.append(share)
            size += length
        return [*found, Shares(tuple(waiting))] if waiting else found


def size_given(options: Mapping[str, str], name: str, default: int) -> int:
    """The number of bytes that an option names."""
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise MqisError(f"the option {name} is a positive number of bytes, not {text!r}")
    return int(text)


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
    """The files that the option ``path`` names; see ``listing_of``."""
    return list(listing_of(options, what, *patterns))


def listing_of(options: Mapping[str, str], what: str, *patterns: str) -> dict[SourceFile, int]:
    """The files that the option ``path`` names (several with commas), with their sizes.

    A directory stands for all files below it that match a pattern; ``what`` names them in errors.
    As with Spark's own sources, what begins with a dot or underscore is left out: so tables may be
    kept beside their inputs. A store's listing has the sizes, so that nobody has to ask for each.
    The option ``only`` (``only_option``) chooses among the files.
    """
    given = paths_given(options)
    if not given:
        raise MqisError(f"no path to {what} was given; give one: .load('directory')")
    found: dict[SourceFile, int] = {}  # a directory and one below it may both be given
    for place in input_places(given):
        if isinstance(place, RemoteAddress):
            found |= _in_store(place, patterns)
            continue
        if place.is_file():  # a symbolic link that the user names is followed
            paths = [place.resolve() if place.is_symlink() else place]
        elif place.is_dir():
            paths = _below(place, patterns)
        else:
            paths = [path for chosen in _chosen(place) for path in _below(chosen, patterns)]
        found |= {path: size_of(path) for path in paths}
    if not found and options.get("allow_empty", "") != "true":
        raise MqisError(f"{joined(given)}: there are no {what} in it ({', '.join(patterns)})")
    if "only" in options:
        only = frozenset(json.loads(decompress(b64decode(options["only"]))))
        return {path: size for path, size in found.items() if str(path) in only}
    return found


def only_option(names: Iterable[str]) -> str:
    """Names of files as an option; every task gets it, so it is compressed."""
    return b64encode(compress(json.dumps(sorted(names)).encode())).decode("ascii")


def stamps_of(found: Iterable[SourceFile]) -> dict[str, str]:
    """The files, each with a text that changes when the file is written; those that are gone not.

    Size and time of writing, as other programs that copy what is new look at them.
    """
    stamps: dict[str, str] = {}
    stores: dict[SourceFile, dict[SourceFile, str]] = {}
    for path in found:
        if isinstance(path, RemoteAddress):
            parent = path.parent
            if parent not in stores:
                stores[parent] = stamped(parent)
            told = stores[parent].get(path)
        else:
            told = _stamp_of(path)
        if told is not None:
            stamps[str(path)] = told
    return stamps


def _stamp_of(path: Path) -> str | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return stamp(status.st_size, status.st_mtime_ns)


def paths_given(options: Mapping[str, str]) -> list[str]:
    """The texts of ``.load("a,b")``, or of ``.load(["a", "b"])``, which Spark passes as JSON."""
    if "paths" in options:
        return list(map(str, json.loads(options["paths"])))
    return [part for text in options.get("path", "").split(",") if (part := text.strip())]


def _below(place: Path, patterns: Iterable[str]) -> list[Path]:
    if not place.is_dir():
        return [place]
    found = (path for pattern in patterns for path in place.rglob(pattern))
    return sorted(path for path in found if not _is_hidden(path.relative_to(place).parts))


def _is_hidden(parts: Iterable[str]) -> bool:
    """Returns whether a name on the way to a file begins with a dot or underscore."""
    return any(part.startswith((".", "_")) for part in parts)


def _chosen(place: Path) -> list[Path]:
    """The files and directories that a path with ``*``, ``?`` or ``[...]`` chooses.

    As with Spark's own sources, a wildcard does not choose what begins with a dot or underscore.
    It chooses no symbolic links either: the user has not named what they lead to.
    """
    first = next((i for i, part in enumerate(place.parts) if _is_wild(part)), None)
    if first is None:
        raise MqisError(f"{place}: there is no such file or directory")
    found = [Path(*place.parts[:first])]
    for part in place.parts[first:]:
        within = (path for parent in found if parent.is_dir() for path in parent.iterdir())
        found = sorted(p for p in within if _fits(p.name, part) and not p.is_symlink())
    if not found:
        raise MqisError(f"{place}: no file or directory has such a name")
    return found


def _is_wild(part: str) -> bool:
    return any(character in part for character in "*?[")


def _fits(name: str, pattern: str) -> bool:
    hidden = name.startswith((".", "_")) and not pattern.startswith(name[0])
    return fnmatchcase(name, pattern) and not hidden


def _in_store(place: RemoteAddress, patterns: Iterable[str]) -> dict[SourceFile, int]:
    try:
        below = dict(listed(place, recursive=True))
        if not below and (size := size_at(place)) is not None:
            return {place: size}
        if not below and _is_wild(place.path):
            below = _chosen_in_store(place)
    except PlaceError as error:
        raise MqisError(str(error)) from None
    depth = len(place.path.split("/")) if place.path else 0
    return {
        file: size
        for file, size in below.items()
        if any(fnmatchcase(file.name, pattern) for pattern in patterns)
        and not _is_hidden(_parts_of(file)[depth:])
    }


def _chosen_in_store(place: RemoteAddress) -> dict[SourceFile, int]:
    """The files that a path with wildcards chooses, and those below directories that it chooses."""
    wanted = place.path.split("/")
    first = next(i for i, part in enumerate(wanted) if _is_wild(part))
    chosen: dict[SourceFile, int] = {}
    for file, size in listed(replace(place, path="/".join(wanted[:first])), recursive=True):
        parts = _parts_of(file)
        if len(parts) >= len(wanted) and all(map(_fits, parts, wanted)):
            chosen[file] = size
    return chosen


def _parts_of(file: SourceFile) -> Sequence[str]:
    return file.path.split("/") if isinstance(file, RemoteAddress) else file.parts


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


def part_of(path: SourceFile, start: int, end: int) -> bytes:
    """Reads the bytes between two offsets of a regular file, and of a store no others."""
    if isinstance(path, RemoteAddress):
        return part_at(path, start, end)
    with open_plain(path) as file:
        file.seek(start)
        return file.read(end - start)


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
    return f"cannot be read: {system_reason(error)}"


def check_names(names: Iterable[str], known: Iterable[str], source: str) -> None:
    """Raises ``MqisError`` if ``source`` has no column of one of these names."""
    listed = list(known)
    if unknown := [name for name in names if name not in listed]:
        raise MqisError(f"{source} has no column {unknown[0]!r}; it has {', '.join(listed)}")
