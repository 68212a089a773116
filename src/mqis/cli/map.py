"""``mqis map``: the map of an enterprise, as the console shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, spread
from mqis.cli.output import print_json, say
from mqis.cli.route import DirectoryOption, WithoutOption
from mqis.cli.routed import DirectoryReaders, opened_as
from mqis.protocol.errors import StorageError
from mqis.texts import counted
from mqis.views.routes.looking_up import find_end, find_links
from mqis.views.sitemap.charting import Chart, chart_of_export, chart_of_server, chart_of_view
from mqis.views.sitemap.picture import LinkLoads, RouteCase, loads_of

_CHARTS = DirectoryReaders(chart_of_export, chart_of_server, chart_of_view)


@spread
def map_(
    *,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to draw.", show_default=False)
    ] = None,
    source: Annotated[
        str, typer.Option("--from", metavar="MACHINE", help="Draw the route from this machine.")
    ] = "",
    destination: Annotated[
        str, typer.Option("--to", metavar="MACHINE", help="Draw the route to this machine.")
    ] = "",
    without: WithoutOption = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            "-t",
            metavar="DIRECTORY",
            help="The tables of 'mqis pipeline': the table traffic makes busy links thick.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
    directory: DirectoryOption = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
) -> None:
    """Draw the enterprise: sites, links with their costs, gates, and a route.

    The picture is the one of the console. --json prints its places, captions and widths.
    """
    if svg is None and not json:
        raise typer.BadParameter("give --svg FILE to draw the map, or --json to print it")
    if bool(source) != bool(destination):
        raise typer.BadParameter("--from and --to belong together")
    with opened_as(_CHARTS, directory, store, config, access) as found:
        chart = found
    case = _case(chart, source, destination, without or ())
    loads = None if tables is None else _loads(chart, tables)
    from mqis.views.sitemap.picture import map_of, picture, write_picture  # noqa: PLC0415 -- loads NumPy

    if svg is not None:
        write_picture(svg, picture(case, chart.roles, loads))
    if json:
        print_json(map_of(case, chart.roles, loads).as_json())
    else:
        snapshot = chart.snapshot
        sites, links = counted(len(snapshot.sites), "site"), counted(len(snapshot.links), "link")
        say(f"wrote {svg}: {sites}, {links}")


def _case(chart: Chart, source: str, destination: str, without: Sequence[str]) -> RouteCase:
    snapshot = chart.snapshot
    off = [link for text in without for link in find_links(snapshot, text)]
    ends = None
    if source:
        ends = find_end(snapshot, source), find_end(snapshot, destination)
    return RouteCase.of(snapshot, off, ends)


def _loads(chart: Chart, tables: Path) -> LinkLoads:
    found = loads_of(chart.snapshot, tables)
    if found is None:
        raise StorageError(
            f"{tables}: there is no table traffic that can be read: run 'mqis pipeline traffic', "
            "with 'mqis[pipeline]' installed"
        )
    return found
