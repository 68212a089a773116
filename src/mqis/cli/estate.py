"""``mqis estate``: checks an estate in Active Directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.activedirectory.estate.sources import (
    addresses_of,
    check_directory,
    check_ldif,
    entries_of,
    read_entries,
    resolve_recipient,
)
from mqis.admin.activedirectory.estate.stored import check_stored
from mqis.cli.findings import LimitOption, estate_json, show_report
from mqis.cli.ldap_login import LdapLogonOptions, is_ldap_url
from mqis.cli.localpaths import refuse_uri
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, spread, store_url
from mqis.cli.output import print_error, print_json, say
from mqis.files import output_file, write_whole
from mqis.findings import CheckReport, Finding
from mqis.protocol.activedirectory.estate.repairing import (
    lost_in,
    repairs_together,
    replaces,
    undo_of,
)
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif

_VERSION = "version: 1\n"
_REPLACED = (
    "all values are replaced, whatever they are by then: LDAP has no name for the old value (a "
    "deleted gate, a security descriptor)"
)
_UNDO = (
    "This takes the repairs back. A deleted entry comes back with a new objectGUID: the directory "
    "chooses it, and what names the old one (format names, settings, gates) does not find the "
    "entry. Nor do entries come back that the account may not read. A routing link to a deleted "
    "site comes back only if the site does first. To keep the identifier, restore the deleted "
    "object itself (Restore-ADObject) as long as the directory has it."
)
_LOST = "could not be read: this cannot be taken back"

app = typer.Typer(help="Check an estate in Active Directory.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Makes ``estate`` a group: without a callback, typer would make it a single command."""


@app.command()
@spread
def check(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL...|FILE...]",
            help="ldaps://DC, or LDIF files with the entries of a domain and of its "
            "configuration; of a forest, one of each domain. Default: the store.",
            show_default=False,
        ),
    ] = None,
    *,
    limit: LimitOption = 20,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Ask DNS for the addresses of computers.")
    ] = False,
    ldif: Annotated[
        Path | None,
        typer.Option(
            "--ldif",
            metavar="FILE",
            help="Write the repairs into a file, and what takes them back beside it: "
            "repairs.ldif, repairs.undo.ldif. Neither may be there already.",
            show_default=False,
        ),
    ] = None,
    catalogue: Annotated[
        str,
        typer.Option(
            "--catalogue",
            metavar="URL",
            help="A global catalogue of the forest, asked for what other domains may have. "
            "Default: port 3269 (3268 for ldap://) of the domain controller.",
            show_default=False,
        ),
    ] = "",
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    access: LdapLogonOptions,
) -> None:
    """Find what years leave behind in an Active Directory: cloned queue managers, machines
    without computers, links without gates, left settings, open queues, expired certificates.

    Each finding says why it hurts and how to mend it; nothing is written but the files of --ldif.
    At the end the command says what it could not see, how much, and with which right it would: a
    repair deletes only what was proved to be left over. Exit status 0 if nothing was found, 1 if
    something was, 2 if the source cannot be read.
    """
    if sources and store is not None:
        raise typer.BadParameter("URL or FILE, and --store exclude each other")
    online = any(map(is_ldap_url, sources or ()))
    if online and not all(map(is_ldap_url, sources or ())):
        raise typer.BadParameter("check files or domain controllers, not both together")
    try:
        if ldif is not None:
            _refuse_earlier(ldif)
        report = _report(sources or [], store, config, access, catalogue, resolve=resolve)
        if ldif is not None:
            _write_repairs(ldif, report, sources or [], access)
    except (MqisError, OSError) as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if json:
        print_json(estate_json(report))
    else:
        show_report(report, limit)
    if report.failed:
        raise typer.Exit(1)


@app.command()
@spread
def resolve(
    url: Annotated[
        str, typer.Argument(metavar="LDAPS://HOST", help="A domain controller.", show_default=False)
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A distribution list by its format name, or a list or a queue alias by its "
            "distinguished name.",
            show_default=False,
        ),
    ],
    *,
    json: JsonOption = False,
    access: LdapLogonOptions,
) -> None:
    """Print the format names that a distribution list or a queue alias stands for.

    A queue manager sends a message for it to each of these. Lists in lists are followed. One member
    that is no queue, alias or list makes a list useless: it is named. Exit status 2 then.
    """
    try:
        names = asyncio.run(resolve_recipient(access.connecting(url), name))
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if json:
        print_json({"name": name, "format_names": names})
    for found in () if json else names:
        say(found)


def _report(
    sources: list[str],
    store: str | None,
    config: Path | None,
    access: LdapLogonOptions,
    catalogue: str,
    *,
    resolve: bool,
) -> CheckReport:
    resolver = addresses_of if resolve else None
    if not sources:
        with opened(store_url(store, config)) as found, found.read() as view:
            return check_stored(view)
    if is_ldap_url(sources[0]):
        domains = [access.connecting(source) for source in sources]
        return asyncio.run(check_directory(domains, resolver, catalogue))
    for source in sources:
        refuse_uri(source)
    return check_ldif([Path(source) for source in sources], resolver)


def _write_repairs(
    path: Path, report: CheckReport, sources: list[str], access: LdapLogonOptions
) -> None:
    """Writes the repairs, and first what takes them back; a device or a pipe gets repairs alone."""
    if not _is_plain(path):
        with output_file(path) as out:
            out.write(repairs_of(report).encode())
        return
    changes = [change for finding in report.findings for change in finding.repair]
    names = {change.name for change in changes}
    undo = undo_text(report, _before(names, sources, access))
    _refuse_earlier(path)  # another check may have written meanwhile
    write_whole(_undo_file(path), undo, replace=False)
    write_whole(path, repairs_of(report), replace=False)


def _is_plain(path: Path) -> bool:
    return path.is_file() or not path.exists()


def _undo_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}.undo{path.suffix}")


def _refuse_earlier(path: Path) -> None:
    """Raises ``MqisError`` if repairs or their undo are there: they may have been applied.

    Then the undo file is the only way back, and a new one would not have it.
    """
    for each in (path, _undo_file(path)) if _is_plain(path) else ():
        if os.path.lexists(each):
            raise MqisError(
                f"{each} is there already; if repairs of an earlier check were applied, their undo "
                "file is the only way back: give --ldif another name, or remove both files"
            )


def _before(names: set[str], sources: list[str], access: LdapLogonOptions) -> dict[str, AddEntry]:
    """The entries that repairs change, as they are now."""
    if not names or not sources:
        return {}
    if is_ldap_url(sources[0]):
        return asyncio.run(read_entries([access.connecting(source) for source in sources], names))
    return entries_of([Path(source) for source in sources], names)


def repairs_of(report: CheckReport) -> str:
    """The repairs of all findings as one LDIF file, each after a comment that says what it is."""
    parts = [_VERSION]
    for finding, repair in repairs_together(report.findings):
        parts.append(f"\n{_comment(_about(finding))}")
        if any(replaces(change) for change in repair):
            parts.append(f"\n{_comment(_REPLACED)}")
        parts += write_ldif(repair, version=False)
    return "".join(parts)


def undo_text(report: CheckReport, before: Mapping[str, AddEntry]) -> str:
    """The changes that take all repairs back as one LDIF file, the last repair first."""
    parts = [_VERSION, f"\n{_comment(_UNDO)}\n"]
    for finding, repair in reversed(repairs_together(report.findings)):
        parts.append(f"\n{_comment(_about(finding))}")
        parts += [f"\n{_comment(f'{name} {_LOST}')}" for name in lost_in(repair, before)]
        parts += [*write_ldif(undo_of(repair, before), version=False)] or ["\n"]
    return "".join(parts)


def _about(finding: Finding) -> str:
    return f"{finding.check}: {finding.where}: {finding.detail}"


def _comment(text: str) -> str:
    """A comment of one line: a name may contain line feeds."""
    return f"# {' '.join(text.split())}"
