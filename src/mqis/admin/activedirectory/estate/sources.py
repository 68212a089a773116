"""Reads an estate from a domain controller or an LDIF file, and examines it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from time import time

from cryptography import x509

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.estate.asking import ask_catalogue, ask_domain
from mqis.admin.activedirectory.ldif import dumped_entries
from mqis.findings import CheckReport
from mqis.protocol.activedirectory.estate.examining import examine_estate
from mqis.protocol.activedirectory.estate.facts import EstateFacts, IpAddress
from mqis.protocol.activedirectory.estate.gathering import (
    CONFIGURATION_ATTRIBUTES,
    DOMAIN_ATTRIBUTES,
    EstateGathering,
)
from mqis.protocol.activedirectory.recipients import MEMBER, RECIPIENT_ATTRIBUTES
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.activedirectory.recipients import Recipients
from mqis.wire.ldap import controls
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.controls import SdFlags
from mqis.wire.ldap.filters import Filter, parse_filter
from mqis.wire.ldap.names import DistinguishedName

_DOMAIN_FILTER = parse_filter(
    "(|(objectClass=mSMQConfiguration)(objectClass=mSMQQueue)(objectClass=computer)"
    "(servicePrincipalName=*)(objectClass=mSMQMigratedUser)(mSMQSignCertificates=*)"
    "(objectClass=msMQ-Custom-Recipient))"
)
_CONFIGURATION_FILTER = parse_filter(
    "(|(objectClass=site)(objectClass=subnet)(objectClass=mSMQSiteLink)(objectClass=mSMQSettings)"
    "(objectClass=server)(objectClass=crossRef))"
)
_READABLE_PARTS = controls.sd_flags(SdFlags.OWNER | SdFlags.GROUP | SdFlags.DACL)
#: Names that are resolved at the same time.
_RESOLVERS = 16

Resolve = Callable[[str], Iterable[IpAddress]]


def check_ldif(paths: Sequence[Path], resolve: Resolve | None = None) -> CheckReport:
    """Examines dumps of a directory; raises ``LdifError`` with file and line if one is damaged."""
    gathering = EstateGathering(int(time()), expiry_of)
    for _, entry in chain.from_iterable(map(dumped_entries, paths)):
        gathering.add(entry)
    return _examined(gathering.finish(), resolve)


def entries_of(paths: Sequence[Path], names: Collection[str]) -> dict[str, AddEntry]:
    """Entries of dumps by their names, with the attributes that they have."""
    dumped = chain.from_iterable(map(dumped_entries, paths))
    found = (entry for _, entry in dumped if entry.name in names)
    return {entry.name: AddEntry(entry.name, entry.attributes) for entry in found}


async def check_directory(
    domains: Sequence[ConnectingOptions], resolve: Resolve | None = None, catalogue: str = ""
) -> CheckReport:
    """Examines the domains of a forest, by searches that any user may make.

    ``catalogue`` is the URL of a global catalogue, which is asked for what no domain of these has;
    empty: that of the first server.
    """
    gathering = EstateGathering(int(time()), expiry_of)
    async with _estate(domains) as estate:
        first = estate.first
        for domain in estate.domains:
            place = str(domain.forest.domain)
            await _gather(domain, gathering, place, _DOMAIN_FILTER, DOMAIN_ATTRIBUTES)
        shared = _CONFIGURATION_FILTER, CONFIGURATION_ATTRIBUTES
        await _gather(first, gathering, str(first.forest.configuration), *shared)
        for domain in estate.domains:
            gathering.facts.sight.see_domain(str(domain.forest.domain))
        await _gather_lists(estate, gathering)
        for domain in estate.domains:
            await ask_domain(domain, gathering.facts)
        await ask_catalogue(domains[0], catalogue, gathering.facts, first.forest)
    return _examined(gathering.finish(), resolve)


async def read_entries(
    domains: Sequence[ConnectingOptions], names: Collection[str]
) -> dict[str, AddEntry]:
    """Reads entries with all attributes that the account sees, and their descriptors."""
    found: dict[str, AddEntry] = {}
    async with _estate(domains) as estate:
        for name in sorted(names):
            client = estate.reader_at(DistinguishedName.parse(name)).client
            asked = ("*", "nTSecurityDescriptor"), (_READABLE_PARTS,)
            entry = await client.read(name, *asked)
            if entry is not None:
                found[name] = AddEntry(name, entry.attributes)
    return found


async def resolve_recipient(options: ConnectingOptions, name: str) -> list[str]:
    """The format names that a list or an alias stands for; ``DirectoryError`` if that fails."""
    async with _estate([options]) as estate:
        return await Recipients(estate.first.client).resolve(name)


@asynccontextmanager
async def _estate(domains: Sequence[ConnectingOptions]) -> AsyncIterator[EstateReader]:
    async with AsyncExitStack() as stack:
        readers = []
        for options in domains:
            client, _ = await connect(options)
            stack.push_async_callback(client.close)
            readers.append(client)
        try:
            yield EstateReader.of([await ForestReader.open(client) for client in readers])
        except LdapError as error:
            raise explained(error) from error


async def _gather_lists(estate: EstateReader, gathering: EstateGathering) -> None:
    """Reads the groups that queues and aliases are members of, and those that have these groups.

    Most groups of a domain are for people, and large.
    """
    asked: set[str] = set()
    while new := sorted(gathering.facts.member_of - asked):
        asked.update(new)
        for name in new:
            client = estate.reader_at(DistinguishedName.parse(name)).client
            found = await client.read(name, (*RECIPIENT_ATTRIBUTES, MEMBER, "memberOf"))
            if found is not None:
                gathering.add(found)


async def _gather(
    domain: ForestReader,
    gathering: EstateGathering,
    base: str,
    filter_: Filter,
    attributes: tuple[str, ...],
) -> None:
    query = LdapQuery(base, filter=filter_, attributes=attributes, controls=(_READABLE_PARTS,))
    async with aclosing(domain.client.search(query)) as found:
        async for entry in found:
            gathering.add(entry)


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
