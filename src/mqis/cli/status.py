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
from mqis.services.enterprise.collect import Collector, EnterpriseStatus, ReplicaRow, ServerRow

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
            target.print(as_tables(found))
        if not all(server.up for server in found.servers):
            raise typer.Exit(1)
        return
    with Live(as_tables(found), console=target, auto_refresh=False, screen=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(as_tables(collector.collect()), refresh=True)
        except KeyboardInterrupt:
            return


def as_tables(found: EnterpriseStatus) -> RenderableType:
    up = sum(server.up for server in found.servers)
    title = Text(found.enterprise, style="bold")
    who = "nobody supervises it" if found.supervisor is None else f"process {found.supervisor}"
    title.append(f"  {up} of {len(found.servers)} servers up, {who}", style="default")
    if found.converged:
        title.append(", all replicas agree", style="green")
    return Group(title, "", _servers(found), "", _partitions(found))


def _servers(found: EnterpriseStatus) -> Table:
    made = table(
        *("server", "role", "site", "state", "for", "process", "restarts"),
        *("behind", "queued", "sessions", "connections", "calls"),
    )
    for server in found.servers:
        made.add_row(
            *map(cell, (server.name, server.role, server.site)),
            _state(server),
            "" if server.since is None else amount(found.taken - server.since),
            "" if server.pid is None else str(server.pid),
            str(server.restarts),
            *(_load(server) if server.up else [cell(server.reason, "dim"), "", "", "", ""]),
        )
    return made


def _state(server: ServerRow) -> Text:
    if server.up:
        return Text("up", style="green")
    return Text(server.state, style="dim" if server.state == "stopped" else "bold red")


def _load(server: ServerRow) -> list[RenderableType]:
    behind = Text("-", style="green")
    if server.behind:
        since = server.behind_s or 0.0
        behind = Text(f"{server.behind} for {amount(since)}", style="yellow")
    sessions = f"{server.connected} of {server.neighbours}"
    counted = [server.counters.get(name) for name in ("connections", "calls")]
    return [
        behind,
        str(server.queued),
        sessions,
        *("" if number is None else f"{number:,.0f}" for number in counted),
    ]


def _partitions(found: EnterpriseStatus) -> Table:
    """Partition by server: the last number, or how far behind it is."""
    rows: dict[str, dict[str, ReplicaRow]] = {}
    for server in found.servers:
        for row in server.partitions:
            rows.setdefault(row.id, {})[server.name] = row
    names = [server.name for server in found.servers]
    made = table("partition", "authority", "last", "purged", *names)
    for held in sorted(rows.values(), key=lambda row: next(iter(row.values())).name):
        owner = next((name for name, row in held.items() if row.authority), "")
        first = held[owner] if owner else next(iter(held.values()))
        made.add_row(
            *map(cell, (first.name, owner or "(down)")),
            _number(first.last_seq),
            _number(first.purged_seq),
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
    style = "bold green" if row.authority else "green"
    return Text(text if row.state == "normal" else f"{text} {row.state}", style=style)


def amount(seconds: float) -> str:
    """12 s, 3 min, 5 h, 2 d."""
    for size, unit in _AMOUNTS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
