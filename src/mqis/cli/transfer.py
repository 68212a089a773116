"""``mqis import`` and ``mqis export``: read and write whole directories as files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mqis.admin.transfer import (
    ImportResult,
    export_objects,
    export_store,
    import_file,
    write_export,
)
from mqis.admin.transfer import Progress as Callback
from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, claimed, opened, store_url
from mqis.cli.output import counted, error_console, print_json, say
from mqis.cli.sides import PermissionsOption
from mqis.cli.spread import spread
from mqis.config.claims import StoreInUse

if TYPE_CHECKING:
    from mqis.client.remote import Remote


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
    url = store_url(store, config)
    try:
        with claimed(url, create=True) as target, _bar("importing") as progress:
            result = import_file(target, file, restore=restore, progress=progress)
    except StoreInUse as error:
        raise StoreInUse(
            f"{error}. To add objects while it runs, create them through it: mqis create --server"
        ) from error
    if json:
        print_json(_as_json(result))
    else:
        say(_summary(result))


@spread
def export(
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="The file to write; - is stdout.")
    ] = "-",
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    permissions: PermissionsOption = True,
    json: JsonOption = False,
    access: OptionalLogonOptions,
) -> None:
    """Export a store, or a server's directory, as JSON Lines. Equal stores give equal files.

    A server does not tell sequence numbers and tombstones, so 'mqis import --restore' needs the
    export of a store.
    """
    if access.is_wanted:
        if store is not None:
            raise typer.BadParameter("--store and --server exclude each other")
        with connected(access.login()) as remote, _bar("exporting") as progress:
            write = partial(_export_server, remote, progress, permissions=permissions)
            _write(file, write, "as the user sees them", json=json)
    else:
        with opened(store_url(store, config)) as source, _bar("exporting") as progress:
            write = partial(export_store, source, progress=progress)
            _write(file, write, "tombstones included", json=json)


def _export_server(remote: Remote, progress: Callback, out: BinaryIO, *, permissions: bool) -> int:
    from mqis.client.whole import whole_directory  # noqa: PLC0415 -- only servers need it

    return export_objects(whole_directory(remote, progress, permissions=permissions), out)


def _write(file: str, write: Callable[[BinaryIO], int], remark: str, *, json: bool) -> None:
    if file == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        lines = write_export(Path(file), write)
        if json:
            print_json({"file": file, "objects": lines})
            return
        say(f"wrote {file}: {counted(lines, 'object')}, {remark}")


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
