"""Places of files: directories of this computer, and stores of objects (S3, Google, Azure, HDFS).

A place is a ``Path`` or a ``RemoteAddress``; ``parse_place`` makes one of what a user writes. The
functions here take either. For a ``Path`` they are plain file operations.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from mqis.files import make_private_directory, whole_file
from mqis.places.address import RemoteAddress, holds_credential, is_remote, parse_place
from mqis.places.errors import PlaceError, explained_at
from mqis.places.remote import (
    listed_below,
    open_in_store,
    part_in_store,
    put_in_store,
    size_in_store,
)

__all__ = [
    "Place",
    "PlaceError",
    "RemoteAddress",
    "holds_credential",
    "is_remote",
    "listed",
    "open_at",
    "parse_place",
    "part_at",
    "put_at",
    "size_at",
    "stamp",
    "stamped",
]

Place = Path | RemoteAddress
_COPY_BYTES = 1 << 20


def listed(place: Place, *, recursive: bool = False) -> list[tuple[Place, int]]:
    """The files in a directory with their sizes, sorted; none if there is no such directory."""
    if isinstance(place, RemoteAddress):
        return [(file.address, file.size) for file in listed_below(place, recursive=recursive)]
    with explained_at(place):
        if not place.is_dir():
            return []
        found = place.rglob("*") if recursive else place.iterdir()
        plain = [path for path in found if path.is_file() and not path.is_symlink()]
        return sorted((path, path.stat().st_size) for path in plain)


def stamped(place: RemoteAddress, *, recursive: bool = False) -> dict[Place, str]:
    """The files in a directory of a store, each with a text that changes when it is written."""
    found = listed_below(place, recursive=recursive)
    return {file.address: stamp(file.size, file.modified_ns) for file in found}


def stamp(size: int, modified_ns: int) -> str:
    """A text that changes when a file is written."""
    return f"{size:x}.{modified_ns:x}"


def size_at(place: Place) -> int | None:
    """The size of a file; None if there is no such file."""
    if isinstance(place, RemoteAddress):
        return size_in_store(place)
    with explained_at(place):
        return place.stat().st_size if place.is_file() else None


def open_at(place: Place) -> BinaryIO:
    """Opens a file for reading."""
    if isinstance(place, RemoteAddress):
        return open_in_store(place)
    with explained_at(place):
        return place.open("rb")


def part_at(place: Place, start: int, end: int) -> bytes:
    """Reads the bytes between two offsets of a file; fewer if it ends before."""
    if isinstance(place, RemoteAddress):
        return part_in_store(place, start, end)
    with open_at(place) as file:
        file.seek(start)
        return file.read(end - start)


def put_at(source: Path, place: Place) -> None:
    """Copies a whole file; nobody ever sees a part of it under its name."""
    if isinstance(place, RemoteAddress):
        put_in_store(source, place)
        return
    with explained_at(place):
        _put_file(source, place)


def _put_file(source: Path, target: Path) -> None:
    make_private_directory(target.parent)
    with source.open("rb") as file, whole_file(target) as out:
        while data := file.read(_COPY_BYTES):
            out.write(data)
