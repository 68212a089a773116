"""``mqis pipeline sql``: questions about the tables, in names and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import cell, error_console, print_json
from mqis.cli.pipeline.opening import interruptible, opened_tables
from mqis.cli.pipeline.options import TableOptions
from mqis.cli.pipeline.output import plain_row, print_rows

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
        text = f"these are the first {limit:,} rows; --limit shows more"
        error_console().print(cell(text, "yellow"), soft_wrap=True)


def _columns(opened: TableStore) -> dict[str, list[str]]:
    from mqis.pipeline.readable import readable_tables  # noqa: PLC0415

    made = readable_tables(opened, opened.names())
    return {name: frame.columns for name, frame in made.items()}
