"""``mqis pipeline``: analyses journals, exports and captures with Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, counted, error_console, print_json, say, table
from mqis.cli.spread import spread
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableDirectory

app = typer.Typer(
    help="Audit and rebuild a directory from journals and exports.", no_args_is_help=True
)

TablesOption = Annotated[
    Path, typer.Option("--tables", "-t", metavar="DIRECTORY", help="The tables' directory.")
]
JournalsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Directories of journals, of any number of servers; separate several by commas.",
        show_default=False,
    ),
]
ExportsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Exports, named SERVER.jsonl; separate several by commas.",
        show_default=False,
    ),
]
CapturesOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Captured traffic, pcap or pcapng; separate several by commas.",
        show_default=False,
    ),
]
MasterOption = Annotated[
    str,
    typer.Option(metavar="URL", help="The Spark master: local[*], spark://..., yarn or k8s://..."),
]
RemoteOption = Annotated[
    str,
    typer.Option(metavar="URL", help="A Spark Connect server, sc://...", show_default=False),
]
MemoryOption = Annotated[str, typer.Option(help="Memory for a local Spark.")]
TunedOption = Annotated[
    bool,
    typer.Option("--tuned/--untuned", help="Start a local Spark with settings for a quick start."),
]
_SEQ = re.compile(r"\d{1,15}|[0-9a-fA-F]{16}")


@dataclass(frozen=True)
class TableOptions:
    """The options that select the tables and the Spark that computes them."""

    tables: TablesOption = Path("tables")
    master: MasterOption = "local[*]"
    remote: RemoteOption = ""
    memory: MemoryOption = "2g"
    tuned: TunedOption = True


class NoSparkError(MqisError):
    """Spark is not installed."""


@contextmanager
def _tables(place: TableOptions, *inputs: str) -> Iterator[TableDirectory]:
    """Opens the tables in one Spark session, with a progress bar.

    The amount of data in them and in ``inputs`` decides the options that Java is started with.
    """
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError:
        raise NoSparkError(
            "the pipeline needs Spark: run 'make pipeline', or install mqis[pipeline]"
        ) from None
    from mqis.pipeline.session import Engine, is_large, session  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415
    from mqis.pipeline.watching import watched  # noqa: PLC0415

    large = is_large(place.tables, *inputs)
    engine = Engine(place.master, place.remote, place.tuned, place.memory, large=large)
    target = error_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=None)
        with session(engine) as opened:

            def show_progress(done: int, total: int) -> None:
                bar.update(task, description="computing", completed=done, total=total)

            with watched(opened, show_progress):
                yield TableDirectory(opened, place.tables)


@app.command()
@spread
def run(
    *,
    journals: JournalsOption = "",
    exports: ExportsOption = "",
    captures: CapturesOption = "",
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Run all jobs for which there is input, in one session."""
    with _tables(place, journals, exports, captures) as opened:
        from mqis.pipeline.jobs.audit import audit as audit_job  # noqa: PLC0415
        from mqis.pipeline.jobs.conversations import (  # noqa: PLC0415
            conversations as conversations_job,
        )
        from mqis.pipeline.jobs.history import history as history_job  # noqa: PLC0415
        from mqis.pipeline.jobs.hygiene import hygiene as hygiene_job  # noqa: PLC0415
        from mqis.pipeline.jobs.ingest import ingest as ingest_job  # noqa: PLC0415
        from mqis.pipeline.jobs.progress import lag as lag_job  # noqa: PLC0415
        from mqis.pipeline.jobs.routes import routes as routes_job  # noqa: PLC0415
        from mqis.pipeline.jobs.routes import what_if as what_if_job  # noqa: PLC0415

        ingested = ingest_job(opened, journals, exports, captures)
        done: dict[str, Any] = {"ingest": asdict(ingested)}
        if opened.has("objects"):
            done["audit"] = asdict(audit_job(opened))
            done["hygiene"] = hygiene_job(opened)
            done["routes"] = asdict(routes_job(opened))
            done["what_if"] = asdict(what_if_job(opened))
        if opened.has("records"):
            done["history"] = asdict(history_job(opened))
            done["lag"] = asdict(lag_job(opened))
        if opened.has("packets"):
            done["conversations"] = conversations_job(opened)
        rows = _divergence(opened) if "audit" in done else []
    if json:
        print_json({**done, "divergence": rows})
        return
    _say_ingested(done["ingest"], place.tables)
    if "audit" in done:
        _say_audited(done["audit"], rows)
        _say_hygiene(done["hygiene"])
        say("tables hygiene, routes, what_if")
    if "lag" in done:
        _say_lag(done["lag"])
    if "conversations" in done:
        _say_conversations(done["conversations"])


@app.command()
@spread
def ingest(
    *,
    journals: JournalsOption = "",
    exports: ExportsOption = "",
    captures: CapturesOption = "",
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Read journals, exports and captures into the tables records, objects, partitions, packets
    and errors."""
    with _tables(place, journals, exports, captures) as opened:
        from mqis.pipeline.jobs.ingest import ingest as job  # noqa: PLC0415

        done = asdict(job(opened, journals, exports, captures))
    if json:
        print_json(done)
    else:
        _say_ingested(done, place.tables)


@app.command()
@spread
def audit(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Compare all replicas with their authorities, and explain differences.

    Exit status 1 if there are any.
    """
    with _tables(place) as opened:
        from mqis.pipeline.jobs.audit import audit as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = _divergence(opened)
    if json:
        print_json({**done, "divergence": rows})
    else:
        _say_audited(done, rows)
    if rows:
        raise typer.Exit(1)


@app.command()
@spread
def lag(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Measure the replication lag of each replica, missing numbers, and synchronisations."""
    with _tables(place) as opened:
        from mqis.pipeline.jobs.progress import lag as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = [row.asDict() for row in opened.read("lag").collect()]
        missing = [row.asDict() for row in opened.read("gaps").collect()]
    if json:
        print_json({**done, "lag": rows, "gaps": missing})
        return
    _say_lag(done)
    _print(rows)
    _print(missing)


@app.command()
@spread
def hygiene(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Find faults in the directory on which all replicas agree: orphans, duplicates, ..."""
    with _tables(place) as opened:
        from mqis.pipeline.jobs.hygiene import hygiene as job  # noqa: PLC0415

        found = job(opened)
        rows = [row.asDict() for row in opened.read("hygiene").collect()]
        limits = [row.asDict() for row in opened.read("hygiene_limits").collect()]
    if json:
        print_json(rows)
    else:
        _say_hygiene(found)
        _print([{name: row[name] for name in row if name != "explanation"} for row in rows])
        for limit in limits:
            about = f"{limit['check']}: " if limit["check"] else ""
            say(f"cannot tell: {about}{limit['reason']}; {limit['advice']}", "yellow")


@app.command()
@spread
def routes(
    *,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Compute cost, next hop and path of the route for every pair of sites."""
    with _tables(place) as opened:
        from mqis.pipeline.jobs.routes import routes as job  # noqa: PLC0415

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
    with _tables(place) as opened:
        from mqis.pipeline.jobs.routes import what_if as job  # noqa: PLC0415

        done = asdict(job(opened))
        rows = [row.asDict() for row in opened.read("what_if").limit(limit).collect()]
    if json:
        print_json({**done, "worst": rows})
    else:
        say(f"{counted(done['failures'], 'failure')}, {done['cutting']} cut off pairs of sites")
        _print(rows)


@app.command()
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
    with _tables(place) as opened:
        from mqis.pipeline.jobs.traffic import traffic as job  # noqa: PLC0415

        done = asdict(job(opened, messages, failed=without))
        rows = [row.asDict() for row in opened.read("traffic").limit(limit).collect()]
    if json:
        print_json({**done, "loads": rows})
    else:
        _print(rows)


@app.command()
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
    chosen, time, seq = _point(at, partition)
    with _tables(place) as opened:
        from mqis.pipeline.jobs.rebuild import rebuild as job  # noqa: PLC0415

        done = job(opened, out, at_time=time, partition=chosen, at_seq=seq)
    for warning in done.warnings:
        error_console().print(cell(f"warning: {warning}", "yellow"), soft_wrap=True)
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
        time = datetime.fromisoformat(at)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return chosen, time if time.tzinfo else time.replace(tzinfo=UTC), None


@app.command()
@spread
def report(
    out: Annotated[Path, typer.Argument(help="The HTML file to write.")] = Path("report.html"),
    *,
    place: TableOptions,
) -> None:
    """Write one HTML file with charts of the tables; it needs no network."""
    with _tables(place) as opened:
        from mqis.pipeline.report import report as job  # noqa: PLC0415

        sections = job(opened, out)
    say(f"wrote {out}: {', '.join(sections) or 'nothing, there are no tables'}")


@app.command()
@spread
def stream(
    *,
    journals: JournalsOption,
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
    with _tables(place, journals) as opened:
        from mqis.pipeline.jobs.stream import follow  # noqa: PLC0415
        from mqis.pipeline.jobs.stream import stream as job  # noqa: PLC0415

        def print_batch(number: int, live: Any) -> None:
            rows = [row.asDict() for row in live.orderBy("server", "partition").collect()]
            wrong = [row.asDict() for row in opened.read("live_divergence").collect()]
            if json:
                plain = [_plain(row) for row in rows]
                print_json({"batch": number, "live": plain, "divergence": wrong})
            else:
                say(f"batch {number}", "bold")
                _print(rows)
                _print(wrong)

        query = job(opened, journals, every_s=every, once=once)
        try:
            follow(query, opened, print_batch)
        except KeyboardInterrupt:
            query.stop()


@app.command()
@spread
def show(
    name: Annotated[str, typer.Argument(metavar="TABLE", show_default=False)],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 20,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Show some rows of a table."""
    with _tables(place) as opened:
        rows = [row.asDict() for row in opened.read(name).limit(limit).collect()]
    if json:
        print_json([_plain(row) for row in rows])
    else:
        _print(rows)


# --- text output ----------------------------------------------------------------------------------


def _divergence(tables: TableDirectory) -> list[dict[str, Any]]:
    return [row.asDict() for row in tables.read("divergence").collect()]


def _say_ingested(done: dict[str, Any], tables: Path) -> None:
    say(
        f"{tables}: {counted(done['records'], 'record')} and {counted(done['objects'], 'object')} "
        f"of {counted(done['servers'], 'server')}"
        + (f", {counted(done['packets'], 'captured message')}" if done["packets"] else "")
    )
    if done["errors"]:
        say(f"{counted(done['errors'], 'place')} could not be read: table errors", "yellow")
    if done["evidence"]:
        found = counted(done["evidence"], "finding")
        say(f"{found} about the journals and exports themselves: table evidence", "yellow")


def _say_audited(done: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    for partition in done["unaudited"]:
        say(f"partition {partition}: not audited, there is no export of its authority", "yellow")
    if not rows:
        say(f"all replicas of {counted(done['servers'], 'server')} agree", "green")
        return
    say(counted(len(rows), "difference"), "bold red")
    shown = table("server", "difference", "object", "properties", "cause", "where")
    for row in rows:
        where = f"{row['source']} to {row['target']}" if row["source"] else ""
        reason = f" ({row['reason']})" if row["reason"] else ""
        subject = f"{row['type']} {row['path'] or row['id']}"
        listed = ", ".join(map(str, row["properties"]))
        texts = (row["server"], row["difference"], subject, listed, row["cause"] + reason, where)
        shown.add_row(*map(cell, texts))
    console().print(shown)


def _say_lag(done: dict[str, Any]) -> None:
    say(
        f"{counted(done['ways'], 'way')} from authorities to replicas; "
        f"{counted(done['gaps'], 'gap')}, {counted(done['duplicates'], 'duplicate')}: "
        "tables lag, gaps, rounds"
    )


def _say_conversations(done: dict[str, int]) -> None:
    counts = ", ".join(f"{number} {protocol}" for protocol, number in done.items())
    say(f"captured messages: {counts or 'none'}; tables packets, conversations")


def _say_hygiene(found: dict[str, int]) -> None:
    """Prints the number of findings of each check, and the check's explanation."""
    from mqis.protocol.hygiene.checks import Check  # noqa: PLC0415 -- only this needs it

    say(f"hygiene: {counted(sum(found.values()), 'finding')}", "bold")
    for name, number in sorted(found.items()):
        say(f"  {name} {number:,}: {Check[name.upper()].value}")


def _print(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    shown = table(*rows[0])
    for row in rows:
        shown.add_row(*(cell(str(value)) for value in _plain(row).values()))
    console().print(shown)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return str(Guid(bytes(value))) if len(value) == 16 else bytes(value).hex()
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, int | str | bool | list) or value is None:
        return value
    return str(value)
