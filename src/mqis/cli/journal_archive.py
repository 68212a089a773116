"""``mqis journal archive`` and ``mqis journal restore``: journals in an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.journal_check import JournalArgument, KeysOption
from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say
from mqis.places import parse_place
from mqis.protocol.errors import StorageError
from mqis.runtime.node.signer import read_public_key
from mqis.storage.archive import Archiver, archived_journals, restore_journal
from mqis.storage.archive.restoring import ArchivedJournal
from mqis.storage.journal.checking import server_id_of
from mqis.texts import counted

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
