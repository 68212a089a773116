"""``mqis status``: the state of an enterprise's servers and partitions, live."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mqis.cli.enterprise import DEFAULT_RUN, RunOption
from mqis.cli.findings import STYLES
from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, print_json, table
from mqis.enterprise.collect import Collector
from mqis.enterprise.status import (
    EnterpriseStatus,
    Lag,
    MemberState,
    MemberStatus,
    duration,
)
from mqis.findings import Gravity
from mqis.server.monitoring.verdict import FindingKind

#: The columns of the table of servers, each with the terminal width from which it is shown.
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
#: From this width on the table of partitions has a column for the authority.
_ROOMY = 100
_STYLES = {
    Lag.AUTHORITY: "bold green",
    Lag.IN_STEP: "green",
    Lag.DIFFERS: "bold red",
    Lag.UNKNOWN: "dim",
}
#: Seconds after which a closed file should be in the archive.
_LATE_ARCHIVE_S = 600


def status(
    *,
    run: RunOption = DEFAULT_RUN,
    once: Annotated[bool, typer.Option("--once", help="Show the present state, then end.")] = False,
    json: JsonOption = False,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.2, max=3600.0, help="The time between two updates."),
    ] = 1.0,
) -> None:
    """Show servers, partitions, sequence numbers and lags; live on a terminal, until Ctrl-C.

    --once and --json show the present state. Their exit status is 1 if a server is down, or if the
    verdict is red: 'mqis doctor', /health and the console give the same one.
    """
    collector = Collector.of_run(run)
    found = collector.collect()
    target = console()
    if json or once or not target.is_terminal:
        if json:
            print_json(found.to_json())
        else:
            target.print(as_tables(found, target.width))
        down = not all(server.up for server in found.servers)
        if down or found.verdict.gravity is Gravity.ERROR:
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
    supervisor = "no supervisor" if found.supervisor is None else f"process {found.supervisor}"
    title.append(f"  {up} of {len(found.servers)} servers up, {supervisor}", style="default")
    verdict = found.verdict
    summary = cell(verdict.summary, STYLES[verdict.gravity])
    todo = [cell(f.todo, "red") for f in verdict.findings if f.check == FindingKind.CONTENTS]
    away = [
        cell(_explanation(server), "red")
        for server in found.servers
        if server.reason and not server.up
    ]
    archives = [cell(text, "yellow") for text in map(_archive, found.servers) if text]
    servers = _servers(found, width)
    return Group(
        title, summary, *todo, "", servers, *away, *archives, "", _partitions(found, width)
    )


def _archive(server: MemberStatus) -> str:
    """One line about an archive that is behind; "" if it is not."""
    waiting, lag_s = (server.counters.get(f"archive_{name}", 0) for name in ("waiting", "lag_s"))
    if lag_s < _LATE_ARCHIVE_S:
        return ""
    return (
        f"{server.name}: {waiting:,.0f} files of the journal wait for the archive, the oldest for "
        f"{duration(lag_s)}; its log says why"
    )


def _explanation(server: MemberStatus) -> str:
    if server.state is MemberState.DOWN:
        return f"{server.name} {server.reason}"
    return f"{server.name} is {server.state.text}: {server.reason}"


def _servers(found: EnterpriseStatus, width: int) -> Table:
    """The table of servers, with as many columns as there is room for."""
    columns = [name for name, least in _COLUMNS.items() if width >= least]
    made = table(*columns)
    for column in made.columns:
        column.no_wrap = column.header != "state"
    for server in found.servers:
        cells = _cells(server, found.taken)
        made.add_row(*(cells[name] for name in columns))
    return made


def _cells(server: MemberStatus, taken: float) -> dict[str, RenderableType]:
    counted = {name: server.counters.get(name) for name in ("connections", "calls")}
    return {
        "server": cell(server.name),
        "role": cell(server.role),
        "site": cell(server.site),
        "state": _state(server),
        "for": "" if server.since is None else duration(taken - server.since),
        "process": "" if server.pid is None else str(server.pid),
        "restarts": str(server.restarts),
        "behind": _behind(server) if server.replicas else "",
        "queued": str(server.queued) if server.up else "",
        "sessions": f"{server.connected} of {len(server.peers)}" if server.up else "",
        **{name: "" if n is None else f"{n:,.0f}" for name, n in counted.items()},
    }


def _state(server: MemberStatus) -> Text:
    styles = {MemberState.READY: "green", MemberState.STOPPED: "dim"}
    return cell(server.state.text, styles.get(server.state, "bold red"))


def _behind(server: MemberStatus) -> Text:
    if not server.behind:
        return Text("-", style="green")
    jumped = any(replica.jumps for replica in server.replicas)
    amount = f"{server.distance.changes:,} + jump" if jumped else f"{server.behind:,}"
    return Text(f"{amount} for {duration(server.behind_s or 0.0)}", style="yellow")


def _partitions(found: EnterpriseStatus, width: int) -> Table:
    """The table of partitions: the authority's numbers, and the state of each replica."""
    names = [server.name for server in found.servers]
    shown = {"authority": width >= _ROOMY, "last": True, "purged": width >= _COLUMNS["process"]}
    made = table("partition", *(name for name, there in shown.items() if there), *names)
    for row in found.rows:
        held = [c for c in row.cells if c.replica is not None]
        first = next((c for c in held if c.replica and c.replica.authority), None)
        replica = (first or held[0]).replica
        assert replica is not None
        about = {
            "authority": cell("(not in sight)" if first is None else first.server.name),
            "last": cell(_number(replica.last_seq)),
            "purged": cell(_number(replica.purged_seq)),
        }
        made.add_row(
            cell(row.name),
            *(about[name] for name, there in shown.items() if there),
            *(cell(c.text, _STYLES.get(c.lag, "yellow")) for c in row.cells),
        )
    return made


def _number(digits: str) -> str:
    return digits.lstrip("0") or "0"
