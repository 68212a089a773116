"""A connection to an Active Directory from a URL and credentials, with plain errors.

    ldaps://dc1.corp.example           one domain controller, by TLS
    ldap://dc1.corp.example            without TLS, encrypted by NTLM or Kerberos
    ldaps:///DC=corp,DC=example        the controllers of a domain, found by DNS

The logon is by Kerberos or NTLM; the password itself is sent only if the method is a simple bind.
The password comes from a file or from the environment, never from an argument: everybody on a
computer can read the arguments of a process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqis.config.passwords import find_ldap_password
from mqis.protocol.activedirectory.schema import DISPLAY_NAME, needed_names
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapError, LdapViolation
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.texts import joined
from mqis.wire.errors import MqisError
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Equality, Or

#: The category of the settings of a read-only domain controller (nTDSDSARO).
_READ_ONLY: Final = "CN=NTDS-DSA-RO,"
#: A bit of searchFlags: read-only domain controllers do not get the attribute (MS-ADTS 2.2.9).
_RODC_FILTERED: Final = 0x200


@dataclass(frozen=True, slots=True)
class ConnectingOptions:
    """The options of a command that connects to a directory."""

    urls: tuple[str, ...]
    user: str = ""
    password_file: Path | None = None
    ca_file: Path | None = None
    server_name: str | None = None
    start_tls: bool = False
    method: BindMethod = BindMethod.AUTOMATIC
    ccache: str | None = None
    keytab: str | None = None
    connect_timeout_s: float = 10.0
    operation_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RootEntry:
    """The root of a directory: its naming contexts and the server itself (MS-ADTS 3.1.1.3.2)."""

    domain: str
    configuration: str
    schema: str
    server: str
    host: str

    @classmethod
    def of(cls, entry: LdapEntry) -> RootEntry:
        return cls(
            entry.text("defaultNamingContext"),
            entry.text("configurationNamingContext"),
            entry.text("schemaNamingContext"),
            entry.text("serverName"),
            entry.text("dnsHostName"),
        )


async def connect(
    options: ConnectingOptions, environment: Mapping[str, str] = os.environ
) -> tuple[LdapDirectoryClient, RootEntry]:
    """Connects, logs on and reads the root; every failure is an ``MqisError``."""
    where = ", ".join(options.urls)
    client = LdapDirectoryClient(DomainControllers(settings_of(options, environment)))
    try:
        root = await read_root(client)
        await expect_all_attributes(client)
    except MqisError as error:
        await client.close()
        if isinstance(error, LdapError):
            raise explained(error) from error
        if isinstance(error, ProtocolError):
            raise MqisError(f"{where}: {error}") from error
        raise
    return client, root


async def expect_all_attributes(client: LdapDirectoryClient) -> None:
    """Refuses a read-only domain controller without attributes of Message Queuing.

    A forest may keep attributes from such controllers (fRODCFilteredAttribute, MS-ADTS 3.1.1.2.3).
    There every queue manager is in no site, for example, and nothing shows that it is in one.
    """
    root = await client.read("", ("dsServiceName", "schemaNamingContext"))
    service = "" if root is None else root.text("dsServiceName")
    found = await client.read(service, ("objectCategory",)) if service else None
    if root is None or found is None or not found.text("objectCategory").startswith(_READ_ONLY):
        return
    named = Or(tuple(Equality(DISPLAY_NAME, name.encode()) for name in needed_names()))
    asked = (DISPLAY_NAME, "searchFlags")
    query = LdapQuery(root.text("schemaNamingContext"), filter=named, attributes=asked)
    filtered = [
        entry.text(DISPLAY_NAME)
        async for entry in client.search(query)
        if int(entry.text("searchFlags") or 0) & _RODC_FILTERED
    ]
    if filtered:
        raise ProtocolError(
            f"a read-only domain controller, which this forest does not give "
            f"{joined(sorted(filtered), 3)}: name a writable one"
        )


async def read_root(client: LdapDirectoryClient) -> RootEntry:
    query = LdapQuery("", SearchScope.BASE, page_size=0)
    async for entry in client.search(query):
        root = RootEntry.of(entry)
        if root.domain and root.configuration:
            return root
        raise MqisError(
            f"{client.where}: this is an LDAP server, but not an Active Directory: its root has no "
            "defaultNamingContext"
        )
    raise MqisError(f"{client.where}: the server shows no root entry: not a directory")


def settings_of(options: ConnectingOptions, environment: Mapping[str, str]) -> LdapSettings:
    """The settings of a connection; a wrong URL or an unreadable password is an error."""
    password = None
    if options.user and not options.ccache and not options.keytab:
        password = find_ldap_password(
            options.user, options.password_file, "--password-file", environment
        )
    return LdapSettings(
        servers=tuple(LdapUrl.parse(url) for url in options.urls),
        login=LdapLogin(
            options.user,
            password,
            options.method,
            ccache=options.ccache,
            keytab=options.keytab,
        ),
        tls=TlsSettings(options.ca_file, options.server_name),
        start_tls=options.start_tls,
        connect_timeout_s=options.connect_timeout_s,
        operation_timeout_s=options.operation_timeout_s,
    )


def explained(error: MqisError) -> MqisError:
    """Adds what to do to the reason of a failure."""
    if isinstance(error, LdapViolation):
        return MqisError(f"{error}; is this the port of a directory server?")
    return MqisError(str(error))
