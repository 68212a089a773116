"""Reads an estate from a domain controller or an LDIF file, and examines it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from time import time

from cryptography import x509

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.estate.asking import ask_catalogue, ask_domain
from mqis.findings import CheckReport
from mqis.protocol.activedirectory.entry import LdapEntry
from mqis.protocol.activedirectory.estate.examining import examine_estate
from mqis.protocol.activedirectory.estate.facts import EstateFacts, IpAddress
from mqis.protocol.activedirectory.estate.gathering import (
    CONFIGURATION_ATTRIBUTES,
    DOMAIN_ATTRIBUTES,
    EstateGathering,
)
from mqis.protocol.errors import StorageError
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.wire.ldap import controls
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.controls import SdFlags
from mqis.wire.ldap.filters import Filter, parse_filter
from mqis.wire.ldap.ldif import MAXIMUM_LINE, LdifError, read_ldif

_DOMAIN_FILTER = parse_filter(
    "(|(objectClass=mSMQConfiguration)(objectClass=mSMQQueue)(objectClass=computer)"
    "(servicePrincipalName=*)(objectClass=mSMQMigratedUser)(mSMQSignCertificates=*))"
)
_CONFIGURATION_FILTER = parse_filter(
    "(|(objectClass=site)(objectClass=subnet)(objectClass=mSMQSiteLink)(objectClass=mSMQSettings)"
    "(objectClass=server)(objectClass=crossRef))"
)
_READABLE_PARTS = controls.sd_flags(SdFlags.OWNER | SdFlags.GROUP | SdFlags.DACL)
#: Names that are resolved at the same time.
_RESOLVERS = 16

Resolve = Callable[[str], Iterable[IpAddress]]


def check_ldif(path: Path, resolve: Resolve | None = None) -> CheckReport:
    """Examines a dump of a directory; raises ``LdifError`` with file and line if it is damaged."""
    gathering = EstateGathering(int(time()), expiry_of)
    for record in _dumped(path):
        gathering.add(LdapEntry(record.name, record.attributes))
    return _examined(gathering.finish(), resolve)


def entries_of(path: Path, names: Collection[str]) -> dict[str, AddEntry]:
    """Entries of a dump by their names, with the attributes that it has."""
    return {record.name: record for record in _dumped(path) if record.name in names}


def _dumped(path: Path) -> Iterator[AddEntry]:
    try:
        with path.open("rb") as file:
            lines = iter(lambda: file.readline(MAXIMUM_LINE + 1), b"")
            for record in read_ldif(lines, str(path)):
                if not isinstance(record, AddEntry):
                    raise LdifError(
                        str(path), 0, f"{record.name} is a change; a dump of entries is wanted"
                    )
                yield record
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error


async def check_directory(
    options: ConnectingOptions, resolve: Resolve | None = None, catalogue: str = ""
) -> CheckReport:
    """Examines the domain of a domain controller, by searches that any user may make.

    ``catalogue`` is the URL of a global catalogue; empty: that of the same server.
    """
    client, root = await connect(options)
    try:
        gathering = EstateGathering(int(time()), expiry_of)
        await _gather(client, gathering, root.domain, _DOMAIN_FILTER, DOMAIN_ATTRIBUTES)
        configuration = root.configuration, _CONFIGURATION_FILTER, CONFIGURATION_ATTRIBUTES
        await _gather(client, gathering, *configuration)
        await ask_domain(client, gathering.facts, root)
        await ask_catalogue(options, catalogue, gathering.facts, root)
    except LdapError as error:
        raise explained(error) from error
    finally:
        await client.close()
    return _examined(gathering.finish(), resolve)


async def read_entries(options: ConnectingOptions, names: Collection[str]) -> dict[str, AddEntry]:
    """Reads entries with all attributes that the account sees, and their descriptors."""
    client, _ = await connect(options)
    try:
        asked = ("*", "nTSecurityDescriptor"), (_READABLE_PARTS,)
        found = {name: await client.read(name, *asked) for name in sorted(names)}
    except LdapError as error:
        raise explained(error) from error
    finally:
        await client.close()
    return {n: AddEntry(n, entry.attributes) for n, entry in found.items() if entry is not None}


async def _gather(
    client: LdapDirectoryClient,
    gathering: EstateGathering,
    base: str,
    filter_: Filter,
    attributes: tuple[str, ...],
) -> None:
    query = LdapQuery(base, filter=filter_, attributes=attributes, controls=(_READABLE_PARTS,))
    async with aclosing(client.search(query)) as found:
        async for entry in found:
            gathering.add(LdapEntry(entry.name, entry.attributes))


# --- addresses and certificates -------------------------------------------------------------------


def _examined(facts: EstateFacts, resolve: Resolve | None) -> CheckReport:
    if resolve is not None:
        hosts = sorted({a.host for a in facts.accounts if a.is_computer and a.host})
        with ThreadPoolExecutor(_RESOLVERS) as pool:
            known = dict(zip(hosts, map(tuple, pool.map(resolve, hosts)), strict=True))
        facts.accounts = [
            replace(a, addresses=a.addresses or known.get(a.host, ())) for a in facts.accounts
        ]
        if facts.subnets and any(known.values()):
            facts.untold = {
                c: r for c, r in facts.untold.items() if c.name != "ADDRESS_OUTSIDE_SITE"
            }
    return examine_estate(facts)


def addresses_of(host: str) -> Iterator[IpAddress]:
    """The addresses that DNS gives for a computer's name; none if it knows none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return
    for text in dict.fromkeys(str(row[4][0]) for row in found):
        yield ip_address(text.partition("%")[0])


def expiry_of(certificate: bytes) -> int | None:
    """The moment at which a certificate expires; None if it cannot be read."""
    try:
        found = x509.load_der_x509_certificate(certificate)
    except ValueError:
        return None
    return int(found.not_valid_after_utc.timestamp())
