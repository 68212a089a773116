"""``mqis routes``: the routes between all sites, and the pairs that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.login import OptionalLogonOptions
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, spread
from mqis.cli.output import cell, console, print_error, print_json, say, table
from mqis.cli.route import DirectoryOption
from mqis.cli.routed import read_directory
from mqis.extras import GRAPHS
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import and_more, counted, some
from mqis.wire.errors import MqisError

if TYPE_CHECKING:
    from mqis.protocol.routing.stuck import StuckMachines, StuckSites
    from mqis.views.routes.listing import StuckText

#: Pairs or machines that a row names.
_NAMED = 6


@spread
def routes(
    *,
    stuck: Annotated[
        bool,
        typer.Option("--stuck", help="Only pairs without a route, and machines that are cut off."),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Show this many rows.")] = 100,
    json: JsonOption = False,
    directory: DirectoryOption = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
) -> None:
    """Show the route between every two sites; with --stuck, who cannot reach whom, and why.

    With --stuck the exit status is 0 if everybody is reached, 1 if not, and 2 if the directory
    cannot be read.
    """
    try:
        GRAPHS.require("a table of the routes between all sites")
        snapshot = read_directory(directory, store, config, access)
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if stuck:
        _stuck(snapshot, limit, json)
    else:
        _all(snapshot, limit, json)


def _all(snapshot: Snapshot, limit: int, json: bool) -> None:
    from mqis.views.routes.listing import site_routes  # noqa: PLC0415 -- loads NumPy

    found = sorted(site_routes(snapshot), key=lambda route: (route.source, route.destination))
    if json:
        keys = "source", "destination", "cost", "next_hop"
        print_json([{key: getattr(route, key) for key in keys} for route in found])
        return
    shown = table("from", "to", "cost", "next site")
    for route in found[:limit]:
        cost = "no route" if route.cost is None else f"{route.cost:,}"
        texts = route.source, route.destination, cost, route.next_hop or ""
        shown.add_row(*map(cell, texts))
    console().print(shown)
    if len(found) > limit:
        say(f"{and_more(len(found) - limit)}: --limit {len(found)}", "dim")


def _stuck(snapshot: Snapshot, limit: int, json: bool) -> None:
    from mqis.protocol.routing.stuck import stuck_machines, stuck_sites  # noqa: PLC0415
    from mqis.views.routes.listing import StuckText, untold  # noqa: PLC0415

    sites, machines = stuck_sites(snapshot), stuck_machines(snapshot)
    words = StuckText(snapshot)
    pairs = sum(len(group.pairs) for group in sites)
    if json:
        print_json(
            {
                "pairs": pairs,
                "sites": [words.sites_json(group) for group in sites],
                "machines": [words.machines_json(group) for group in machines],
                "unknown": untold(snapshot),
            }
        )
    else:
        _show(snapshot, sites, machines, words, limit)
        if names := untold(snapshot):
            say(
                "cannot tell: gates that links name are not replicated; unless this is the copy of "
                f"the enterprise's authority (PEC), {some(names, _NAMED)} may have one that "
                "only the PEC knows",
                "yellow",
            )
    if sites or machines:
        raise typer.Exit(1)


def _show(
    snapshot: Snapshot,
    sites: list[StuckSites],
    machines: list[StuckMachines],
    words: StuckText,
    limit: int,
) -> None:
    number = len(snapshot.sites)
    pairs = sum(len(group.pairs) for group in sites)
    style = "bold red" if pairs else "green"
    every = f"{counted(number * (number - 1), 'pair')} of {counted(number, 'site')}"
    say(f"{pairs:,} of {every} without a route" if pairs else f"a route for all {every}", style)
    for one in sites[:limit]:
        say(f"{counted(len(one.pairs), 'pair')}: {words.reason(one.breakage)}", "red")
        say(f"  {some(words.pairs(one.pairs), _NAMED)}")
        say(f"  what to do: {words.advice(one.breakage)}")
    for group in machines[:limit]:
        cannot = "cannot send to other sites" if group.sending else "gets nothing from other sites"
        named = some(words.machines(group.machines), _NAMED)
        count = counted(len(group.machines), "machine")
        say(f"{count} {cannot}: {words.reason(group.breakage)}", "red")
        say(f"  {named}")
        say(f"  what to do: {words.advice(group.breakage)}")
