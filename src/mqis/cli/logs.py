"""``mqis logs``: the log lines of all servers, merged in the order of time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption
from mqis.cli.output import plain, print_json_line
from mqis.config.nodes import load_nodes
from mqis.config.sections import LogLevel
from mqis.views.tracing.serverlog import LogLine, LogReader

#: The name of the supervisor's own log.
SUPERVISOR = "supervisor"
_LEVELS = [level.value for level in LogLevel]
_LOOK_S = 0.25


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
    readers = [LogReader(name, path) for name, path in _files(run, server)]
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
    print_json_line(asdict(line))
