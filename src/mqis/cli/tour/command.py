"""``mqis tour``: demonstrates an enterprise step by step.

Every step checks what it shows; a failed check ends the tour with status 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.output import console
from mqis.cli.tour.guide import Guide


def tour(
    directory: Annotated[
        Path,
        typer.Option(
            metavar="DIRECTORY", help="The directory for all files; replaces an earlier tour there."
        ),
    ] = Path("mqis-tour"),
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="End after the last step; without it, the console stays up."),
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            "-s",
            metavar="FILE",
            help="A short tour: only a directory, in this file. Nothing is left running.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Bring up a demonstration enterprise of five servers, show what it does, and check it."""
    guide = Guide(console())
    if store is not None:
        from mqis.cli.tour.file import whole  # noqa: PLC0415 -- each tour loads what it shows

        whole(guide, store)
        return
    from mqis.cli.tour.live import live  # noqa: PLC0415

    live(guide, directory, once=once)
