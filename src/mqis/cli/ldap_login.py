"""The options of commands that connect to an Active Directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.config.passwords import LDAP_PASSWORD, LDAP_PASSWORD_FILE
from mqis.runtime.ldap.ldap_logon import BindMethod

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
        help=f"The file whose first line is the password. Default: the one that "
        f"{LDAP_PASSWORD_FILE} names, else the value of {LDAP_PASSWORD}.",
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
#: A simple bind has an option of its own, so that nobody takes it for one way among others.
BindMethodOption = Annotated[
    Literal["automatic", "negotiate", "ntlm", "kerberos", "anonymous"],
    typer.Option(
        "--method",
        help="The logon. automatic: Kerberos or NTLM if there is a user; the server never gets the "
        "password.",
    ),
]
SimpleOption = Annotated[
    bool,
    typer.Option(
        "--simple",
        help="Log on by a simple bind, which sends the password itself: inside TLS only, for "
        "servers that know neither Kerberos nor NTLM.",
    ),
]

KeytabOption = Annotated[
    Path | None,
    typer.Option(
        "--keytab",
        metavar="FILE",
        help="Log on by Kerberos with the key of the account in this keytab, without a password; "
        "needs mqis[kerberos].",
        show_default=False,
    ),
]
TicketCacheOption = Annotated[
    str | None,
    typer.Option(
        "--ticket-cache",
        metavar="NAME",
        help="Log on by Kerberos with the tickets of this cache (kinit, KRB5CCNAME), without a "
        "password; needs mqis[kerberos].",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class LdapLogonOptions:
    """A logon to an Active Directory."""

    user: LdapUserOption = ""
    password_file: LdapPasswordFileOption = None
    ca_file: LdapCaFileOption = None
    server_name: LdapServerNameOption = None
    start_tls: StartTlsOption = False
    method: BindMethodOption = "automatic"
    simple: SimpleOption = False
    keytab: KeytabOption = None
    ticket_cache: TicketCacheOption = None

    def connecting(self, urls: str) -> ConnectingOptions:
        """The connection to a domain; ``urls`` are of its controllers, separated by blanks."""
        method = BindMethod(self.method)
        if self.simple:
            if method is not BindMethod.AUTOMATIC:
                raise typer.BadParameter("--simple and --method exclude each other")
            if not self.user:
                raise typer.BadParameter("--simple needs --user")
            method = BindMethod.SIMPLE
        if self.keytab is not None or self.ticket_cache is not None:
            method = self._by_tickets(method)
        return ConnectingOptions(
            tuple(urls.split()),
            self.user,
            self.password_file,
            self.ca_file,
            self.server_name,
            self.start_tls,
            method,
            ccache=self.ticket_cache,
            keytab=None if self.keytab is None else str(self.keytab),
        )

    def _by_tickets(self, method: BindMethod) -> BindMethod:
        """Without a password there is Kerberos alone."""
        if self.keytab is not None and self.ticket_cache is not None:
            raise typer.BadParameter("--keytab and --ticket-cache exclude each other")
        if self.keytab is not None and not self.user:
            raise typer.BadParameter("--keytab needs --user, the account whose key it has")
        if self.password_file is not None:
            raise typer.BadParameter("--password-file and a logon by tickets exclude each other")
        if method not in (BindMethod.AUTOMATIC, BindMethod.KERBEROS):
            raise typer.BadParameter("a logon by tickets is one by Kerberos")
        return BindMethod.KERBEROS


def is_ldap_url(source: str) -> bool:
    """True for the URL of an LDAP server, also for a malformed one, which connecting reports."""
    return source.lower().startswith(("ldap:", "ldaps:"))
