"""A side of a comparison from a file of ``mqis export``, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mqis.protocol.directory.export_format import (
    MAX_LINE,
    TOO_LONG,
    ExportError,
    parse_entry,
    parse_header,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.views.comparison.side import DirectorySide


@contextmanager
def exported_side(path: Path) -> Iterator[DirectorySide]:
    """Opens an export; its lines are read, and checked, while the objects are."""
    try:
        with path.open("rb") as file:
            yield DirectorySide(str(path), _located(_objects(file), str(path)))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _located(objects: Iterator[DirectoryObject], source: str) -> Iterator[DirectoryObject]:
    try:
        yield from objects
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, source) from error


def _objects(file: BinaryIO) -> Iterator[DirectoryObject]:
    """Yields the objects; tombstones are no content, but they are counted as lines."""
    lines = _lines(file)
    header = parse_header(next(lines, (1, ""))[1])
    number = 1
    for number, text in lines:
        entry = parse_entry(text, number)
        if isinstance(entry, DirectoryObject):
            yield entry
    if header.lines not in (None, number - 1):
        reason = f"announces {header.lines} more lines, but {number - 1} follow: it was cut off"
        raise ExportError(reason, 1, "lines")


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    number = 0
    while data := file.readline(MAX_LINE + 1):
        number += 1
        if len(data) > MAX_LINE:
            raise ExportError(TOO_LONG, number)
        try:
            yield number, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ExportError(f"this line is not UTF-8: {error.reason}", number) from None
