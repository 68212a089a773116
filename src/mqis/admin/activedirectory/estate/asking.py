"""Looks for what an estate refers to and the first searches did not show.

First at the domain controller itself, by name; then, for a forest with other domains, at the global
catalogue, which has each object of all domains with a part of its attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import product

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect
from mqis.protocol.activedirectory.estate.facts import EstateFacts
from mqis.protocol.activedirectory.estate.gathering import kind_of
from mqis.protocol.activedirectory.estate.questions import Questions, open_questions
from mqis.protocol.activedirectory.estate.sight import EstateSight, domain_of, name_of, parent_of
from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.ldap.errors import LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.protocol.ldap.urls import GLOBAL_CATALOGUE_PORT, GLOBAL_CATALOGUE_TLS_PORT, LdapUrl
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Equality, Filter, Or
from mqis.wire.ldap.names import DistinguishedName

#: Values that one search looks for.
_BATCH = 50
_EVERYWHERE = ""


async def ask_domain(domain: ForestReader, facts: EstateFacts) -> None:
    """Looks for names in the domain of a server and in the configuration, and for users of it.

    Each domain controller has the whole configuration.
    """
    sight, client, root = facts.sight, domain.client, str(domain.forest.domain)
    head = await client.read(root, ("objectSid",))
    if head is not None:
        sight.see_users(next(iter(head.values("objectSid")), b""))
    asked = open_questions(facts)
    shared = f",{name_of(str(domain.forest.configuration))}"
    own = [
        name for name in asked.names if domain_of(name) == name_of(root) or name.endswith(shared)
    ]
    await _look_for(client, sight, own)
    await _find_users(client, facts, root, asked.sids)


async def ask_catalogue(
    options: ConnectingOptions, url: str, facts: EstateFacts, forest: Forest
) -> None:
    """Looks everywhere in the forest for what is still not found; notes why that was impossible."""
    sight, asked = facts.sight, open_questions(facts)
    if sight.is_whole or not sight.forest or not asked:
        return
    there = replace(
        options, urls=(url or catalogue_of(options.urls[0], str(forest.configuration)),)
    )
    try:
        client, _ = await connect(there)
    except MqisError as error:
        sight.no_catalogue = str(error)
        return
    try:
        await _ask_everywhere(client, facts, asked)
        sight.catalogue = True
    except LdapError as error:
        sight.no_catalogue = str(error)
    finally:
        await client.close()


def catalogue_of(url: str, configuration: str) -> str:
    """The global catalogue of the same server; or those of the forest, if DNS finds the servers."""
    found = LdapUrl.parse(url)
    forest = DistinguishedName.parse(configuration).parent
    port = GLOBAL_CATALOGUE_TLS_PORT if found.tls else GLOBAL_CATALOGUE_PORT
    return str(replace(found, port=port, base=str(forest)))


async def _ask_everywhere(
    client: LdapDirectoryClient, facts: EstateFacts, asked: Questions
) -> None:
    """Raises ``LdapError`` if the server lacks a domain: what it does not find proves nothing."""
    sight = facts.sight
    for domain in sorted(sight.forest):
        head = await client.read(domain, ("objectClass", "objectSid"))
        if head is None:
            raise LdapError(f"{client.where}: it does not have {domain}: no global catalogue")
        sight.see_users(next(iter(head.values("objectSid")), b""))
    for ids in _batches([id_.raw for id_ in asked.ids]):
        query = LdapQuery(
            _EVERYWHERE, filter=_one_of(ids, "objectGUID"), attributes=("objectGUID",)
        )
        async with aclosing(client.search(query)) as found:
            async for entry in found:
                sight.ids.update(Guid(raw) for raw in entry.values("objectGUID") if raw in ids)
    await _look_for(client, sight, asked.names)
    await _find_users(client, facts, _EVERYWHERE, asked.sids)


async def _find_users(
    client: LdapDirectory, facts: EstateFacts, base: str, sids: Sequence[bytes]
) -> None:
    """Finds users by their SIDs, also by those that they had before they were moved."""
    attributes = ("objectSid", "sIDHistory")
    for some in _batches(sids):
        query = LdapQuery(base, filter=_one_of(some, *attributes), attributes=attributes)
        async with aclosing(client.search(query)) as found:
            async for entry in found:
                for attribute in attributes:
                    facts.sids.update(entry.values(attribute))


async def _look_for(client: LdapDirectory, sight: EstateSight, names: Iterable[str]) -> None:
    """Reads entries by name; above one that does not exist, looks if the account sees the place."""
    for name in names:
        await _look_at(client, sight, name)
        above = name
        while above in sight.missing and (above := parent_of(above)):
            if above in sight.listed:
                break
            await _look_at(client, sight, above)
            if above in sight.entries and await _shows_entries(client, above):
                sight.listed.add(above)


async def _look_at(client: LdapDirectory, sight: EstateSight, name: str) -> None:
    if name in sight.entries or name in sight.missing:
        return
    try:
        entry = await client.read(name, ("objectClass",))
    except LdapRefused:  # a referral, or no right
        sight.damaged.add(name)
        return
    if entry is None:
        sight.missing.add(name)
    elif entry.values("objectClass"):
        sight.see(name, kind_of(entry))
    else:
        sight.damaged.add(name)


async def _shows_entries(client: LdapDirectory, container: str) -> bool:
    query = LdapQuery(container, SearchScope.ONE_LEVEL, attributes=("objectClass",), page_size=1)
    async with aclosing(client.search(query)) as found:
        async for _ in found:
            return True
    return False


def _one_of(values: Iterable[bytes], *attributes: str) -> Filter:
    pairs = product(attributes, values)
    return Or(tuple(Equality(attribute, value) for attribute, value in pairs))


def _batches(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (values[at : at + _BATCH] for at in range(0, len(values), _BATCH))
