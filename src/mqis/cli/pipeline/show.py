"""``mqis pipeline show``: the first rows of a table, in names and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import print_json
from mqis.cli.pipeline.opening import interruptible, opened_tables
from mqis.cli.pipeline.options import TableOptions
from mqis.cli.pipeline.output import plain_row, print_rows, stored_rows

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore


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
