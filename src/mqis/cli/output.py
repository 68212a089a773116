"""The output of commands: tables and trees for people, JSON for programs.

rich is loaded by what needs it: it takes longer than all else that 'mqis COMMAND --json' does
before it begins, and a server prints one plain line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.texts import visible
from mqis.wire.errors import MqisError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

#: The width of tables that go into a pipe: cutting them to 80 columns would lose text.
_PIPE_WIDTH = 200
#: Escapes what would control a terminal or cannot be encoded.
plain = visible


def console() -> Console:
    """The console for results; made anew each time because tests exchange the stream."""
    return _console(stderr=False)


def error_console() -> Console:
    """The console for errors and progress."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if stderr else sys.stdout
    unbounded = not stream.isatty() and "COLUMNS" not in os.environ
    width = _PIPE_WIDTH if unbounded else None
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def cell(text: str, style: str = "") -> Text:
    """Text that is shown literally, markup characters included."""
    from rich.text import Text  # noqa: PLC0415

    return Text(plain(text), style=style, overflow="fold")


def table(*columns: str, title: Text | None = None) -> Table:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def natural_width(made: Table) -> int:
    """The width of a table for which there is room."""
    from rich.measure import Measurement  # noqa: PLC0415

    return Measurement.get(_unbounded(), _unbounded().options, made).maximum


@cache
def _unbounded() -> Console:
    """Measures how wide a table would be if there were room."""
    from rich.console import Console  # noqa: PLC0415

    return Console(width=100_000)


def fitting(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, RenderableType]],
    dropped: Sequence[str],
    width: int,
) -> Table:
    """A table with as many columns as there is room for; ``dropped`` are left out in this order."""
    for number in range(len(dropped) + 1):
        shown = [name for name in columns if name not in dropped[:number]]
        made = table(*shown)
        for column in made.columns:
            column.no_wrap = True
        for cells in rows:
            made.add_row(*(cells[name] for name in shown))
        if natural_width(made) <= width:
            break
    return made


def say(text: str, style: str = "") -> None:
    """Prints one line without wrapping it."""
    console().print(cell(text, style), soft_wrap=True)


def print_json(value: object) -> None:
    """Prints one JSON document in ASCII, with the keys in the order given."""
    print(json.dumps(value, indent=2))


def print_error(message: str) -> None:
    """Prints an error as one red line."""
    error_console().print(cell(f"mqis: {message}", "red"), soft_wrap=True)


def print_json_line(value: object) -> None:
    """Prints one JSON document on one line, at once: a program reads the output line by line."""
    print(json.dumps(value), flush=True)


def print_note(message: str) -> None:
    """Prints a remark on stderr, as one yellow line."""
    error_console().print(cell(f"note: {message}", "yellow"), soft_wrap=True)


# --- The question before a change that takes something away or brings it back ---------------------

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Needed in scripts.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan; change nothing.")]


def confirm(question: str, *, yes: bool) -> None:
    """Asks on a terminal; raises ``MqisError`` for a no, or if nobody can be asked."""
    if yes:
        return
    if not is_terminal():
        raise MqisError(
            "nothing was changed: there is no terminal to ask on; --yes confirms, and --dry-run "
            "shows the plan alone"
        )
    if not typer.confirm(question, default=False, err=True):
        raise MqisError("nothing was changed")


def is_terminal() -> bool:
    return sys.stdin.isatty()
