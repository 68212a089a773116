"""Imports an Active Directory over LDAP, page after page, without writing anything to it.

LDAP has no snapshot: an entry that is deleted meanwhile is missing, and the number of those that
changed is told at the end. Several domains of a forest are read by a controller of each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.taking import EstateResult, open_estate, take_estate
from mqis.admin.transfer import Progress, silent
from mqis.protocol.activedirectory.forest import LDAP_CLASSES, change_number
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.wire.errors import MqisError
from mqis.wire.ldap.filters import And, Equality, GreaterOrEqual, Or

CHANGED = "entries changed while they were read: import again, or follow changes with a mirror"
NO_ENTERPRISE = "this Active Directory has no CN=MsmqServices: Message Queuing was never installed"

_OF_INTEREST = Or(
    tuple(Equality("objectClass", name.encode()) for name in sorted(set(LDAP_CLASSES.values())))
)


def import_online(
    domains: Sequence[ConnectingOptions], store: Store, progress: Progress = silent
) -> EstateResult:
    """Connects to a controller of each domain, and imports everything or nothing."""
    return asyncio.run(import_domains(domains, store, progress))


async def import_domains(
    domains: Sequence[ConnectingOptions], store: Store, progress: Progress = silent
) -> EstateResult:
    """Imports the domains of one forest; every failure is an ``MqisError``."""
    async with AsyncExitStack() as stack:
        clients: list[LdapDirectory] = []
        for options in domains:
            client, _ = await connect(options)
            stack.push_async_callback(client.close)
            clients.append(client)
        try:
            return await import_directory(clients, store, progress)
        except LdapConnectionLost as error:
            text = f"{error}; nothing was imported: run the command again"
            raise MqisError(text) from error
        except LdapError as error:
            raise explained(error) from error
        except ProtocolError as error:
            urls = ", ".join(url for options in domains for url in options.urls)
            raise MqisError(f"{urls}: {error}") from error


async def import_directory(
    clients: Sequence[LdapDirectory], store: Store, progress: Progress = silent
) -> EstateResult:
    """Imports what the domains of a forest show; all of it in one transaction."""
    result = EstateResult()
    began = [await _last_change(client) for client in clients]
    estate = await open_estate(clients, result.notes)
    with store.write() as tx:
        taken = await take_estate(estate, tx, result.notes, NO_ENTERPRISE, progress)
        result.imported = taken
        await _tell_changes(estate, began, result.notes)
    return result


async def _last_change(client: LdapDirectory) -> int:
    root = await client.read("", ("highestCommittedUSN",))
    return change_number("" if root is None else root.text("highestCommittedUSN"))


async def _tell_changes(estate: EstateReader, began: Sequence[int], notes: TransferNotes) -> None:
    """Counts what changed since the beginning: LDAP shows no moment in time."""
    places = [
        (domain.client, domain.forest.domain, usn)
        for domain, usn in zip(estate.domains, began, strict=True)
    ]
    first = estate.first
    for client, base, usn in [*places, (first.client, first.forest.configuration, began[0])]:
        since = GreaterOrEqual("uSNChanged", b"%d" % (usn + 1))
        query = LdapQuery(str(base), filter=And((since, _OF_INTEREST)), attributes=("uSNChanged",))
        async with aclosing(client.search(query)) as found:
            async for entry in found:
                notes.tell(CHANGED, entry.name)
