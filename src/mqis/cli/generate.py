"""``mqis generate``: journals and exports of a synthetic enterprise, with planted faults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mqis.cli.options import JsonOption, make_writable
from mqis.cli.output import error_console, print_json, say
from mqis.lab.generate import GeneratePlan
from mqis.lab.generate import generate as make
from mqis.texts import counted

_COLUMNS = (
    TextColumn("generating"),
    BarColumn(),
    TaskProgressColumn(),
    TimeRemainingColumn(),
)


def generate(
    directory: Annotated[
        Path, typer.Argument(help="A new or empty directory.", show_default=False)
    ],
    *,
    sites: Annotated[int, typer.Option(min=1, help="Sites; each has a PSC.")] = 3,
    backups: Annotated[
        int | None,
        typer.Option(
            min=0, help="Sites that have a BSC. Default: two of three.", show_default=False
        ),
    ] = None,
    machines: Annotated[int, typer.Option(min=1, help="Machines besides the servers.")] = 20,
    queues: Annotated[int, typer.Option(min=1, help="Queues at the start.")] = 100,
    changes: Annotated[int, typer.Option(min=0, help="Changes after the start.")] = 2000,
    faults: Annotated[int, typer.Option(min=0, help="Faults of each kind.")] = 1,
    hygiene: Annotated[
        int, typer.Option(min=0, help="Faults of each kind in the directory itself ('mqis check').")
    ] = 0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 1,
    churn: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of changes that create a queue.")
    ] = 0.1,
    live: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Replicate only the last N changes to all servers one by one; most servers get "
            "earlier changes by a synchronisation. Default: all changes.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Generate journals and exports of all servers, with planted faults listed in a manifest."""
    make_writable(directory)
    plan = GeneratePlan(
        sites, machines, queues, changes, seed, backups, faults, churn, live, hygiene
    )
    console = error_console()
    visible = console.is_terminal
    with Progress(*_COLUMNS, console=console, transient=True, disable=not visible) as bar:
        task = bar.add_task("generating", total=changes)
        made = make(plan, directory, lambda done, total: bar.update(task, completed=done))
    if json:
        print_json(made.as_json())
        return
    say(
        f"{directory}: {counted(made.changes, 'change')} at {counted(len(made.members), 'server')}"
        f" in journals/ and exports/; {counted(len(made.faults), 'fault')} in manifest.json"
    )
