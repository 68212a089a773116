"""``mqis import`` and ``mqis export``: read and write whole directories as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mqis.admin.transfer import ImportResult, export_file, export_store, import_file
from mqis.admin.transfer import Progress as Callback
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, claimed, opened, store_url
from mqis.cli.output import counted, error_console, print_json, say


def import_(
    file: Annotated[Path, typer.Argument(help="A file of 'mqis export'.", show_default=False)],
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="Keep sequence numbers, partitions and tombstones; the store must be empty.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Import a file into a store: all of it, or nothing.

    Objects get new sequence numbers; with --restore, the store becomes exactly the exported one.
    """
    with claimed(store_url(store, config), create=True) as target, _bar("importing") as progress:
        result = import_file(target, file, restore=restore, progress=progress)
    if json:
        print_json(_as_json(result))
    else:
        say(_summary(result))


def export(
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="The file to write; - is stdout.")
    ] = "-",
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Export a store as JSON Lines, for 'mqis import'. Equal stores give equal files."""
    with opened(store_url(store, config)) as source, _bar("exporting") as progress:
        if file == "-":
            export_store(source, sys.stdout.buffer, progress)
            sys.stdout.buffer.flush()
        else:
            lines = export_file(source, Path(file), progress)
            say(f"wrote {file}: {counted(lines, 'object')}, tombstones included")


@contextmanager
def _bar(what: str) -> Iterator[Callback]:
    """Shows a progress bar on stderr if that is a terminal."""
    target = error_console()
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _as_json(result: ImportResult) -> dict[str, object]:
    return {
        "objects": {kind.label: count for kind, count in result.objects.items()},
        "tombstones": result.tombstones,
        "skipped": result.skipped,
    }


def _summary(result: ImportResult) -> str:
    parts = [counted(number, kind.label) for kind, number in result.objects.items()]
    if result.tombstones:
        parts.append(counted(result.tombstones, "tombstone"))
    text = "imported " + (", ".join(parts) or "nothing")
    return f"{text}; skipped {counted(result.skipped, 'line')}" if result.skipped else text
