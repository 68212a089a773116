"""``mqis status``: the state of an enterprise's servers and partitions, live."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence, Set
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mqis.cli.findings import STYLES
from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption
from mqis.cli.output import cell, console, fitting, natural_width, print_json, table
from mqis.config.nodes import load_nodes
from mqis.enterprise.collected_status import Collector
from mqis.enterprise.status import (
    EnterpriseStatus,
    Lag,
    MatrixRow,
    MemberState,
    MemberStatus,
    sequence_text,
)
from mqis.findings import Gravity
from mqis.server.monitoring.verdict import FindingKind
from mqis.texts import and_more, counted, duration

#: The columns of the table of servers, and the order in which they are left out for lack of room.
_COLUMNS = (
    *("server", "role", "site", "state", "for", "process"),
    *("restarts", "behind", "queued", "sessions", "connections", "calls"),
)
_DROPPED = ("connections", "calls", "process", "site", "sessions", "queued", "restarts", "for")
#: From these widths on the table of partitions has these columns.
_ROOMY = {"authority": 100, "last": 0, "purged": 90}
_STYLES = {
    Lag.AUTHORITY: "bold green",
    Lag.IN_STEP: "green",
    Lag.DIFFERS: "bold red",
    Lag.UNKNOWN: "dim",
}
#: More servers than this are shown only if something is to be said of them, or with --all.
_MOST_SERVERS = 20


def status(
    servers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SERVER]...", help="Show only these.", show_default=False),
    ] = None,
    *,
    run: RunOption = DEFAULT_RUN,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Show every server, and every replica of every partition, in any width."
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Show the present state, then end.")] = False,
    json: JsonOption = False,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.2, max=3600.0, help="The time between two updates."),
    ] = 1.0,
) -> None:
    """Show servers, partitions, sequence numbers and lags; live on a terminal, until Ctrl-C.

    What is not as it should be comes first, and what does not fit is counted. --once and --json
    show the present state. Their exit status is 1 if a server is down, or if the verdict is red:
    'mqis doctor', /health and the console give the same one.
    """
    collector = Collector.of_run(run)
    found = collector.collect()
    target = console()
    chosen = {load_nodes(run).named(name).name for name in servers or ()}

    def shown(found: EnterpriseStatus) -> RenderableType:
        return as_tables(found, target.width, chosen=chosen, everything=all_)

    if json or once or not target.is_terminal:
        if json:
            print_json(found.to_json())
        else:
            target.print(shown(found))
        down = not all(server.up for server in found.servers)
        if down or found.verdict.gravity is Gravity.ERROR:
            raise typer.Exit(1)
        return
    with Live(shown(found), console=target, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(shown(collector.collect()), refresh=True)
        except KeyboardInterrupt:
            return


def as_tables(
    found: EnterpriseStatus,
    width: int,
    *,
    chosen: Set[str] = frozenset(),
    everything: bool = False,
) -> RenderableType:
    """The verdict, the servers and the partitions; ``chosen`` servers alone, if there are any."""
    up = sum(server.up for server in found.servers)
    title = Text(found.enterprise, style="bold")
    supervisor = "no supervisor" if found.supervisor is None else f"process {found.supervisor}"
    title.append(
        f"  {up} of {counted(len(found.servers), 'server')} up, {supervisor}", style="default"
    )
    verdict = found.verdict
    summary = cell(verdict.summary, STYLES[verdict.gravity])
    todo = [cell(f.todo, "red") for f in verdict.findings if f.check == FindingKind.CONTENTS]
    members = [s for s in found.servers if not chosen or s.name in chosen]
    listed = members
    if len(members) > _MOST_SERVERS and not everything:
        listed = [server for server in members if not server.is_fine]
    away = [
        cell(_explanation(server), "red") for server in listed if server.reason and not server.up
    ]
    archives = [cell(text, "yellow") for text in (s.late_archive for s in listed) if text]
    rest = len(members) - len(listed)
    others = counted(rest, "more server is", "more servers are")
    more = [cell(f"{others} up and in step: --all shows them")] if rest else []
    tables = [_servers(listed, found.taken, width)] if listed else []
    if len(todo) > _MOST_SERVERS:
        todo[_MOST_SERVERS:] = [cell(and_more(len(todo) - _MOST_SERVERS), "red")]
    shown: list[RenderableType] = [title, summary, *todo, ""]
    shown += [*tables, *away, *archives, *more, ""]
    return Group(*shown, _partitions(found, members, width, everything=everything))


def _explanation(server: MemberStatus) -> str:
    if server.state is MemberState.DOWN:
        return f"{server.name} {server.reason}"
    return f"{server.name} is {server.state.text}: {server.reason}"


def _servers(members: Sequence[MemberStatus], taken: float, width: int) -> Table:
    """The table of servers, with as many columns as there is room for."""
    rows = [_cells(server, taken) for server in members]
    made = fitting(_COLUMNS, rows, _DROPPED, width)
    for column in made.columns:  # what is still too wide is folded and not cut
        column.no_wrap = natural_width(made) <= width
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


def _partitions(
    found: EnterpriseStatus, members: Sequence[MemberStatus], width: int, *, everything: bool
) -> Table:
    """The partitions: the authority's numbers, and each replica where there is room for all."""
    names = dict.fromkeys(server.name for server in members)
    rows = [(row, [c for c in row.cells if c.server.name in names]) for row in found.rows]
    shown = [name for name, least in _ROOMY.items() if width >= least]
    about = {row.id: _numbers(row) for row in found.rows}
    matrix = table("partition", *shown, *names)
    for row, cells in rows:
        matrix.add_row(
            cell(row.name),
            *(cell(about[row.id][name]) for name in shown),
            *(cell(c.text, _STYLES.get(c.lag, "yellow")) for c in cells),
        )
    if everything or natural_width(matrix) <= width:
        return matrix
    counted = table("partition", "authority", "last", "replicas")
    for row in found.rows:
        numbers = about[row.id]
        counted.add_row(
            cell(row.name), cell(numbers["authority"]), cell(numbers["last"]), _replicas(row, names)
        )
    return counted


def _numbers(row: MatrixRow) -> dict[str, str]:
    authority, replica = row.authority, row.measure
    return {
        "authority": "(not in sight)" if authority is None else authority.server.name,
        "last": sequence_text(replica.last_seq),
        "purged": sequence_text(replica.purged_seq),
    }


def _replicas(row: MatrixRow, names: Collection[str]) -> Text:
    """The number of replicas in each state, those that differ with their names."""
    text = Text()
    for group in row.groups(names):
        style = _STYLES.get(group.lag, "yellow")
        text.append(f"{'; ' if text else ''}{group.text}", style=style)
    return text
