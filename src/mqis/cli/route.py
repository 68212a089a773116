"""``mqis route``: the route of a message, explained and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, store_url
from mqis.cli.output import print_json, say
from mqis.cli.spread import spread
from mqis.protocol.routing.explain import Explanation, explain
from mqis.protocol.routing.snapshot import Snapshot
from mqis.protocol.routing.wording import ObjectNames
from mqis.views.routes.exported import snapshot_of_export
from mqis.views.routes.finding import compared, find_links, find_machine, snapshot_of_server
from mqis.views.routes.text import as_json, blame, explained, summary

DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="FILE",
        help="Read a file of 'mqis export' instead of a store or a server.",
        show_default=False,
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LINK",
        help="Assume that this link failed: its GUID, SITE:SITE or its description. May be "
        "repeated.",
        show_default=False,
    ),
]
SvgOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the route into this file.", show_default=False),
]


@spread
def route(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A machine, or a site (its gate).")],
    destination: Annotated[str, typer.Argument(metavar="TO", help="A machine, or a site.")],
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
    snapshot = read_directory(directory, store, config, access)
    ends = find_machine(snapshot, source), find_machine(snapshot, destination)
    removed = [link for text in without or () for link in find_links(snapshot, text)]
    before = explain(snapshot, *ends) if removed else None
    left = snapshot.without_links(removed) if removed else snapshot
    found = explain(left, *ends)
    if svg is not None:
        _draw(left, found, svg)
    if json:
        print_json(as_json(found, left, before, removed))
    else:
        _show(found, left, before, [ObjectNames(snapshot).link(link) for link in removed], explain_)
    if found.breakage is not None:
        raise typer.Exit(1)


# --- the directory --------------------------------------------------------------------------------


def read_directory(
    directory: Path | None, store: str | None, config: Path | None, access: OptionalLogonOptions
) -> Snapshot:
    """Reads the file, server or store that the options name, else the configured store."""
    if sum(given is not None for given in (directory, store, access.is_wanted or None)) > 1:
        raise typer.BadParameter("--directory, --store and --server exclude each other")
    if directory is not None:
        return snapshot_of_export(directory)
    if access.is_wanted:
        with connected(access.login()) as remote:
            return snapshot_of_server(remote)
    with opened(store_url(store, config)) as found, found.read() as view:
        return Snapshot.read(view)


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
    from mqis.views.sitemap.case import RouteCase  # noqa: PLC0415
    from mqis.views.sitemap.picture import picture, write_picture  # noqa: PLC0415 -- slow to load

    write_picture(path, picture(RouteCase(snapshot, snapshot, route=found)))
