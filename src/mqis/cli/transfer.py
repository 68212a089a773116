"""``mqis import`` and ``mqis export``: read and write whole directories as files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from mqis.admin.activedirectory.ldif import import_ldif, is_ldif
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.taking import EstateResult
from mqis.admin.transfer import (
    ImportResult,
    export_objects,
    export_store,
    import_file,
    silent,
    write_export,
)
from mqis.admin.transfer import Progress as Callback
from mqis.cli.findings import notes_json, show_notes
from mqis.cli.ldap_login import LdapLogonOptions, is_ldap_url
from mqis.cli.localpaths import refuse_uri
from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    PermissionsOption,
    StoreOption,
    claimed,
    opened,
    spread,
    store_url,
)
from mqis.cli.output import error_console, print_json, print_note, say
from mqis.config.claims import StoreInUse
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ports import Store, View
from mqis.texts import counted, joined

# --- The options of ``mqis export --ldif`` --------------------------------------------------------


@dataclass(frozen=True)
class LdifExportOptions:
    """An export for an Active Directory."""

    ldif: Annotated[
        Path | None,
        typer.Option(
            "--ldif",
            metavar="FILE",
            help="Write LDIF into this file; - is stdout.",
            show_default=False,
        ),
    ] = None
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="DN",
            help="With --ldif: the root domain, such as DC=corp,DC=example. Default: the "
            "enterprise's name, if it is one.",
            show_default=False,
        ),
    ] = ""
    computers: Annotated[
        str,
        typer.Option(
            "--computers",
            metavar="DN",
            help="With --ldif: the container of computers. Default: CN=Computers of the domain.",
            show_default=False,
        ),
    ] = ""
    identifiers: Annotated[
        bool,
        typer.Option(
            "--identifiers/--no-identifiers",
            help="With --ldif: write identifiers and sites, for a database that no server runs on. "
            "A running domain controller refuses identifiers.",
        ),
    ] = True
    accounts: Annotated[
        bool,
        typer.Option(
            "--accounts/--no-accounts",
            help="With --ldif: write a disabled account for each computer.",
        ),
    ] = True

    def options(self) -> LdifOptions:
        from mqis.admin.activedirectory.exporting import LdifOptions  # noqa: PLC0415 -- it is slow

        return LdifOptions(self.base, self.computers, self.identifiers, self.accounts)


# --- The commands ---------------------------------------------------------------------------------

if TYPE_CHECKING:
    from mqis.admin.activedirectory.exporting import LdifOptions
    from mqis.client.remote import Remote


@spread
def import_(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...|LDAPS://HOST...",
            help="A file of 'mqis export', LDIF files of an Active Directory, or the URL of a "
            "domain controller; of a forest, one of each domain.",
            show_default=False,
        ),
    ],
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
    directory: LdapLogonOptions,
) -> None:
    """Import a file or an Active Directory into a store: all of it, or nothing.

    Objects get new sequence numbers; with --restore, the store becomes exactly the exported one.
    Nothing is ever written to the Active Directory.
    """
    url = store_url(store, config)
    read = _reader(sources, restore=restore, directory=directory)
    try:
        with claimed(url, create=True) as target, progress_bar("importing") as progress:
            result = read(target, progress)
    except StoreInUse as error:
        raise StoreInUse(
            f"{error}. To add objects while it runs, create them through it: mqis create --server"
        ) from error
    if json:
        print_json(_as_json(result.imported) | notes_json(result.notes))
    else:
        say(_summary(result.imported))
        show_notes(result.notes)
    if result.imported.doubt:
        print_note(f"{sources[0]}: it was {result.imported.doubt}")


def _reader(
    sources: list[str], *, restore: bool, directory: LdapLogonOptions
) -> Callable[[Store, Callback], EstateResult]:
    """Returns the function that imports what the arguments name."""
    online = any(map(is_ldap_url, sources))
    if restore and (online or any(is_ldif(Path(source)) for source in sources)):
        raise typer.BadParameter("--restore needs a file of 'mqis export'")
    if online:
        if not all(map(is_ldap_url, sources)):
            raise typer.BadParameter("import files or domain controllers, not both together")
        from mqis.admin.activedirectory.online import import_online  # noqa: PLC0415 -- it is slow

        return partial(import_online, [directory.connecting(source) for source in sources])
    for source in sources:
        refuse_uri(source)
    paths = [Path(source) for source in sources]
    if all(map(is_ldif, paths)):
        return lambda store, progress: import_ldif(store, paths, progress)
    if len(paths) > 1:
        raise typer.BadParameter("several files can be imported together only if all are LDIF")
    return lambda store, progress: EstateResult(
        import_file(store, paths[0], restore=restore, progress=progress)
    )


@spread
def export(
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="The file to write; - is stdout.")
    ] = "-",
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    permissions: PermissionsOption = True,
    ldif: LdifExportOptions,
    json: JsonOption = False,
    access: OptionalLogonOptions,
) -> None:
    """Export a store, or a server's directory, as JSON Lines. Equal stores give equal files.

    A server does not tell sequence numbers and tombstones, so 'mqis import --restore' needs the
    export of a store. With --ldif, or into a file that ends in .ldif, write LDIF for an Active
    Directory instead.
    """
    if ldif.ldif is None and Path(file).suffix.casefold() == ".ldif":
        ldif = replace(ldif, ldif=Path(file))
    if ldif.ldif is not None:
        if access.is_given:
            raise typer.BadParameter("LDIF is written from a store, not from a server's directory")
        with opened(store_url(store, config)) as source, progress_bar("exporting") as progress:
            _write_ldif(source, ldif, progress, json=json)
        return
    if access.is_wanted(store, config):
        if store is not None:
            raise typer.BadParameter("--store and --server exclude each other")
        with connected(access.login()) as remote, progress_bar("exporting") as progress:
            write = partial(_export_server, remote, progress, permissions=permissions)
            _write(file, write, "as the user sees them", json=json)
    else:
        with opened(store_url(store, config)) as source, progress_bar("exporting") as progress:
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


def _write_ldif(source: Store, ldif: LdifExportOptions, progress: Callback, *, json: bool) -> None:
    notes = TransferNotes()
    assert ldif.ldif is not None
    with source.read() as view:
        write = partial(_ldif_of, view, ldif.options(), notes, progress)
        if str(ldif.ldif) == "-":
            write(sys.stdout.buffer)
            sys.stdout.buffer.flush()
            records = None
        else:
            records = write_export(ldif.ldif, write)
    if json and records is not None:
        print_json({"file": str(ldif.ldif), "records": records} | notes_json(notes))
        return
    if records is not None:
        say(f"wrote {ldif.ldif}: {counted(records, 'record')}")
    show_notes(notes)


def _ldif_of(
    view: View, options: LdifOptions, notes: TransferNotes, progress: Callback, out: BinaryIO
) -> int:
    from mqis.admin.activedirectory.exporting import export_ldif  # noqa: PLC0415 -- only for LDIF

    return export_ldif(view, out, options, notes, progress)


@contextmanager
def progress_bar(what: str) -> Iterator[Callback]:
    """Shows a progress bar on stderr if that is a terminal."""
    target = error_console()
    if not target.is_terminal:
        yield silent
        return
    from rich.progress import (  # noqa: PLC0415 -- nobody waits for it who does not see it
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=target, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _as_json(result: ImportResult) -> dict[str, object]:
    return {
        "objects": {kind.label: count for kind, count in result.objects.items()},
        "tombstones": result.tombstones,
        "skipped": result.skipped,
        "doubt": result.doubt or None,
    }


def _summary(result: ImportResult) -> str:
    parts = [counted(result.objects[kind], kind.label) for kind in ORDER if result.objects[kind]]
    if result.tombstones:
        parts.append(counted(result.tombstones, "tombstone"))
    text = "imported " + (", ".join(parts) or "nothing")
    if not result.skipped:
        return text
    deleted = result.skipped_tombstones
    parts = [counted(deleted, "tombstone")] if deleted else []
    if result.skipped > deleted:
        parts.append("the enterprise, which exists")
    return f"{text}; skipped {joined(parts)}"
