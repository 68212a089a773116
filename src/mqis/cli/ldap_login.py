"""The options of commands that connect to an Active Directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.runtime.ldap.binding import BindMethod
from mqis.runtime.ldap.passwords import PASSWORD, PASSWORD_FILE

LdapUserOption = Annotated[
    str,
    typer.Option(
        "--user",
        "-u",
        metavar="NAME@DOMAIN",
        envvar="MQIS_LDAP_USER",
        help="The account to log on as; an account that may only read is enough.",
        show_default=False,
    ),
]
LdapPasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help=f"The file whose first line is the password. Default: the one that {PASSWORD_FILE} "
        f"names, else the value of {PASSWORD}.",
        show_default=False,
    ),
]
LdapCaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="The certificates to trust. Default: those of the system.",
        show_default=False,
    ),
]
LdapServerNameOption = Annotated[
    str | None,
    typer.Option(
        "--server-name",
        metavar="NAME",
        help="The name in the certificate, if the URL has another one.",
        show_default=False,
    ),
]
StartTlsOption = Annotated[
    bool, typer.Option("--start-tls", help="Begin TLS on the port of ldap://.")
]
BindMethodOption = Annotated[
    BindMethod, typer.Option("--method", help="The logon: what the URL suggests, or one of these.")
]


@dataclass(frozen=True)
class LdapLogonOptions:
    """A logon to an Active Directory."""

    user: LdapUserOption = ""
    password_file: LdapPasswordFileOption = None
    ca_file: LdapCaFileOption = None
    server_name: LdapServerNameOption = None
    start_tls: StartTlsOption = False
    method: BindMethodOption = BindMethod.AUTOMATIC

    def connecting(self, *urls: str) -> ConnectingOptions:
        return ConnectingOptions(
            urls,
            self.user,
            self.password_file,
            self.ca_file,
            self.server_name,
            self.start_tls,
            self.method,
        )


def is_ldap_url(source: str) -> bool:
    """True for the URL of an LDAP server, also for a malformed one, which connecting reports."""
    return source.lower().startswith(("ldap:", "ldaps:"))
