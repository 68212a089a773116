"""The commands of ``mqis pipeline``."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import print_json, print_note, say
from mqis.cli.pipeline.opening import (
    gathered,
    interrupted,
    interruptible,
    journals_of,
    opened_tables,
)
from mqis.cli.pipeline.options import (
    InputOptions,
    JournalsOption,
    PipelineRunOption,
    RebuildOption,
    TableOptions,
)
from mqis.cli.pipeline.output import (
    everything,
    plain_row,
    print_rows,
    say_audited,
    say_everything,
    say_hygiene,
    say_ingested,
    say_lag,
    stored_rows,
)
from mqis.cli.pipeline.report import REPORT, write_report
from mqis.cli.pipeline.report import report as report_command
from mqis.cli.pipeline.table_commands import init, show, sql
from mqis.texts import counted, parse_moment
from mqis.wire.guid import Guid

app = typer.Typer(no_args_is_help=True)

_SEQ = re.compile(r"\d{1,15}|[0-9a-fA-F]{16}")


@app.callback(invoke_without_command=True)
def _pipeline(context: typer.Context, run: PipelineRunOption = None) -> None:
    """Audit and rebuild a directory from journals and exports.

    'mqis pipeline --run DIRECTORY' alone reads the run directory of 'mqis up', running or stopped,
    runs all jobs and writes the report.
    """
    if run is None:
        return
    if context.invoked_subcommand is not None:  # as if the option stood behind the command
        context.default_map = {context.invoked_subcommand: {"run": str(run)}}
        return
    _run_all(InputOptions(), TableOptions(run=run), report=True)


@app.command()
@interruptible
@spread
def run(
    *,
    inputs: InputOptions,
    place: TableOptions,
    rebuild: RebuildOption = False,
    json: JsonOption = False,
) -> None:
    """Run all jobs for which there is input, in one session.

    Files that an earlier run has read, and that are as they were, are not read again.
    """
    _run_all(inputs, place, anew=rebuild, json=json)


@interruptible
def _run_all(
    inputs: InputOptions,
    place: TableOptions,
    *,
    anew: bool = False,
    json: bool = False,
    report: bool = False,
) -> None:
    chosen = gathered(inputs, place.run)
    with opened_tables(place, chosen) as opened:
        done = everything(opened, chosen, anew=anew)
        if report:
            write_report(opened, place.directory / REPORT)
    if json:
        print_json(done)
        return
    say_everything(done, place.shown)
    if report:
        say(f"wrote {place.directory / REPORT}")


@app.command()
@interruptible
@spread
def ingest(
    *,
    inputs: InputOptions,
    place: TableOptions,
    rebuild: RebuildOption = False,
    json: JsonOption = False,
) -> None:
    """Read journals, exports and captures into the tables records, objects, partitions, packets
    and errors.

    Files that an earlier run has read, and that are as they were, are not read again.
    """
    chosen = gathered(inputs, place.run)
    with opened_tables(place, chosen) as opened:
        from mqis.pipeline.runs import ingest as job  # noqa: PLC0415

        paths = chosen.journals, chosen.exports, chosen.captures
        done = asdict(job(opened, *paths, anew=rebuild))
    if json:
        print_json(done)
    else:
        say_ingested(done, place.shown)


@app.command()
@interruptible
@spread
def audit(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Compare all replicas with their authorities, and explain differences.

    Exit status 1 if there are any.
    """
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import audit as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = stored_rows(opened, "divergence")
    if json:
        print_json({**done, "divergence": rows})
    else:
        say_audited(done, rows)
    if rows:
        raise typer.Exit(1)


@app.command()
@interruptible
@spread
def lag(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Measure the replication lag of each replica, missing numbers, and synchronisations."""
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import lag as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = stored_rows(opened, "lag")
        missing = stored_rows(opened, "gaps")
    if json:
        print_json({**done, "lag": rows, "gaps": missing})
        return
    say_lag(done)
    print_rows(rows)
    print_rows(missing)


@app.command()
@interruptible
@spread
def hygiene(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Find faults in the directory on which all replicas agree: orphans, duplicates, ..."""
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import hygiene as job  # noqa: PLC0415

        found = job(opened)
        rows = stored_rows(opened, "hygiene")
        limits = stored_rows(opened, "hygiene_limits")
    if json:
        print_json(rows)
    else:
        say_hygiene(found)
        print_rows([{name: row[name] for name in row if name != "explanation"} for row in rows])
        for limit in limits:
            about = f"{limit['check']}: " if limit["check"] else ""
            say(f"cannot tell: {about}{limit['reason']}; {limit['advice']}", "yellow")


@app.command()
@interruptible
@spread
def routes(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Compute cost, next hop and path of the route for every pair of sites."""
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import routes as job  # noqa: PLC0415

        done = asdict(job(opened))
    if json:
        print_json(done)
    else:
        cut = f", {counted(done['unreachable'], 'pair')} without a route" * bool(
            done["unreachable"]
        )
        say(
            f"{counted(done['sites'], 'site')}, {counted(done['pairs'], 'pair')}{cut}: table routes"
        )


@app.command("what-if")
@interruptible
@spread
def what_if(
    *,
    place: TableOptions,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Show this many of the worst.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Compute for every link and gate which pairs of sites its failure affects."""
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import what_if as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = stored_rows(opened, "what_if", limit)
    if json:
        print_json({**done, "worst": rows})
    else:
        say(f"{counted(done['failures'], 'failure')}, {done['cutting']} cut off pairs of sites")
        print_rows(rows)


@app.command()
@interruptible
@spread
def traffic(
    *,
    messages: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="CSV: source,destination,messages by machine name. Default: synthetic messages.",
            show_default=False,
        ),
    ] = "",
    without: Annotated[
        str,
        typer.Option(
            metavar="LINK", help="Assume that this link failed: 'SITE - SITE'.", show_default=False
        ),
    ] = "",
    place: TableOptions,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Show this many of the busiest.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Compute the messages that links and gates carry, also if a link failed."""
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import traffic as job  # noqa: PLC0415

        done = asdict(job(opened, messages, failed=without))
        rows = stored_rows(opened, "traffic", limit)
    if json:
        print_json({**done, "loads": rows})
    else:
        print_rows(rows)


@app.command()
@interruptible
@spread
def estate(
    findings: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Files of 'mqis estate check --json', or a directory of them; separate several "
            "by commas.",
            show_default=False,
        ),
    ],
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Follow the faults of an Active Directory: since when each is there, and which are mended.

    Exit status 1 if the newest check found any.
    """
    with opened_tables(place) as opened:
        from mqis.pipeline.runs import estate as job  # noqa: PLC0415

        counts = job(opened, findings)
        rows = stored_rows(opened, "estate")
    if json:
        print_json([plain_row(row) for row in rows])
    else:
        told = (f"{counts.get(state, 0)} {state}" for state in ("open", "mended", "unknown"))
        say(f"{counted(len(rows), 'fault')}: {', '.join(told)}: table estate")
        shown = ("check", "entry", "state", "detail", "first_found", "last_found")
        print_rows([{name: row[name] for name in shown} for row in rows])
    if counts.get("open"):
        raise typer.Exit(1)


@app.command()
@interruptible
@spread
def rebuild(
    out: Annotated[Path, typer.Argument(help="The export to write.", show_default=False)],
    *,
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME|SEQ",
            help="A time such as 2024-03-01T08:00:00Z; or, with --partition, a sequence number "
            "(decimal, or 16 hex digits).",
        ),
    ],
    partition: Annotated[
        str, typer.Option(metavar="GUID", help="Only this partition.", show_default=False)
    ] = "",
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Write the directory as it was at a time, for 'mqis import --restore'."""
    from mqis.pipeline.locations import local_path  # noqa: PLC0415

    out = local_path(out)
    chosen, time, seq = _point(at, partition)
    with opened_tables(place) as opened:
        from mqis.pipeline.rebuilding import rebuild as job  # noqa: PLC0415

        done = job(opened, out, at_time=time, partition=chosen, at_seq=seq)
    for warning in done.warnings:
        print_note(warning)
    if json:
        print_json(asdict(done))
    else:
        say(f"wrote {out}: {counted(done.lines, 'object')}, tombstones included")


def _point(at: str, partition: str) -> tuple[Guid | None, datetime | None, int | None]:
    try:
        chosen = Guid.parse(partition) if partition else None
        if _SEQ.fullmatch(at):
            if chosen is None:
                raise typer.BadParameter(
                    "a sequence number belongs to a partition: name it with --partition"
                )
            return chosen, None, int(at, 16 if len(at) == 16 else 10)
        time = parse_moment(at)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return chosen, time, None


@app.command()
@interruptible
@spread
def stream(
    *,
    journals: JournalsOption = "",
    once: Annotated[
        bool, typer.Option("--once", help="Read the present records, then end.")
    ] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1)] = 2.0,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Follow journals as they grow: show replicas that are behind or differ.

    Ctrl-C ends it; the next run continues from there.
    """
    if place.into:
        raise typer.BadParameter("a stream keeps its state in a directory: give --tables")
    journals = journals or journals_of(place.run)
    with opened_tables(place, InputOptions(journals), may_be_empty=True) as opened:
        from mqis.pipeline.streaming import follow  # noqa: PLC0415
        from mqis.pipeline.streaming import stream as job  # noqa: PLC0415
        from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415

        def print_batch(number: int, live: Any) -> None:
            rows = [row.asDict() for row in live.orderBy("server", "partition").collect()]
            wrong = stored_rows(opened, "live_divergence")
            if json:
                plain = [plain_row(row) for row in rows]
                print_json({"batch": number, "live": plain, "divergence": wrong})
            else:
                say(f"batch {number}", "bold")
                print_rows(rows)
                print_rows(wrong)

        kept = TableDirectory(opened.session, place.directory)
        query = job(kept, journals, every_s=every, once=once)
        try:
            follow(query, opened, print_batch)
        except KeyboardInterrupt:
            query.stop()
            interrupted("interrupted; the next 'mqis pipeline stream' continues from here")


app.command()(init)
app.command()(show)
app.command()(report_command)
app.command()(sql)
