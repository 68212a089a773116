"""The files that a path means, and a share of one as Spark's tasks get it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

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
        if place.is_file():
            found.append(place)
        elif place.is_dir():
            found += sorted(place.rglob(pattern))
        else:
            raise SourceError(f"{place}: there is no such file or directory")
    if not found and options.get("allow_empty", "") != "true":
        raise SourceError(f"{given}: there are no {what} in it ({pattern})")
    return found


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
