"""``mqis man``: writes the manual pages, from the same texts as ``--help``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.manual import pages
from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say
from mqis.files import write_whole
from mqis.protocol.errors import StorageError
from mqis.texts import counted


def man(
    directory: Annotated[
        Path,
        typer.Argument(
            help="The directory to write into; ~/.local/share/man/man1 is where man finds them.",
            show_default=False,
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Write the manual pages: mqis.1, and one page for each command, such as mqis-get.1."""
    from mqis.cli.main import app  # noqa: PLC0415 -- main imports the commands

    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in pages(typer.main.get_command(app)):
            write_whole(directory / name, text, 0o644)
            written.append(name)
    except OSError as error:
        raise StorageError(f"{directory}: cannot be written: {error.strerror or error}") from error
    if json:
        print_json({"directory": str(directory), "pages": written})
    else:
        say(f"wrote {counted(len(written), 'page')} into {directory}; 'man -l {directory}/mqis.1'")
