"""``mqis show``: everything about one server."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.findings import server_json, show_lines
from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption, ServerArgument
from mqis.cli.output import cell, console, plain, print_json, say, table
from mqis.config.nodes import load_nodes
from mqis.enterprise.collected_status import Collector
from mqis.enterprise.status import Lag, sequence_text
from mqis.texts import and_more
from mqis.views.console.servers import ServerPage, server_page
from mqis.views.tracing.serverlog import LogLine, last_lines

app = typer.Typer(help="Show everything about one server.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Show everything about one server."""


@app.command()
def server(
    name: ServerArgument,
    *,
    run: RunOption = DEFAULT_RUN,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=10_000, help="The number of log lines.")
    ] = 10,
    json: JsonOption = False,
) -> None:
    """Show a server: role, site, uptime, version, disk, memory, replicas, neighbours, log lines.

    What is not in step, or waits, comes first. The console has the same on a page. 'mqis sessions'
    lists the sessions of its clients. Exit status 1 if the server is down, or if something about
    it is red.
    """
    node = load_nodes(run).named(name)
    found = server_page(Collector.of_run(run).collect(), node.name)
    log = last_lines(Path(node.log), node.name, lines) if node.log and lines else []
    if json:
        print_json(_as_json(found, log))
    else:
        _print(found, log)
    if not found.member.up or any(finding.is_fault for finding in found.findings):
        raise typer.Exit(1)


def _print(found: ServerPage, log: list[LogLine]) -> None:
    say(found.member.name, "bold")
    if found.member.absence_text:
        say(found.member.absence_text, "red")
    show_lines(found.findings)
    facts = table("", "")
    facts.show_header = False
    for word, value in found.facts:
        facts.add_row(cell(word), cell(value))
    console().print(facts)
    if found.partitions.rows:
        _print_partitions(found)
    if found.neighbours.rows:
        _print_neighbours(found)
    for line in log:
        print(plain(line.text))


def _print_partitions(found: ServerPage) -> None:
    partitions = table("partition", "authority", "state", "last")
    for each in found.partitions.rows:
        style = "green" if each.lag in (Lag.AUTHORITY, Lag.IN_STEP) else "yellow"
        texts = cell(each.name), cell(each.owner), cell(each.text, style)
        partitions.add_row(*texts, sequence_text(each.last_seq))
    console().print(partitions)
    _rest(found.partitions.total - len(found.partitions.rows), "partition")


def _print_neighbours(found: ServerPage) -> None:
    neighbours = table("neighbour", "session", "waiting")
    for row in found.neighbours.rows:
        session = "open" if row.neighbour.connected else "none"
        neighbours.add_row(cell(row.neighbour.name), session, f"{row.neighbour.queued:,}")
    console().print(neighbours)
    _rest(found.neighbours.total - len(found.neighbours.rows), "neighbour")


def _rest(number: int, noun: str) -> None:
    if number:
        say(f"{and_more(number, noun)}: --json has them all", "dim")


def _as_json(found: ServerPage, log: list[LogLine]) -> dict[str, object]:
    return found.member.to_json() | {
        "peers": [asdict(peer) for peer in found.member.peers],
        "findings": server_json(found.findings),
        "log": [asdict(line) for line in log],
    }
