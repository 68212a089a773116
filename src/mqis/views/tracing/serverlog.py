"""Reads the log of a server: line by line as it grows, or its last lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import BinaryIO

_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) (\w+) ")
#: The bytes at the end of a file in which its last lines are looked for.
_TAIL = 256 << 10


@dataclass(frozen=True, slots=True)
class LogLine:
    time: str
    server: str
    level: str
    text: str


class LogReader:
    """Reads one log as it grows; starts again if the file becomes shorter."""

    def __init__(self, name: str, path: Path) -> None:
        self._name, self._path = name, path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._last = LogLine("", name, "info", "")

    def more(self) -> list[LogLine]:
        if self._file is None or self._replaced():
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return []
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [self.line(text) for text in whole]

    def _replaced(self) -> bool:
        assert self._file is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        held = self._file.tell()
        return there.st_size < held

    def line(self, raw: bytes) -> LogLine:
        """Parses a line; one without a time takes time and level from the line before."""
        text = raw.decode("utf-8", "replace")
        moment, level = self._last.time, self._last.level
        if match := _TEXT.match(text):
            moment, level = match.groups()
        elif text.startswith("{"):
            try:
                content = loads(text)
                moment, level = str(content["time"]), str(content["level"])
            except (ValueError, KeyError, TypeError, RecursionError):
                pass
        self._last = LogLine(moment, self._name, level, text)
        return self._last


def last_lines(path: Path, name: str, number: int) -> list[LogLine]:
    """The last whole lines of a log, oldest first; reads only its end. Empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            raw = file.read(_TAIL)
    except OSError:
        return []
    lines = raw.split(b"\n")[:-1]
    if size > _TAIL:
        lines = lines[1:]  # it may begin within a line
    reader = LogReader(name, path)
    return [reader.line(line) for line in lines][-number:]
