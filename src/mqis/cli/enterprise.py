"""The options that commands about a whole enterprise share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from mqis.config import nodes
from mqis.config.file import DEFAULT_NAME

DEFAULT_RUN = Path(nodes.DEFAULT_RUN)

RunOption = Annotated[
    Path,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        envvar=nodes.RUN,
        help="The directory in which the enterprise keeps its files.",
    ),
]
ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", show_default=False)]


def run_here(*named: object) -> Path | None:
    """The run directory of a command line that names nothing; None where a server has its own
    configuration, or where there is no run directory."""
    run = Path(os.environ.get(nodes.RUN, nodes.DEFAULT_RUN))
    if any(named) or Path(DEFAULT_NAME).exists() or not (run / nodes.FILE).is_file():
        return None
    return run
