"""``mqis journal check`` and ``mqis journal key``: a journal as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mqis.cli.findings import journal_json, show_journal
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, configuration, opened, store_url
from mqis.cli.output import print_json, say
from mqis.findings import Finding
from mqis.places import Place, parse_place
from mqis.protocol.directory.object_sources import as_guid, no_such_object
from mqis.protocol.errors import StorageError
from mqis.protocol.journal import ChainState
from mqis.runtime.node.members import Members
from mqis.runtime.node.signer import read_public_key
from mqis.storage.archive import archived_journals
from mqis.storage.archive.restoring_journals import ArchivedJournal, fetch_journal
from mqis.storage.journal.checking import StoreEnd, check_journal, server_id_of
from mqis.storage.journal.journal_files import segments, snapshots
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.keyinfo import key_pem

JournalArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIRECTORY", help="The journal's directory, with its segments.", show_default=False
    ),
]
KeysOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="A public key of the server, in PEM. May be given several times.",
        show_default=False,
    ),
]


def check(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY|URI",
            help="The journal's directory, with its segments; or an archive, also as a URI.",
            show_default=False,
        ),
    ],
    *,
    key: KeysOption = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    signed: Annotated[
        bool,
        typer.Option("--signed", help="Fail also if a signature is absent or cannot be checked."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check for damaged, missing and changed records. Exit status 1 if there are any.

    Signatures are checked with the keys of --key, and with those that the directory in --store or
    --config has of the server. If the configuration is that of the journal's server, the end of the
    journal is compared with its store.
    """
    keys = [read_public_key(path) for path in key or ()]
    place = parse_place(directory)
    archived = [] if isinstance(place, Path) and _is_journal(place) else archived_journals(place)
    faulty = False
    for path in _journals(place, archived):
        end = None
        known = list(keys)
        if store is not None or config is not None:
            found, end = _from_store(path, store, config)
            known += found
        result = check_journal(path, known, end)
        faults = [f for f in result.findings if f.is_fault or (signed and _is_doubtful(f))]
        faulty = faulty or bool(faults)
        if archived and not json:
            say(f"{path.name}:", "bold")
        if json:
            print_json(journal_json(result, faults) | ({"journal": path.name} if archived else {}))
        else:
            show_journal(result, faults)
    if faulty:
        raise typer.Exit(1)


def _is_journal(directory: Path) -> bool:
    """Returns whether its files are in it; an archive has a directory for each journal."""
    return not directory.is_dir() or bool(segments(directory) or snapshots(directory))


def _journals(place: Place, archived: list[ArchivedJournal]) -> Iterator[Path]:
    """The directories to check; those of an archive are fetched, one after the other."""
    if isinstance(place, Path) and not archived:
        yield place
    elif not archived:
        raise StorageError(f"{place}: there are no journals in it")
    for journal in archived:
        with TemporaryDirectory(prefix="mqis-archive-") as made:
            target = Path(made) / journal.name
            target.mkdir()
            fetch_journal(journal, target)
            yield target


def _from_store(
    directory: Path, store: str | None, config: Path | None
) -> tuple[list[RsaPublicKey], StoreEnd | None]:
    """The keys of the journal's server, and the state of its store if that is the server's own."""
    server = server_id_of(directory)
    with opened(store_url(store, config)) as source:
        keys = [] if server is None else list(Members(source, {}).keys_of(server))
        if store is not None:  # perhaps that of another server
            return keys, None
        journal = configuration(config).replication.journal
        if not journal or Path(journal).resolve() != directory.resolve():
            return keys, None
        with source.read() as view:
            return keys, StoreEnd.of(view)


def _is_doubtful(finding: Finding) -> bool:
    return finding.check in (ChainState.UNSIGNED, ChainState.UNCHECKED)


def key(
    server: Annotated[
        str, typer.Argument(metavar="PATH_OR_GUID", help="The server's name, or its GUID.")
    ],
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Print the public keys that the directory has of a server, in PEM."""
    with opened(store_url(store, config)) as source:
        with source.read() as view:
            guid = as_guid(server)
            machine = view.find(ObjectType.MACHINE, server) if guid is None else None
        known = guid if machine is None else machine.id
        if known is None:
            raise no_such_object(ObjectType.MACHINE, server)
        keys = Members(source, {}).keys_of(known)
    if not keys:
        raise StorageError(f"the directory has no key of {server}")
    texts = [key_pem(found) for found in keys]
    if json:
        print_json({"server": str(known), "keys": texts})
    else:
        print("".join(texts), end="")
