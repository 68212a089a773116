"""Reads an export line by line, with a limit on every line, and compares it with its digest.

The caller opens the file and tells its name in errors; nothing here knows of files. People edit
exports on purpose, so a file that does not match its digest is read; ``doubt`` says so at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Protocol

from mqis.protocol.directory.export_format import (
    BYTE_ORDER_MARK,
    MAX_LINE,
    TOO_LONG,
    ExportError,
    ExportHeader,
    is_end,
    parse_end,
    parse_entry,
    parse_header,
)
from mqis.protocol.directory.objects import DirectoryObject


class LineSource(Protocol):
    """An open file, as far as it is read here."""

    def readline(self, size: int, /) -> bytes: ...


EDITED = "edited after mqis wrote it: its lines do not match the digest in its last line"
NO_DIGEST = "edited or cut off after mqis wrote it: its last line, which has the digest, is missing"


def _silent(_size: int) -> None: ...


class ExportLines:
    """The lines of an export with their numbers; ``taken`` is called with the size of each."""

    def __init__(self, file: LineSource, taken: Callable[[int], None] = _silent) -> None:
        self._file = file
        self._taken = taken
        self._digest = sha256()
        self._header: ExportHeader | None = None
        self._claimed: bytes | None = None
        #: The line that was read last, and whether it was the last one of the file.
        self.number = 0
        self.is_at_end = False

    @property
    def doubt(self) -> str:
        """The reason to doubt that the file is as mqis wrote it; "" before its end, or if none."""
        if not self.is_at_end:
            return ""
        if self._claimed is not None:
            return EDITED if self._claimed != self._digest.digest() else ""
        return NO_DIGEST if self._header is not None and self._header.has_digest else ""

    def header(self) -> ExportHeader:
        """Reads the first line."""
        for text in self._texts():
            self._header = parse_header(text)
            return self._header
        raise ExportError("the file is empty", 1)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """The lines of objects and tombstones; that of the digest is compared with the others."""
        for text in self._texts():
            yield self.number, text

    def _texts(self) -> Iterator[str]:
        while data := self._file.readline(MAX_LINE + 1):
            self.is_at_end = False
            self.number += 1
            if len(data) > MAX_LINE:
                raise ExportError(TOO_LONG, self.number)
            self._taken(len(data))
            if self.number == 1:
                data = data.removeprefix(BYTE_ORDER_MARK)
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ExportError(f"this line is not UTF-8: {error.reason}", self.number) from None
            if is_end(data) and self._claimed is None:
                self._claimed = parse_end(text, self.number)
                continue
            self._digest.update(data.rstrip(b"\r\n") + b"\n")
            yield text
        self.is_at_end = True

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
