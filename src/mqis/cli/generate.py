"""``mqis generate``: journals and exports of a made-up enterprise, faults included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mqis.cli.options import JsonOption
from mqis.cli.output import counted, error_console, print_json, say
from mqis.lab.generate import Plan
from mqis.lab.generate import generate as make

_COLUMNS = (
    TextColumn("generating"),
    BarColumn(),
    TaskProgressColumn(),
    TimeRemainingColumn(),
)


def generate(
    directory: Annotated[Path, typer.Argument(help="Where to; new or empty.", show_default=False)],
    *,
    sites: Annotated[int, typer.Option(min=1, help="Each has a PSC.")] = 3,
    backups: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many sites have a BSC. Default: two of three.", show_default=False
        ),
    ] = None,
    machines: Annotated[int, typer.Option(min=1, help="Besides the servers.")] = 20,
    queues: Annotated[int, typer.Option(min=1, help="To begin with.")] = 100,
    changes: Annotated[int, typer.Option(min=0, help="After that.")] = 2000,
    faults: Annotated[int, typer.Option(min=0, help="Of each kind.")] = 1,
    seed: Annotated[int, typer.Option(help="Same seed, same files.")] = 1,
    churn: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of changes that make a queue.")
    ] = 0.1,
    live: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Only the last so many changes reach all servers one by one; of those before, "
            "most servers hear by a synchronisation. Default: all do.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make journals and exports of all servers, with planted faults and a manifest of them."""
    plan = Plan(sites, machines, queues, changes, seed, backups, faults, churn, live)
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
