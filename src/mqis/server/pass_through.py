"""The store of a pass-through server, from its configuration (MS-MQDSSM).

Such a server keeps nothing itself: Active Directory replicates, so a role of our own replication
is refused.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.passwords import find_ldap_password
from mqis.config.sections import ActingAs, Config, ConfiguredRole, StoreSection
from mqis.config.stores import directory_urls
from mqis.runtime.activedirectory.callers import CallerConnections
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.authentication.delegation import ServiceTickets
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.runtime.ldap.spnego import SpnegoUser
from mqis.texts import joined


def open_directory(
    config: Config, environment: Mapping[str, str] = os.environ
) -> ActiveDirectoryStore:
    """Opens the Active Directory that a configuration names."""
    if config.server.role is not ConfiguredRole.NONE:
        raise ConfigError(
            f"server.role: {config.server.role.value} is a role of our own replication, and an "
            "Active Directory as the store replicates by itself; set server.role to none"
        )
    settings = ldap_settings(config.store, environment)
    return ActiveDirectoryStore(settings, sites_allowed=config.store.sites)


def ldap_settings(section: StoreSection, environment: Mapping[str, str]) -> LdapSettings:
    """The settings of the connection; ``ConfigError`` if a password is missing."""
    by_tickets = _by_tickets(section)
    file = Path(section.password_file) if section.password_file else None
    try:
        password = (
            find_ldap_password(section.user, file, "store.password_file", environment)
            if section.user and not by_tickets
            else None
        )
    except ConfigError as error:
        raise ConfigError(f"store.user: {error}") from error
    method = BindMethod.SIMPLE if section.simple else BindMethod.AUTOMATIC
    if by_tickets:
        method = BindMethod.KERBEROS
    return LdapSettings(
        servers=directory_urls(section.url),
        login=LdapLogin(
            section.user,
            password,
            method,
            ccache=section.ticket_cache or None,
            keytab=section.keytab or None,
        ),
        tls=TlsSettings(
            Path(section.ca_file) if section.ca_file else None, section.server_name or None
        ),
        connect_timeout_s=section.timeout_s,
        operation_timeout_s=5.0 * section.timeout_s,
    )


def _by_tickets(section: StoreSection) -> bool:
    """Returns whether the logon is by Kerberos without a password."""
    tickets = [key for key in ("keytab", "ticket_cache") if getattr(section, key)]
    others = [key for key in ("password_file", "simple") if getattr(section, key)]
    if len(tickets) > 1 or (tickets and others):
        named = joined([f"store.{key}" for key in (*tickets, *others)])
        raise ConfigError(f"{named} exclude each other: they are different ways to log on")
    if section.keytab and not section.user:
        raise ConfigError("store.keytab: it needs store.user, the account whose key it has")
    return bool(tickets)


# --- a server that acts as its callers ------------------------------------------------------------

#: Seconds between two looks at the tickets of the server's account.
_LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class ActingAsCallers:
    """What a server needs so that Active Directory judges its callers itself."""

    service: ServiceTickets
    connections: CallerConnections


async def act_as_callers(
    config: Config, directory: ActiveDirectoryStore, stack: AsyncExitStack
) -> ActingAsCallers | None:
    """Keeps the tickets of the server's account fresh until ``stack`` ends.

    None if the account of the server acts for all callers.
    """
    service = service_tickets(config)
    if service is None:
        return None
    await asyncio.to_thread(service.keep)
    keeping = asyncio.create_task(_keep(service))
    stack.callback(keeping.cancel)
    section = config.store
    connections = CallerConnections(
        directory.connection, section.caller_connections, sites_allowed=section.sites
    )
    stack.callback(connections.close)
    return ActingAsCallers(service, connections)


async def _keep(service: ServiceTickets) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        await asyncio.to_thread(service.keep)


def service_tickets(config: Config) -> ServiceTickets | None:
    """The tickets of the server's account, which those of callers are shown with; None for none."""
    store = config.store
    if store.acting_as is not ActingAs.CALLER:
        return None
    if not store.keytab and not store.ticket_cache:
        raise ConfigError(
            "store.acting_as: to act as its callers the server needs Kerberos tickets of its own; "
            "set store.keytab or store.ticket_cache"
        )
    if not config.security.keytab:
        raise ConfigError(
            "store.acting_as: callers log on by Kerberos; set security.keytab to a keytab with the "
            "key of the account of store.user, such as store.keytab itself"
        )
    user = SpnegoUser(store.user).principal
    return ServiceTickets(user, keytab=store.keytab or None, ccache=store.ticket_cache or None)
