"""The options that commands about a whole enterprise share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.config import nodes

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
