"""``mqis logs``: the log lines of all servers, merged in the order of time."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from json import dumps, loads
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from mqis.cli.enterprise import DEFAULT_RUN, RunOption
from mqis.cli.options import JsonOption
from mqis.cli.output import plain
from mqis.config.nodes import load_nodes
from mqis.config.sections import LogLevel

#: The name of the supervisor's own log.
SUPERVISOR = "supervisor"
_LEVELS = [level.value for level in LogLevel]
_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) (\w+) ")
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class LogLine:
    time: str
    server: str
    level: str
    text: str


def logs(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="[SERVER]",
            help=f"A server, or {SUPERVISOR}. Default: all.",
            show_default=False,
        ),
    ] = None,
    *,
    run: RunOption = DEFAULT_RUN,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on and show new lines.")
    ] = False,
    level: Annotated[
        LogLevel, typer.Option(help="Show this level and higher ones.")
    ] = LogLevel.DEBUG,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Show this many of the last lines; 0: all.")
    ] = 100,
    json: JsonOption = False,
) -> None:
    """Show the logs of servers, merged by time.

    With --json, each line is one JSON object.
    """
    readers = [_Reader(name, path) for name, path in _files(run, server)]
    least = _LEVELS.index(level.value)
    found = sorted((line for reader in readers for line in reader.more()), key=lambda li: li.time)
    chosen = [line for line in found if _rank(line) >= least]
    show = _show_json if json else partial(_show, alone=len(readers) == 1)
    for line in chosen[-lines:] if lines else chosen:
        show(line)
    try:
        while follow:
            sys.stdout.flush()
            time.sleep(_LOOK_S)
            for line in sorted((li for r in readers for li in r.more()), key=lambda li: li.time):
                if _rank(line) >= least:
                    show(line)
    except KeyboardInterrupt:
        return


def _files(run: Path, server: str | None) -> Iterator[tuple[str, Path]]:
    nodes = load_nodes(run)
    if server is not None and server != SUPERVISOR:
        node = nodes.named(server)
        yield node.name, Path(node.log)
        return
    if server is None:
        yield from ((node.name, Path(node.log)) for node in nodes)
    yield SUPERVISOR, run / f"{SUPERVISOR}.log"


def _rank(line: LogLine) -> int:
    return _LEVELS.index(line.level) if line.level in _LEVELS else len(_LEVELS)


def _show(line: LogLine, *, alone: bool) -> None:
    print(plain(line.text if alone else f"{line.server:12} {line.text}"))


def _show_json(line: LogLine) -> None:
    print(dumps(asdict(line)))


class _Reader:
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
        return [self._line(text.decode("utf-8", "replace")) for text in whole]

    def _replaced(self) -> bool:
        assert self._file is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        held = self._file.tell()
        return there.st_size < held

    def _line(self, text: str) -> LogLine:
        """Parses a line; one without a time takes time and level from the line before."""
        moment, level = self._last.time, self._last.level
        if match := _TEXT.match(text):
            moment, level = match.groups()
        elif text.startswith("{"):
            try:
                content = loads(text)
                moment, level = str(content["time"]), str(content["level"])
            except (ValueError, KeyError, TypeError):
                pass
        self._last = LogLine(moment, self._name, level, text)
        return self._last
