"""``mqis trace``: follows one change through all servers of an enterprise."""

from __future__ import annotations

from typing import Annotated

import typer

from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption
from mqis.cli.output import cell, console, print_json, print_note, say, table
from mqis.config.nodes import load_nodes
from mqis.texts import iso_moment
from mqis.views.tracing.change_timeline import ChangeTrace
from mqis.views.tracing.change_timeline import trace as follow


def trace(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The GUID of an object (for its last change), a change PARTITION:NUMBER, or a "
            "request SERVER:NUMBER, as in the logs.",
        ),
    ],
    *,
    run: RunOption = DEFAULT_RUN,
    json: JsonOption = False,
) -> None:
    """Follow one change from the client's call to the last replica.

    It is read from the logs and journals of all servers, which need not run.
    """
    found = follow(load_nodes(run), name)
    for fault in found.faults:
        print_note(f"left out: {fault}")
    if json:
        print_json(found.to_json())
        return
    _show(found)


def _show(found: ChangeTrace) -> None:
    for label, value in (("change", found.change), ("request", found.request)):
        if value is not None:
            say(f"{label:8} {value}")
    first = found.steps[0].time
    say(f"{'began':8} {iso_moment(int(first * 1e6), 3)}")
    made = table("ms", "server", "from", "event", "")
    for step in found.steps:
        details = ", ".join(f"{key} {value}" for key, value in step.details.items())
        after = f"{1000 * (step.time - first):.1f}"
        made.add_row(*map(cell, (after, step.server, step.source, step.event, details)))
    console().print(made)
