"""``mqis route``: the route of a message, explained and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, spread
from mqis.cli.output import print_json, say
from mqis.cli.routed import opened_directory
from mqis.protocol.routing.explain import Explanation, ObjectNames
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.routes.looking_up import compared, find_links
from mqis.views.routes.route_text import as_json, blame, explained, summary

DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="FILE",
        help="Read this file: one of 'mqis export', or a store.",
        show_default=False,
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LINK",
        help="Assume that this link failed: its GUID, SITE:SITE, its name as tables show it or "
        "its description. May be repeated.",
        show_default=False,
    ),
]
SvgOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the route into this file.", show_default=False),
]


@spread
def route(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="A machine, a queue (MACHINE\\QUEUE) or a site (its gate)."
        ),
    ],
    destination: Annotated[
        str, typer.Argument(metavar="TO", help="A machine, a queue (MACHINE\\QUEUE), or a site.")
    ],
    *,
    explain_: Annotated[
        bool, typer.Option("--explain", help="Show every decision and its alternatives.")
    ] = False,
    without: WithoutOption = None,
    svg: SvgOption = None,
    json: JsonOption = False,
    directory: DirectoryOption = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
) -> None:
    """Show the route of a message from one machine to another (MS-MQBR).

    If there is no route, the command names the cause, and its exit status is 1.
    """
    with opened_directory(directory, store, config, access) as routed:
        snapshot = routed.snapshot
        ends = routed.end(source), routed.end(destination)
    removed = [link for text in without or () for link in find_links(snapshot, text)]
    before = explain_between(snapshot, *ends) if removed else None
    left = snapshot.without_links(removed) if removed else snapshot
    found = explain_between(left, *ends)
    if svg is not None:
        _draw(left, found, svg)
    if json:
        print_json(as_json(found, left, before, removed))
    else:
        _show(found, left, before, [ObjectNames(snapshot).link(link) for link in removed], explain_)
    if found.breakage is not None:
        raise typer.Exit(1)


# --- output ---------------------------------------------------------------------------------------


def _show(
    found: Explanation,
    snapshot: Snapshot,
    before: Explanation | None,
    removed: list[str],
    in_full: bool,
) -> None:
    names = ObjectNames(snapshot)
    for line in explained(found, names) if in_full else summary(found, names):
        say(*line)
    if before is not None:
        say(f"without {'; '.join(removed)}: {compared(before, found)}")
    for line in blame(found, names):
        say(*line)


def _draw(snapshot: Snapshot, found: Explanation | None, path: Path) -> None:
    from mqis.views.sitemap.picture import (  # noqa: PLC0415 -- slow to load
        RouteCase,
        picture,
        write_picture,
    )

    write_picture(path, picture(RouteCase(snapshot, snapshot, route=found)))
