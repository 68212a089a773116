"""Imports an Active Directory over LDAP, page after page, without writing anything to it.

The entries come type by type, in the order in which the store takes them; one page of them is in
memory, and of the gates and computers what machines and sites need. LDAP has no snapshot: an entry
that is deleted meanwhile is missing, and the number of those that changed is told at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

from mqis.admin.activedirectory.connecting import (
    ConnectingError,
    ConnectingOptions,
    connect,
    explained,
)
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.taking import EstateResult, EstateTaker
from mqis.admin.transfer import Progress, silent
from mqis.protocol.activedirectory.conditions import class_filter
from mqis.protocol.activedirectory.entry import LdapEntry
from mqis.protocol.activedirectory.forest import (
    LDAP_CLASSES,
    ROOT_ATTRIBUTES,
    Forest,
    change_number,
)
from mqis.protocol.activedirectory.importing import (
    ImportSources,
    gates_of_sites,
    guids_in,
    import_columns,
    readable_link,
)
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.reading import CONTROLS
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.filters import And, Equality, Filter, GreaterOrEqual, Or, Present
from mqis.wire.ldap.responses import SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

CHANGED = "entries changed while they were read: import again, or follow changes with a mirror"
NO_ENTERPRISE = "this Active Directory has no CN=MsmqServices: Message Queuing was never installed"

_PAGE = 500
_CLUSTERED = b"MSClusterVirtualServer"


def import_online(
    options: ConnectingOptions, store: Store, progress: Progress = silent
) -> EstateResult:
    """Connects and imports everything, or nothing if the connection breaks."""
    return asyncio.run(_connected(options, store, progress))


async def _connected(options: ConnectingOptions, store: Store, progress: Progress) -> EstateResult:
    client, _ = await connect(options)
    try:
        return await import_directory(client, store, progress)
    except LdapConnectionLost as error:
        raise ConnectingError(f"{error}; nothing was imported: run the command again") from error
    except LdapError as error:
        raise explained(error, options.user) from error
    except ProtocolError as error:
        raise ConnectingError(f"{', '.join(options.urls)}: {error}") from error
    finally:
        await client.close()


async def import_directory(
    client: LdapDirectory, store: Store, progress: Progress = silent
) -> EstateResult:
    """Imports what a directory shows; all of it in one transaction."""
    reading = EstateReading(client, progress)
    forest, began = await reading.begin()
    result = EstateResult()
    sites, links = await reading.topology(forest)
    with store.write() as tx:
        taker = EstateTaker(tx, result.notes)
        await reading.give(taker, forest, sites, links, result.notes)
        result.imported = taker.finish()
        await reading.tell_changes(forest, began, result.notes)
    return result


@dataclass(slots=True)
class EstateReading:
    """The searches of one import."""

    client: LdapDirectory
    progress: Progress
    done: int = 0

    async def begin(self) -> tuple[Forest, int]:
        """Reads the naming contexts, and the number of the last change."""
        root = _as_entry(await self.client.read("", ROOT_ATTRIBUTES) or SearchEntry("", ()))
        return Forest.of(root), change_number(root.text("highestCommittedUSN"))

    async def topology(self, forest: Forest) -> tuple[list[LdapEntry], list[LdapEntry]]:
        """Sites and links, which are few."""
        sites = [entry async for entry in self._found(forest, ObjectType.SITE)]
        links = [entry async for entry in self._found(forest, ObjectType.ROUTINGLINK)]
        return sites, links

    async def give(
        self,
        taker: EstateTaker,
        forest: Forest,
        sites: list[LdapEntry],
        links: list[LdapEntry],
        notes: TransferNotes,
    ) -> None:
        names = {site.guid: site.distinguished_name for site in sites if site.guid is not None}
        sources = ImportSources(forest, References(names))
        enterprise = [entry async for entry in self._found(forest, ObjectType.ENTERPRISE)]
        if not enterprise:
            notes.tell(NO_ENTERPRISE, str(forest.root))
        self._take(taker, enterprise, ObjectType.ENTERPRISE, sources)
        ends = [link for entry in links if (link := readable_link(entry, sources))]
        gates = gates_of_sites(ends, await self._sites_of_gates(ends))
        sources = replace(sources, gates=gates)
        self._take(taker, sites, ObjectType.SITE, sources)
        self._take(taker, links, ObjectType.ROUTINGLINK, sources)
        async for entry in self._found(forest, ObjectType.USER):
            self._take(taker, (entry,), ObjectType.USER, sources)
        computers = await self._computers(forest)
        async for entry in self._found(forest, ObjectType.MACHINE):
            parent = str(entry.distinguished_name.parent).casefold()
            taker.entry(entry, ObjectType.MACHINE, sources, computers.get(parent))
        async for entry in self._found(forest, ObjectType.QUEUE):
            taker.entry(entry, ObjectType.QUEUE, sources)

    def _take(
        self,
        taker: EstateTaker,
        entries: Iterable[LdapEntry],
        object_type: ObjectType,
        sources: ImportSources,
    ) -> None:
        for entry in entries:
            taker.entry(entry, object_type, sources)

    async def _found(self, forest: Forest, object_type: ObjectType) -> AsyncIterator[LdapEntry]:
        query = LdapQuery(
            str(forest.search_base(object_type)),
            SearchScope.SUBTREE,
            _filter(object_type),
            import_columns(object_type),
            CONTROLS,
            _PAGE,
        )
        async for entry in self._search(query):
            self.done += 1
            if self.done % _PAGE == 0:
                self.progress(self.done, 0)
            yield _as_entry(entry)

    async def _search(self, query: LdapQuery) -> AsyncIterator[SearchEntry]:
        """A base that does not exist has no entries: CN=MsmqServices may never have been made."""
        try:
            async with aclosing(self.client.search(query)) as found:
                async for entry in found:
                    yield entry
        except LdapRefused as error:
            if error.code != ResultCode.NO_SUCH_OBJECT:
                raise

    async def _sites_of_gates(
        self, links: Iterable[DirectoryObject]
    ) -> dict[Guid, tuple[Guid, ...]]:
        """The sites of the gates, which are few among the machines; a deleted gate has none."""
        gates = {gate for link in links for gate in guids_in(link.value(PropId.L_GATES))}
        found: dict[Guid, tuple[Guid, ...]] = {}
        for gate in sorted(gates):
            entry = await self.client.read(gate, ("mSMQSites",))
            values = () if entry is None else _as_entry(entry).values("mSMQSites")
            found[gate] = tuple(Guid(value) for value in values if len(value) == 16)
        return found

    async def _computers(self, forest: Forest) -> dict[str, LdapEntry]:
        """The computers that tell something about their machine: signing keys, or a cluster."""
        told = Or((Present("mSMQSignCertificates"), Present("servicePrincipalName")))
        query = LdapQuery(
            str(forest.domain),
            filter=And((Equality("objectClass", b"computer"), told)),
            attributes=("mSMQSignCertificates", "servicePrincipalName"),
            page_size=_PAGE,
        )
        found: dict[str, LdapEntry] = {}
        async for entry in self._search(query):
            read = _as_entry(entry)
            names = read.values("servicePrincipalName")
            clustered = tuple(name for name in names if name.startswith(_CLUSTERED))
            keys = read.values("mSMQSignCertificates")
            if keys or clustered:
                rows = (("mSMQSignCertificates", keys), ("servicePrincipalName", clustered))
                found[str(read.distinguished_name).casefold()] = LdapEntry(read.name, rows)
        return found

    async def tell_changes(self, forest: Forest, began: int, notes: TransferNotes) -> None:
        """Counts what changed since the beginning: LDAP shows no moment in time."""
        since = GreaterOrEqual("uSNChanged", b"%d" % (began + 1))
        classes = tuple(
            Equality("objectClass", name.encode()) for name in sorted(set(LDAP_CLASSES.values()))
        )
        for base in (forest.domain, forest.configuration):
            query = LdapQuery(
                str(base), filter=And((since, Or(classes))), attributes=("uSNChanged",)
            )
            async for entry in self._search(query):
                notes.tell(CHANGED, entry.name)


def _filter(object_type: ObjectType) -> Filter:
    """Of users, those with certificates: most never used Message Queuing."""
    certified = (Present("mSMQDigests"),) if object_type is ObjectType.USER else ()
    return And((*class_filter(object_type), *certified))


def _as_entry(found: SearchEntry) -> LdapEntry:
    return LdapEntry(found.name, found.attributes)
