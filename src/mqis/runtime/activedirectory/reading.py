"""Reads whole objects from an Active Directory (MS-MQDSSM 3.1.6.3, 3.1.6.4).

    reader = await ForestReader.open(client)
    async for obj in reader.objects():
        ...

A search has two pages of entries in memory, and one batch of objects is the most that is kept.
Names of other entries come with their identifiers (the extended-DN control), so that references
need no reads of their own. A machine is completed by its computer, a site by the gates of its
links.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from mqis.protocol.activedirectory.certificates import CERTIFIED
from mqis.protocol.activedirectory.conditions import class_filter, search_filter
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.forest import ROOT_ATTRIBUTES, Forest
from mqis.protocol.activedirectory.reading import columns_of, kept_of, read_object
from mqis.protocol.activedirectory.targets import computer_filter, computer_of, target_of
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.runtime.activedirectory.computers import ComputerPlaces
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.controls import LdapControl, SdFlags, extended_dn, sd_flags
from mqis.wire.ldap.filters import And, Equality, Filter, Or
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

log = logging.getLogger(__name__)

#: Descriptors without the audit list, which takes a privilege, and identifiers beside names.
CONTROLS: Final[tuple[LdapControl, ...]] = (
    sd_flags(SdFlags.OWNER | SdFlags.GROUP | SdFlags.DACL),
    extended_dn(),
)
#: The types in an order in which everything comes before what refers to it.
IN_ORDER: Final = (
    ObjectType.ENTERPRISE,
    ObjectType.SITE,
    ObjectType.MACHINE,
    ObjectType.ROUTINGLINK,
    ObjectType.USER,
    ObjectType.QUEUE,
)
PAGE_SIZE: Final = 500
#: Entries that are completed at a time, by reads of other entries.
BATCH: Final = 50

#: Called with an entry that is left out, and the reason.
Skipped = Callable[[ObjectType, LdapEntry, ProtocolError], None]
#: Called with values of an entry that do not fit; the object has defaults instead.
Unfit = Callable[[ObjectType, LdapEntry, Sequence[BadAttribute]], None]


def _log_skipped(_type: ObjectType, _entry: LdapEntry, reason: ProtocolError) -> None:
    log.warning("an entry is left out: %s", reason)


@dataclass(frozen=True, slots=True)
class Columns:
    """The properties to read, and the attributes that they take."""

    propids: tuple[PropId, ...]
    own: tuple[str, ...]
    computer: tuple[str, ...]

    @classmethod
    def kept(cls, object_type: ObjectType) -> Columns:
        """All that an object of a store keeps."""
        propids = kept_of(object_type)
        return cls(propids, *columns_of(propids))


_COLUMNS: Final = {object_type: Columns.kept(object_type) for object_type in ObjectType}


@dataclass(frozen=True, slots=True)
class ForestReader:
    """Reads objects of one forest; ``skipped`` is told of entries that are no sound objects.

    With ``unfit``, an object is sound without a value that does not fit and that it can do without.
    """

    client: LdapDirectory
    forest: Forest
    skipped: Skipped = field(default=_log_skipped)
    unfit: Unfit | None = None
    page_size: int = PAGE_SIZE
    computers: ComputerPlaces = field(default_factory=ComputerPlaces, compare=False)

    @classmethod
    async def open(
        cls, client: LdapDirectory, skipped: Skipped = _log_skipped, unfit: Unfit | None = None
    ) -> ForestReader:
        """Reads the naming contexts; ``ProtocolError`` if this is no Active Directory."""
        return cls(client, await read_forest(client), skipped, unfit)

    async def objects(
        self, types: Sequence[ObjectType] = IN_ORDER
    ) -> AsyncGenerator[DirectoryObject, None]:
        """Yields all objects, type after type. Of users, those with certificates.

        Machines and queues get the partitions of their sites, as in a store of our own: the
        identifier of each machine is remembered until its queues have come.
        """
        partitions: dict[Guid, Guid] = {}
        for object_type in types:
            condition = CERTIFIED if object_type is ObjectType.USER else None
            async with aclosing(self.search(object_type, condition)) as found:
                async for obj in found:
                    if object_type is ObjectType.MACHINE:
                        partitions[obj.id] = obj.partition
                    yield _placed(obj, partitions)

    async def search(
        self,
        object_type: ObjectType,
        condition: Filter | None = None,
        *,
        base: str | None = None,
        scope: SearchScope = SearchScope.SUBTREE,
    ) -> AsyncGenerator[DirectoryObject, None]:
        """Yields the objects of a type that meet a condition, below ``base`` if that is given."""
        query = LdapQuery(
            str(self.forest.search_base(object_type)) if base is None else base,
            scope,
            search_filter(object_type, *([] if condition is None else [condition])),
            _COLUMNS[object_type].own,
            CONTROLS,
            self.page_size,
        )
        batch: list[LdapEntry] = []
        async with aclosing(self.client.search(query)) as found:
            async for entry in found:
                batch.append(LdapEntry(entry.name, entry.attributes))
                if len(batch) == BATCH:
                    for obj in await self._objects_of(object_type, batch):
                        yield obj
                    batch = []
        for obj in await self._objects_of(object_type, batch):
            yield obj

    async def read_enterprise(self) -> DirectoryObject | None:
        return await self.read_one(ObjectType.ENTERPRISE, str(self.forest.enterprise))

    async def read_one(self, object_type: ObjectType, name: str | Guid) -> DirectoryObject | None:
        """Returns the object of a distinguished name or identifier; None if there is none.

        ``ProtocolError`` if it is there and cannot be read.
        """
        entry = await self.read_entry(object_type, name)
        if entry is None:
            return None
        view = await self._completed(object_type, entry)
        return self._made(object_type, view)

    async def read_entry(self, object_type: ObjectType, name: str | Guid) -> LdapEntry | None:
        """Reads the entry of an object; None if it is missing or of another class."""
        found = await self.client.read(name, _COLUMNS[object_type].own, CONTROLS)
        entry = None if found is None else LdapEntry(found.name, found.attributes)
        return entry if entry is not None and _is_of(entry, object_type) else None

    async def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        """Returns the object of a name of MS-MQDS; None if there is none."""
        computer = self.computers.get(computer_of(object_type, path))
        believed = None if computer is None else self._target(object_type, path, computer)
        if believed is not None:
            found = await self.read_one(object_type, believed)
            if found is not None:
                return found
        name = await self.place_of(object_type, path)
        return None if name is None or name == believed else await self.read_one(object_type, name)

    async def place_of(self, object_type: ObjectType, path: str) -> str | None:
        """The distinguished name that follows from a path; None if its computer is missing."""
        wanted = computer_of(object_type, path)
        computer = await self.find_computer(wanted) if wanted else None
        above = None if computer is None else computer.distinguished_name
        if above is not None:
            self.computers.put(wanted, above)
        return self._target(object_type, path, above)

    def _target(
        self, object_type: ObjectType, path: str, computer: DistinguishedName | None
    ) -> str | None:
        asked = ObjectType.SITE if object_type is ObjectType.CN else object_type
        return target_of(asked, path, self.forest, computer)

    async def find_computer(self, name: str) -> LdapEntry | None:
        """Returns the computer with a short or DNS name, wherever it stands."""
        query = LdapQuery(
            str(self.forest.domain),
            filter=computer_filter(name),
            attributes=("objectClass", "objectGUID", "objectSid", "dNSHostName"),
            page_size=0,
        )
        async with aclosing(self.client.search(query)) as found:
            async for entry in found:
                return LdapEntry(entry.name, entry.attributes)
        return None

    async def names_of(self, guids: Sequence[Guid]) -> References:
        """Reads the names of some entries; those that are missing are left out."""
        found = await asyncio.gather(*(self.client.read(guid, ("objectGUID",)) for guid in guids))
        names: dict[Guid, DistinguishedName] = {}
        for guid, entry in zip(guids, found, strict=True):
            if entry is not None:
                names[guid] = LdapEntry(entry.name, ()).distinguished_name
        return References(names)

    # --- objects of entries -----------------------------------------------------------------------

    async def _objects_of(
        self, object_type: ObjectType, entries: Sequence[LdapEntry]
    ) -> list[DirectoryObject]:
        views: Sequence[EntryView | BaseException]
        if object_type is ObjectType.SITE or _COLUMNS[object_type].computer:
            views = await asyncio.gather(
                *(self._completed(object_type, entry) for entry in entries), return_exceptions=True
            )
        else:  # without a task for each
            views = [EntryView(entry, self.forest) for entry in entries]
        made = []
        for entry, view in zip(entries, views, strict=True):
            try:
                if isinstance(view, BaseException):
                    raise view
                made.append(self._made(object_type, view))
            except (BadAttribute, DirectoryError, WireError) as error:
                self.skipped(object_type, entry, ProtocolError(str(error)))
        return made

    def _made(self, object_type: ObjectType, view: EntryView) -> DirectoryObject:
        unfit: list[BadAttribute] | None = None if self.unfit is None else []
        made = read_object(view, object_type, _partition(object_type, view), unfit)
        if unfit and self.unfit is not None:
            self.unfit(object_type, view.entry, unfit)
        return made

    async def _completed(self, object_type: ObjectType, entry: LdapEntry) -> EntryView:
        """The entry with what its properties need from others."""
        view = EntryView(entry, self.forest)
        if _COLUMNS[object_type].computer:
            parent = str(view.name.parent)
            computer = await self.client.read(parent, _COLUMNS[object_type].computer)
            if computer is not None:
                view = replace(view, computer=LdapEntry(computer.name, computer.attributes))
        if object_type is ObjectType.SITE and entry.guid is not None:
            view = replace(view, gates=await self._gates(view.name, entry.guid))
        return view

    async def _gates(self, name: DistinguishedName, site: Guid) -> tuple[Guid, ...]:
        """The gates of a site's links that belong to the site (3.1.6.20.4)."""
        ends = tuple(Equality(end, str(name).encode()) for end in ("mSMQSite1", "mSMQSite2"))
        query = LdapQuery(
            str(self.forest.enterprise),
            filter=And((Equality("objectClass", b"mSMQSiteLink"), Or(ends))),
            attributes=("mSMQSiteGates",),
            controls=(extended_dn(),),
            page_size=self.page_size,
        )
        gates: set[Guid] = set()
        async with aclosing(self.client.search(query)) as found:
            async for link in found:
                named = map(References().guid_of, link.values("mSMQSiteGates"))
                gates |= {guid for guid in named if guid is not None}
        machines = await asyncio.gather(
            *(self.client.read(gate, ("mSMQSites",)) for gate in sorted(gates))
        )
        return tuple(
            gate
            for gate, machine in zip(sorted(gates), machines, strict=True)
            if machine is not None and site.raw in machine.values("mSMQSites")
        )


async def read_forest(client: LdapDirectory) -> Forest:
    """Reads the naming contexts of a server; ``ProtocolError`` if it is no domain controller."""
    root = await client.read("", ROOT_ATTRIBUTES)
    if root is None:
        raise ProtocolError("the server shows no root entry: it is no directory")
    return Forest.of(LdapEntry(root.name, root.attributes))


def _is_of(entry: LdapEntry, object_type: ObjectType) -> bool:
    return all(
        entry.is_of(part.value.decode())
        for part in class_filter(object_type)
        if isinstance(part, Equality) and part.attribute == "objectClass"
    )


def _partition(object_type: ObjectType, view: EntryView) -> Guid:
    """Of a machine its first site; queues follow their machine, all else is the enterprise's."""
    if object_type is not ObjectType.MACHINE:
        return ENTERPRISE_PARTITION
    sites = [Guid(value) for value in view.entry.values("mSMQSites") if len(value) == 16]
    return min(sites, default=ENTERPRISE_PARTITION)


def _placed(obj: DirectoryObject, partitions: dict[Guid, Guid]) -> DirectoryObject:
    machine = obj.value(PropId.Q_QMID) if obj.type is ObjectType.QUEUE else None
    if not isinstance(machine, Guid):
        return obj
    return replace(obj, partition=partitions.get(machine, ENTERPRISE_PARTITION))
