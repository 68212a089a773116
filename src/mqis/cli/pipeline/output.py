"""What the pipeline's commands print: results of one table or of all, and rows as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mqis.cli.output import cell, console, say, table
from mqis.cli.pipeline.options import InputOptions
from mqis.protocol.directory.types.property_words import property_word
from mqis.texts import counted
from mqis.views.presentation.rendering import cell_text
from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore


def stored_rows(tables: TableStore, name: str, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows of a table, or the first of them, in the order in which they are shown."""
    from mqis.pipeline.readable import in_order  # noqa: PLC0415

    rows = in_order(name, tables.read(name))
    return [row.asDict() for row in (rows if limit is None else rows.limit(limit)).collect()]


def say_ingested(done: dict[str, Any], tables: str) -> None:
    say(
        f"{tables}: {counted(done['records'], 'record')} and {counted(done['objects'], 'object')} "
        f"of {counted(done['servers'], 'server')}"
        + (f", {counted(done['packets'], 'captured message')}" if done["packets"] else "")
    )
    for kind, files in done["files"].items():
        say(f"read {files['read']:,} of {counted(files['files'], kind)}")
    if done["began_anew"]:
        say("another version of mqis made these tables, so all files were read again", "yellow")
    if done["errors"]:
        say(f"{counted(done['errors'], 'place')} could not be read: table errors", "yellow")
    if done["evidence"]:
        found = counted(done["evidence"], "finding")
        say(f"{found} about the journals and exports themselves: table evidence", "yellow")


def say_audited(done: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    for partition in done["unaudited"]:
        say(f"partition {partition}: not audited, there is no export of its authority", "yellow")
    if not done["servers"]:
        say("not audited: no export can be used; 'mqis pipeline show evidence' says why", "yellow")
        return
    if not rows:
        say(f"all replicas of {counted(done['servers'], 'server')} agree", "green")
        return
    say(counted(len(rows), "difference"), "bold red")
    shown = table("server", "difference", "object", "properties", "cause", "where")
    for row in rows:
        where = f"{row['source']} to {row['target']}" if row["source"] else ""
        reason = f" ({row['reason']})" if row["reason"] else ""
        subject = f"{row['type']} {row['path'] or row['id']}"
        listed = ", ".join(map(property_word, row["properties"]))
        texts = (row["server"], row["difference"], subject, listed, row["cause"] + reason, where)
        shown.add_row(*map(cell, texts))
    console().print(shown)


def say_lag(done: dict[str, Any]) -> None:
    say(
        f"{counted(done['ways'], 'way')} from authorities to replicas; "
        f"{counted(done['gaps'], 'gap')}, {counted(done['duplicates'], 'duplicate')}: "
        "tables lag, gaps, rounds"
    )


def say_conversations(done: dict[str, int]) -> None:
    counts = ", ".join(f"{number} {protocol}" for protocol, number in done.items())
    say(f"captured messages: {counts or 'none'}; tables packets, conversations")


def say_hygiene(found: dict[str, int]) -> None:
    """Prints the number of findings of each check, and the check's explanation."""
    from mqis.protocol.hygiene.checks import Check  # noqa: PLC0415 -- only this needs it

    say(f"hygiene: {counted(sum(found.values()), 'finding')}", "bold")
    for name, number in sorted(found.items()):
        say(f"  {name} {number:,}: {Check[name.upper()].value}")


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Prints a table; nothing if there are neither rows nor named columns."""
    if not rows and not columns:
        return
    shown = table(*(columns or rows[0]))
    for row in rows:
        shown.add_row(*(cell(cell_text(value)) for value in row.values()))
    console().print(shown)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in row.items()}


def plain_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return str(Guid(bytes(value))) if len(value) == 16 else bytes(value).hex()
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, int | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return str(value)


def everything(opened: TableStore, inputs: InputOptions, *, anew: bool = False) -> dict[str, Any]:
    """Builds all tables; returns their results by name, and the rows of ``divergence``.

    With ``anew`` nothing is kept of an earlier run.
    """
    from mqis.pipeline import runs  # noqa: PLC0415
    from mqis.pipeline.building import TableBuilder  # noqa: PLC0415

    read = runs.ingest(opened, inputs.journals, inputs.exports, inputs.captures, anew=anew)
    done: dict[str, Any] = {"ingest": asdict(read)}
    with TableBuilder(opened, anew=anew) as shared:
        if opened.has("objects"):
            done["audit"] = asdict(runs.audit(opened, shared))
            done["hygiene"] = runs.hygiene(opened, shared)
            done["routes"] = asdict(runs.routes(opened, shared))
            done["what_if"] = asdict(runs.what_if(opened, shared))
        if opened.has("records"):
            done["history"] = asdict(runs.history(opened, shared))
            done["lag"] = asdict(runs.lag(opened, shared))
        if opened.has("packets"):
            done["conversations"] = runs.conversations(opened, shared)
        runs.others(shared)
    return {**done, "divergence": stored_rows(opened, "divergence") if "audit" in done else []}


def say_everything(done: dict[str, Any], directory: str) -> None:
    """Prints a summary of the results."""
    say_ingested(done["ingest"], directory)
    if "audit" in done:
        say_audited(done["audit"], done["divergence"])
        say_hygiene(done["hygiene"])
        say("tables hygiene, routes, what_if")
    if "lag" in done:
        say_lag(done["lag"])
    if "conversations" in done:
        say_conversations(done["conversations"])
