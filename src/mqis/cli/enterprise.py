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
#: For commands that also work without a run directory; ``run_here`` is its default.
OptionalRunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        help="The run directory of 'mqis up', with all its servers. Default, where nothing else "
        "is named and no mqis.toml is: $MQIS_RUN, else ./mqis-run.",
        show_default=False,
    ),
]
ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", show_default=False)]


def default_run() -> Path:
    """The run directory of a command line that names none."""
    return Path(os.environ.get(nodes.RUN, nodes.DEFAULT_RUN))


def run_here(*named: object) -> Path | None:
    """The run directory of a command line that names nothing; None where a server has its own
    configuration, or where there is no run directory."""
    run = default_run()
    if any(named) or Path(DEFAULT_NAME).exists() or not (run / nodes.FILE).is_file():
        return None
    return run
