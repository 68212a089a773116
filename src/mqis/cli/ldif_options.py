"""The options of ``mqis export --ldif``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mqis.admin.activedirectory.exporting import LdifOptions


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
