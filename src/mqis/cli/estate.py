"""``mqis estate``: checks an estate in Active Directory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.activedirectory.estate.sources import addresses_of, check_directory, check_ldif
from mqis.admin.activedirectory.estate.stored import check_stored
from mqis.cli.findings import LimitOption, estate_json, show_report
from mqis.cli.ldap_login import LdapLogonOptions, is_ldap_url
from mqis.cli.localpaths import refuse_uri
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, store_url
from mqis.cli.output import print_error, print_json
from mqis.cli.spread import spread
from mqis.files import output_file
from mqis.findings import CheckReport
from mqis.protocol.activedirectory.estate.findings import ldif_of
from mqis.wire.errors import MqisError

_VERSION = "version: 1\n"

app = typer.Typer(help="Check an estate in Active Directory.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Makes ``estate`` a group: without a callback, typer would make it a single command."""


@app.command()
@spread
def check(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL|FILE]",
            help="ldaps://DC, or an LDIF file with the entries of a domain and of its "
            "configuration. Default: the store.",
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
            "--ldif", metavar="FILE", help="Write the repairs into a file.", show_default=False
        ),
    ] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    access: LdapLogonOptions,
) -> None:
    """Find what years leave behind in an Active Directory: cloned queue managers, machines
    without computers, links without gates, left settings, open queues, expired certificates.

    Each finding says why it hurts and how to mend it; nothing is written but the file of --ldif.
    The command also says what its source cannot show. Exit status 0 if nothing was found, 1 if
    something was, 2 if the source cannot be read.
    """
    if source is not None and store is not None:
        raise typer.BadParameter("URL or FILE, and --store exclude each other")
    try:
        report = _report(source, store, config, access, resolve=resolve)
        if ldif is not None:
            with output_file(ldif) as out:
                out.write(repairs_of(report).encode())
    except (MqisError, OSError) as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if json:
        print_json(estate_json(report))
    else:
        show_report(report, limit)
    if report.failed:
        raise typer.Exit(1)


def _report(
    source: str | None,
    store: str | None,
    config: Path | None,
    access: LdapLogonOptions,
    *,
    resolve: bool,
) -> CheckReport:
    resolver = addresses_of if resolve else None
    if source is None:
        with opened(store_url(store, config)) as found, found.read() as view:
            return check_stored(view)
    if is_ldap_url(source):
        return asyncio.run(check_directory(access.connecting(source), resolver))
    refuse_uri(source)
    return check_ldif(Path(source), resolver)


def repairs_of(report: CheckReport) -> str:
    """The repairs of all findings as one LDIF file, each after a comment that says what it is."""
    parts = [_VERSION]
    for finding in report.findings:
        if finding.repair:
            what = f"{finding.check}: {finding.where}: {finding.detail}"
            comment = " ".join(what.split())  # one line: a name may contain line feeds
            parts.append(f"\n# {comment}{ldif_of(finding).removeprefix(_VERSION)}")
    return "".join(parts)
