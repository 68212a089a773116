"""A side of a comparison from a file of ``mqis export``, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mqis.protocol.directory.export_format import ExportError
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.views.comparison.side import DirectorySide


@contextmanager
def exported_side(path: Path, warn: Callable[[str], None]) -> Iterator[DirectorySide]:
    """Opens an export; its lines are read, and checked, while the objects are.

    ``warn`` is called behind the last line if the file is not as mqis wrote it.
    """
    try:
        with path.open("rb") as file:
            yield DirectorySide(str(path), _located(_objects(file, path, warn), str(path)))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _located(objects: Iterator[DirectoryObject], source: str) -> Iterator[DirectoryObject]:
    try:
        yield from objects
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, source) from error


def _objects(file: BinaryIO, path: Path, warn: Callable[[str], None]) -> Iterator[DirectoryObject]:
    lines = ExportLines(file)
    yield from lines.objects(lines.header())
    if lines.doubt:
        warn(f"{path}: it was {lines.doubt}")
