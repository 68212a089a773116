"""``mqis pipeline sql`` and ``show``: the tables in names and texts; ``init``: their project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import print_json, print_note, say
from mqis.cli.pipeline.opening import check_spark, interruptible, opened_tables
from mqis.cli.pipeline.options import InputOptions, TableOptions
from mqis.cli.pipeline.output import plain_row, print_rows, stored_rows
from mqis.texts import counted

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore

MOST_ROWS = 100_000


@interruptible
@spread
def sql(
    query: Annotated[
        str,
        typer.Argument(
            metavar="[QUERY]",
            help="A query in SQL. Without it, the tables and their columns are listed.",
            show_default=False,
        ),
    ] = "",
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST_ROWS, help="Show at most so many rows.")
    ] = 100,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Answer a query in SQL. The tables have names and texts instead of GUIDs and numbers.

    Nothing is changed: only queries are answered.
    """
    with opened_tables(place) as opened:
        if not query:
            columns = _columns(opened)
            print_json(columns) if json else print_rows(
                [{"table": name, "columns": ", ".join(known)} for name, known in columns.items()]
            )
            return
        from mqis.pipeline.sql import ask  # noqa: PLC0415

        answer = ask(opened, query, limit)
    rows = [plain_row(row) for row in answer.rows]
    if json:
        print_json(rows)
    else:
        print_rows(rows, answer.columns)
    if answer.more:
        print_note(f"only {counted(limit, 'row')}, and there are more: --limit shows them")


def _columns(opened: TableStore) -> dict[str, list[str]]:
    from mqis.pipeline.readable import readable_tables  # noqa: PLC0415

    made = readable_tables(opened, opened.names())
    return {name: frame.columns for name, frame in made.items()}


@spread
def init(
    directory: Annotated[Path, typer.Argument(help="The directory to write.", show_default=False)],
    *,
    inputs: InputOptions,
    schema: Annotated[
        str, typer.Option(help="The schema that the tables are made in; it has to exist.")
    ] = "default",
    json: JsonOption = False,
) -> None:
    """Write a project for Spark's own 'spark-pipelines run', which builds the same tables."""
    check_spark()
    from mqis.pipeline.inputs import PipelineInputs  # noqa: PLC0415
    from mqis.pipeline.project import COMMAND, write_project  # noqa: PLC0415

    chosen = PipelineInputs(inputs.journals, inputs.exports, inputs.captures)
    files = [str(path) for path in write_project(directory, chosen, schema)]
    if json:
        print_json({"files": files})
    else:
        say(f"wrote {', '.join(files)}")
        say(f"build the tables with: cd {directory} && {COMMAND}")


@interruptible
@spread
def show(
    name: Annotated[str, typer.Argument(metavar="TABLE", show_default=False)],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 20,
    raw: Annotated[
        bool, typer.Option("--raw", help="Show GUIDs and codes as they are stored, as --json does.")
    ] = False,
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Show some rows of a table, in names and words."""
    with opened_tables(place) as opened:
        rows = stored_rows(opened, name, limit) if json or raw else _in_words(opened, name, limit)
    if json:
        print_json([plain_row(row) for row in rows])
    else:
        print_rows(rows)


def _in_words(opened: TableStore, name: str, limit: int) -> list[dict[str, Any]]:
    from mqis.pipeline.readable import readable_rows  # noqa: PLC0415

    return [row.asDict(recursive=True) for row in readable_rows(opened, name, limit)]
