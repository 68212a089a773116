"""Imports an Active Directory over LDAP, page after page, without writing anything to it.

The entries come type by type, in the order in which the store takes them; two pages of them are in
memory, and of the gates and computers what machines and sites need. LDAP has no snapshot: an entry
that is deleted meanwhile is missing, and the number of those that changed is told at the end.

The domains of a forest share its configuration, which has sites and links; each has machines,
queues and users of its own. So several domains are read by a controller of each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.taking import EstateResult, EstateTaker
from mqis.admin.transfer import Progress, silent
from mqis.protocol.activedirectory.certificates import CERTIFIED
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
from mqis.wire.errors import MqisError
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
    reading = EstateReading([await DomainReading.begin(client) for client in clients], progress)
    reading.expect_one_forest()
    result = EstateResult()
    sites, links = await reading.topology()
    with store.write() as tx:
        taker = EstateTaker(tx, result.notes)
        await reading.give(taker, sites, links, result.notes)
        result.imported = taker.finish()
        await reading.tell_changes(result.notes)
    return result


@dataclass(frozen=True, slots=True)
class DomainReading:
    """A controller of one domain. ``began`` is the number of its last change before the import."""

    client: LdapDirectory
    forest: Forest
    began: int

    @classmethod
    async def begin(cls, client: LdapDirectory) -> DomainReading:
        """Reads the naming contexts, and the number of the last change."""
        root = _as_entry(await client.read("", ROOT_ATTRIBUTES) or SearchEntry("", ()))
        return cls(client, Forest.of(root), change_number(root.text("highestCommittedUSN")))

    async def sites_of(self, machine: Guid) -> tuple[Guid, ...]:
        """The sites of a machine; none if it stands in another domain, to which servers refer."""
        try:
            entry = await self.client.read(machine, ("mSMQSites",))
        except LdapRefused as error:
            if error.code != ResultCode.REFERRAL:
                raise
            return ()
        values = () if entry is None else entry.values("mSMQSites")
        return tuple(Guid(value) for value in values if len(value) == 16)

    async def search(self, query: LdapQuery) -> AsyncIterator[SearchEntry]:
        """A base that does not exist has no entries: CN=MsmqServices may never have been made."""
        try:
            async with aclosing(self.client.search(query)) as found:
                async for entry in found:
                    yield entry
        except LdapRefused as error:
            if error.code != ResultCode.NO_SUCH_OBJECT:
                raise


@dataclass(slots=True)
class EstateReading:
    """The searches of one import. The configuration is read from the first domain."""

    domains: list[DomainReading]
    progress: Progress
    done: int = 0

    @property
    def first(self) -> DomainReading:
        return self.domains[0]

    def expect_one_forest(self) -> None:
        """Two forests have two enterprises; one domain would be read twice."""
        seen: set[object] = set()
        for domain in self.domains:
            forest = domain.forest
            if forest.configuration.key != self.first.forest.configuration.key:
                raise ProtocolError(
                    f"{forest.domain} belongs to another forest than {self.first.forest.domain}: "
                    "import it into a store of its own"
                )
            if forest.domain.key in seen:
                raise ProtocolError(
                    f"two of these are controllers of {forest.domain}: name one of each domain"
                )
            seen.add(forest.domain.key)

    async def topology(self) -> tuple[list[LdapEntry], list[LdapEntry]]:
        """Sites and links, which are few."""
        sites = [entry async for entry in self._found(self.first, ObjectType.SITE)]
        links = [entry async for entry in self._found(self.first, ObjectType.ROUTINGLINK)]
        return sites, links

    async def give(
        self,
        taker: EstateTaker,
        sites: list[LdapEntry],
        links: list[LdapEntry],
        notes: TransferNotes,
    ) -> None:
        names = {site.guid: site.distinguished_name for site in sites if site.guid is not None}
        forest = self.first.forest
        sources = ImportSources(forest, References(names))
        enterprise = [entry async for entry in self._found(self.first, ObjectType.ENTERPRISE)]
        if not enterprise:
            notes.tell(NO_ENTERPRISE, str(forest.root))
        self._take(taker, enterprise, ObjectType.ENTERPRISE, sources)
        ends = [link for entry in links if (link := readable_link(entry, sources))]
        gates = gates_of_sites(ends, await self._sites_of_gates(ends))
        sources = replace(sources, gates=gates)
        self._take(taker, sites, ObjectType.SITE, sources)
        self._take(taker, links, ObjectType.ROUTINGLINK, sources)
        for domain in self.domains:
            await self._give_domain(taker, domain, replace(sources, forest=domain.forest))

    async def _give_domain(
        self, taker: EstateTaker, domain: DomainReading, sources: ImportSources
    ) -> None:
        async for entry in self._found(domain, ObjectType.USER):
            taker.entry(entry, ObjectType.USER, sources)
        computers = await self._computers(domain)
        async for entry in self._found(domain, ObjectType.MACHINE):
            parent = str(entry.distinguished_name.parent).casefold()
            taker.entry(entry, ObjectType.MACHINE, sources, computers.get(parent))
        async for entry in self._found(domain, ObjectType.QUEUE):
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

    async def _found(
        self, domain: DomainReading, object_type: ObjectType
    ) -> AsyncIterator[LdapEntry]:
        query = LdapQuery(
            str(domain.forest.search_base(object_type)),
            SearchScope.SUBTREE,
            _filter(object_type),
            import_columns(object_type),
            CONTROLS,
            _PAGE,
        )
        async for entry in domain.search(query):
            self.done += 1
            if self.done % _PAGE == 0:
                self.progress(self.done, 0)
            yield _as_entry(entry)

    async def _sites_of_gates(
        self, links: Iterable[DirectoryObject]
    ) -> dict[Guid, tuple[Guid, ...]]:
        """The sites of the gates, which are few among the machines; a deleted gate has none."""
        gates = {gate for link in links for gate in guids_in(link.value(PropId.L_GATES))}
        found: dict[Guid, tuple[Guid, ...]] = {}
        for gate in sorted(gates):
            sites = [site for domain in self.domains for site in await domain.sites_of(gate)]
            found[gate] = tuple(sites)
        return found

    async def _computers(self, domain: DomainReading) -> dict[str, LdapEntry]:
        """The computers that tell something about their machine: signing keys, or a cluster."""
        told = Or((Present("mSMQSignCertificates"), Present("servicePrincipalName")))
        query = LdapQuery(
            str(domain.forest.domain),
            filter=And((Equality("objectClass", b"computer"), told)),
            attributes=("mSMQSignCertificates", "servicePrincipalName"),
            page_size=_PAGE,
        )
        found: dict[str, LdapEntry] = {}
        async for entry in domain.search(query):
            read = _as_entry(entry)
            names = read.values("servicePrincipalName")
            clustered = tuple(name for name in names if name.startswith(_CLUSTERED))
            keys = read.values("mSMQSignCertificates")
            if keys or clustered:
                rows = (("mSMQSignCertificates", keys), ("servicePrincipalName", clustered))
                found[str(read.distinguished_name).casefold()] = LdapEntry(read.name, rows)
        return found

    async def tell_changes(self, notes: TransferNotes) -> None:
        """Counts what changed since the beginning: LDAP shows no moment in time."""
        classes = Or(
            tuple(Equality("objectClass", n.encode()) for n in sorted(set(LDAP_CLASSES.values())))
        )
        places = [(domain, domain.forest.domain) for domain in self.domains]
        for domain, base in [*places, (self.first, self.first.forest.configuration)]:
            since = GreaterOrEqual("uSNChanged", b"%d" % (domain.began + 1))
            query = LdapQuery(str(base), filter=And((since, classes)), attributes=("uSNChanged",))
            async for entry in domain.search(query):
                notes.tell(CHANGED, entry.name)


def _filter(object_type: ObjectType) -> Filter:
    """Of users, those with certificates: most never used Message Queuing."""
    certified = (CERTIFIED,) if object_type is ObjectType.USER else ()
    return And((*class_filter(object_type), *certified))


def _as_entry(found: SearchEntry) -> LdapEntry:
    return LdapEntry(found.name, found.attributes)
