"""``mqis journal``: shows and checks the journal of a server."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer
from rich.tree import Tree

from mqis.cli.decode import grow
from mqis.cli.journal_check import JournalArgument, KeysOption, check, key
from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, print_json, print_json_line, say
from mqis.places import parse_place
from mqis.protocol.errors import StorageError
from mqis.runtime.node.signer import read_public_key
from mqis.storage.archive import Archiver, archived_journals, restore_journal
from mqis.storage.archive.restoring_journals import ArchivedJournal
from mqis.storage.journal.checking import server_id_of
from mqis.storage.journal.journal_reader import Follower, records
from mqis.texts import counted, iso_moment
from mqis.views.presentation.records import everything, record_summary, what
from mqis.wire.journal import Corrupt, Whole

# --- ``mqis journal archive`` and ``mqis journal restore``: journals in an archive ----------------

ArchiveArgument = Annotated[
    str,
    typer.Argument(
        metavar="URI",
        help="The archive: a directory, or a URI such as s3://BUCKET/PATH.",
        show_default=False,
    ),
]


def archive(directory: JournalArgument, uri: ArchiveArgument, json: JsonOption = False) -> None:
    """Copy closed segments and snapshots to an archive, once. A server does so by itself.

    Each copy is read back and compared. Files that are there already are not copied again. Do not
    run this while the server archives the same journal.
    """
    server = server_id_of(directory)
    if server is None:
        raise StorageError(f"journal {directory}: there is no segment in it that can be read")
    archiver = Archiver(directory, parse_place(uri), server)
    done = archiver.step()
    status = archiver.status()
    if json:
        print_json({"place": status.place, "files": done, "bytes": status.archived_bytes})
    else:
        say(f"ok: {counted(done, 'file')} archived, verified", "green")


def restore(
    uri: ArchiveArgument,
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", help="A new directory for the journal.", show_default=False
        ),
    ],
    *,
    journal: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The journal, if the archive has several: the server's GUID, or GUID.2.",
            show_default=False,
        ),
    ] = "",
    key: KeysOption = None,
    json: JsonOption = False,
) -> None:
    """Fetch a journal from an archive, check it, and write it to a new directory.

    Nothing is written if a file was changed, renamed or is too large.
    """
    chosen = _chosen(archived_journals(parse_place(uri)), uri, journal)
    keys = [read_public_key(path) for path in key or ()]
    result = restore_journal(chosen, directory, keys)
    if json:
        found = {"journal": chosen.name, "segments": result.segments, "records": result.records}
        print_json(found)
    else:
        told = counted(result.segments, "segment")
        say(f"ok: {directory}: {counted(result.records, 'record')} in {told}", "green")


def _chosen(journals: list[ArchivedJournal], uri: str, name: str) -> ArchivedJournal:
    place = parse_place(uri)
    if not journals:
        raise StorageError(f"{place}: there are no journals in it")
    if not name and len(journals) == 1:
        return journals[0]
    for journal in journals:
        if journal.name == name:
            return journal
    names = ", ".join(journal.name for journal in journals)
    raise StorageError(f"{place}: choose one of its journals with --journal: {names}")


# --- ``mqis journal``: shows and checks the journal of a server -----------------------------------

app = typer.Typer(help="Read the journal of a server.", no_args_is_help=True)

app.command()(check)
app.command()(key)
app.command()(archive)
app.command()(restore)

_POLL_S = 0.2
_COLUMNS = f"{'lsn':>10}  {'time':26}  {'state':12}  {'what':22}  {'seq':16}  {'peer':16}  object"


@app.command()
def tail(
    directory: JournalArgument,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Show this many of the existing records.")
    ] = 10,
    after: Annotated[
        int | None,
        typer.Option(
            metavar="LSN", help="Begin after the record of this number.", show_default=False
        ),
    ] = None,
    *,
    follow: Annotated[bool, typer.Option(help="Go on and show new records.")] = True,
    json: JsonOption = False,
) -> None:
    """Show the newest records, and new ones until you press Ctrl-C."""
    follower = Follower(directory, after or 0)
    entries: Any = follower.poll()
    if after is None:
        entries = deque(entries, lines)
    if not json:
        say(_COLUMNS, "bold")
    try:
        _print_entries(entries, json=json)
        while follow:
            sleep(_POLL_S)
            _print_entries(follower.poll(), json=json)
    except KeyboardInterrupt:
        return


def _print_entries(entries: list[Whole | Corrupt], *, json: bool) -> None:
    for entry in entries:
        if json:
            print_json_line(record_summary(entry))
        elif isinstance(entry, Whole):
            say(_line(entry))
        else:
            say(f"{'corrupt':>10}  offset {entry.offset}: {entry.reason}", "red")
    sys.stdout.flush()  # a reader of a pipe follows too


def _line(entry: Whole) -> str:
    record = entry.record
    object_id = str(record.object_id) if record.object_id else ""
    details = [object_id, f"({record.reason})" if record.reason else ""]
    return (
        f"{entry.lsn:>10}  {iso_moment(record.time_us):27}  {record.state.name.lower():12}  "
        f"{what(record):22}  {record.seq}  {record.peer:16}  {' '.join(filter(None, details))}"
    ).rstrip()


@app.command()
def show(
    directory: JournalArgument,
    which: Annotated[
        str,
        typer.Argument(metavar="LSN[-LSN]", help="A record number, or a range such as 17-20."),
    ],
    json: JsonOption = False,
) -> None:
    """Show all fields of one record or a range of them, with decoded bodies."""
    first, last = _range(which)
    found = list(_between(directory, first, last))
    if not found:
        raise StorageError(f"journal {directory}: there is no record {which}; {_held(directory)}")
    if json:
        print_json([everything(entry) for entry in found])
        return
    for entry in found:
        content = everything(entry)
        tree = Tree(cell(f"record {entry.lsn}: {what(entry.record)}", "bold"))
        grow(tree, content)
        console().print(tree)


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,19})(?:-(\d{1,19}))?", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is neither a number nor a range such as 17-20")
    first = int(match[1])
    return first, int(match[2] or first)


def _between(directory: Path, first: int, last: int) -> Iterator[Whole]:
    return takewhile(lambda entry: entry.lsn <= last, records(directory, first - 1))


def _held(directory: Path) -> str:
    lsns = [entry.lsn for entry in records(directory)]
    return f"it holds {lsns[0]} to {lsns[-1]}" if lsns else "it is empty"
