"""Reads an export line by line, with a limit on every line.

The caller opens the file and tells its name in errors; nothing here knows of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from mqis.protocol.directory.export_format import (
    MAX_LINE,
    TOO_LONG,
    ExportError,
    ExportHeader,
    parse_entry,
    parse_header,
)
from mqis.protocol.directory.objects import DirectoryObject


class LineSource(Protocol):
    """An open file, as far as it is read here."""

    def readline(self, size: int, /) -> bytes: ...


def _silent(_size: int) -> None: ...


class ExportLines:
    """The lines of an export with their numbers; ``taken`` is called with the size of each."""

    def __init__(self, file: LineSource, taken: Callable[[int], None] = _silent) -> None:
        self._file = file
        self._taken = taken
        #: The line that was read last.
        self.number = 0

    def header(self) -> ExportHeader:
        """Reads the first line."""
        for _, text in self:
            return parse_header(text)
        raise ExportError("the file is empty", 1)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while data := self._file.readline(MAX_LINE + 1):
            self.number += 1
            if len(data) > MAX_LINE:
                raise ExportError(TOO_LONG, self.number)
            self._taken(len(data))
            try:
                yield self.number, data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ExportError(f"this line is not UTF-8: {error.reason}", self.number) from None

    def objects(self, header: ExportHeader, skipped: str = "\n") -> Iterator[DirectoryObject]:
        """Yields the objects; tombstones are no content, but they are counted as lines.

        ``skipped``: the beginning of lines that the caller does not want.
        """
        for number, text in self:
            if text.startswith(skipped):
                continue
            entry = parse_entry(text, number)
            if isinstance(entry, DirectoryObject):
                yield entry
        self.expect(header)

    def expect(self, header: ExportHeader) -> None:
        """Checks that as many lines were read as the header announces."""
        if header.lines not in (None, self.number - 1):
            raise ExportError(
                f"announces {header.lines} more lines, but {self.number - 1} follow: the file was "
                "cut off or changed (after a change by hand, correct the number or leave it out)",
                1,
                "lines",
            )
