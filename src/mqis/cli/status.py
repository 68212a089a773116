"""``mqis status``: how the servers of an enterprise are, as it changes."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mqis.cli.enterprise import DEFAULT_RUN, RunOption
from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, print_json, table
from mqis.enterprise.collect import Collector, EnterpriseStatus, ReplicaRow, ServerRow

#: Of the table of servers, and how wide a terminal has to be for each.
_COLUMNS = {
    "server": 0,
    "role": 0,
    "site": 95,
    "state": 0,
    "for": 0,
    "process": 90,
    "restarts": 0,
    "behind": 0,
    "queued": 0,
    "sessions": 0,
    "connections": 125,
    "calls": 110,
}
#: From this width on there is a column for what a dot in the table says as well.
_ROOMY = 100
_AMOUNTS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def status(
    *,
    run: RunOption = DEFAULT_RUN,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    json: JsonOption = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, max=3600.0, help="Look again after.")
    ] = 1.0,
) -> None:
    """Show servers, partitions, numbers and lags; live on a terminal, until Ctrl-C.

    --once and --json take one look; their exit status is 1 if a server is down.
    """
    collector = Collector(run)
    found = collector.collect()
    target = console()
    if json or once or not target.is_terminal:
        if json:
            print_json(found.to_json())
        else:
            target.print(as_tables(found, target.width))
        if not all(server.up for server in found.servers):
            raise typer.Exit(1)
        return
    with Live(as_tables(found, target.width), console=target, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(as_tables(collector.collect(), target.width), refresh=True)
        except KeyboardInterrupt:
            return


def as_tables(found: EnterpriseStatus, width: int) -> RenderableType:
    up = sum(server.up for server in found.servers)
    title = Text(found.enterprise, style="bold")
    who = "nobody supervises it" if found.supervisor is None else f"process {found.supervisor}"
    title.append(f"  {up} of {len(found.servers)} servers up, {who}", style="default")
    if found.converged:
        title.append(", all replicas agree", style="green")
    away = [
        cell(f"{server.name} is {server.state}: {server.reason}", "red")
        for server in found.servers
        if server.reason and not server.up
    ]
    return Group(title, "", _servers(found, width), *away, "", _partitions(found, width))


def _servers(found: EnterpriseStatus, width: int) -> Table:
    """As many columns as there is room for."""
    columns = [name for name, least in _COLUMNS.items() if width >= least]
    made = table(*columns)
    for column in made.columns:
        column.no_wrap = True
    for server in found.servers:
        cells = _cells(server, found.taken)
        made.add_row(*(cells[name] for name in columns))
    return made


def _cells(server: ServerRow, taken: float) -> dict[str, RenderableType]:
    counted = {name: server.counters.get(name) for name in ("connections", "calls")}
    return {
        "server": cell(server.name),
        "role": cell(server.role),
        "site": cell(server.site),
        "state": _state(server),
        "for": "" if server.since is None else amount(taken - server.since),
        "process": "" if server.pid is None else str(server.pid),
        "restarts": str(server.restarts),
        "behind": _behind(server) if server.up else "",
        "queued": str(server.queued) if server.up else "",
        "sessions": f"{server.connected} of {server.neighbours}" if server.up else "",
        **{name: "" if n is None else f"{n:,.0f}" for name, n in counted.items()},
    }


def _state(server: ServerRow) -> Text:
    if server.up:
        return Text("up", style="green")
    return Text(server.state, style="dim" if server.state == "stopped" else "bold red")


def _behind(server: ServerRow) -> Text:
    if not server.behind:
        return Text("-", style="green")
    return Text(f"{server.behind} for {amount(server.behind_s or 0.0)}", style="yellow")


def _partitions(found: EnterpriseStatus, width: int) -> Table:
    """Partition by server: the last number, or how far behind it is."""
    rows: dict[str, dict[str, ReplicaRow]] = {}
    for server in found.servers:
        for row in server.partitions:
            rows.setdefault(row.id, {})[server.name] = row
    names = [server.name for server in found.servers]
    shown = {"authority": width >= _ROOMY, "last": True, "purged": width >= _COLUMNS["process"]}
    made = table("partition", *(name for name, there in shown.items() if there), *names)
    for held in sorted(rows.values(), key=lambda row: next(iter(row.values())).name):
        owner = next((name for name, row in held.items() if row.authority), "")
        first = held[owner] if owner else next(iter(held.values()))
        about = {
            "authority": cell(owner or "(down)"),
            "last": cell(_number(first.last_seq)),
            "purged": cell(_number(first.purged_seq)),
        }
        made.add_row(
            cell(first.name),
            *(about[name] for name, there in shown.items() if there),
            *(_replica(held.get(name)) for name in names),
        )
    return made


def _number(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _replica(row: ReplicaRow | None) -> Text:
    if row is None:
        return Text("", style="dim")
    if row.behind:
        return Text(f"-{row.behind}", style="yellow")
    text = "=" if row.behind == 0 else _number(row.last_seq)
    if row.authority:
        text = "●"
    style = "bold green" if row.authority else "green"
    return Text(text if row.state == "normal" else f"{text} {row.state}", style=style)


def amount(seconds: float) -> str:
    """12 s, 3 min, 5 h, 2 d."""
    for size, unit in _AMOUNTS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
