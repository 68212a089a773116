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
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from mqis.protocol.activedirectory.certificates import CERTIFIED
from mqis.protocol.activedirectory.conditions import class_filter, search_filter
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.forest import ROOT_ATTRIBUTES, Forest
from mqis.protocol.activedirectory.reading import columns_of, kept_of, read_object, shown_of
from mqis.protocol.activedirectory.targets import (
    COMPUTER_NAMES,
    chosen_computer,
    computer_filter,
    computer_of,
    name_in_forest,
    target_of,
)
from mqis.protocol.activedirectory.view import EntryView, NameKey, References
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.runtime.activedirectory.computers import KnownComputers
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

    @classmethod
    def shown(cls, object_type: ObjectType) -> Columns:
        """All that a pass-through server shows: the names that the directory gives, too."""
        propids = shown_of(object_type)
        own, computer = columns_of(propids)
        hosted = object_type in (ObjectType.MACHINE, ObjectType.QUEUE)
        return cls(propids, own, tuple(dict.fromkeys((*computer, *_IDENTITY))) if hosted else ())


#: What tells which computer an entry is.
_IDENTITY: Final = ("objectClass", "objectGUID", "objectSid", *COMPUTER_NAMES)
_KEPT: Final = {object_type: Columns.kept(object_type) for object_type in ObjectType}
_SHOWN: Final = {object_type: Columns.shown(object_type) for object_type in ObjectType}


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
    columns: Mapping[ObjectType, Columns] = field(default_factory=lambda: _KEPT, repr=False)
    computers: KnownComputers = field(default_factory=KnownComputers, compare=False)

    @classmethod
    async def open(
        cls, client: LdapDirectory, skipped: Skipped = _log_skipped, unfit: Unfit | None = None
    ) -> ForestReader:
        """Reads the naming contexts; ``ProtocolError`` if this is no Active Directory."""
        return cls(client, await read_forest(client), skipped, unfit)

    @classmethod
    async def open_for_callers(cls, client: LdapDirectory) -> ForestReader:
        """Opens the reader of a pass-through server, whose objects have all their names."""
        return cls(client, await read_forest(client), columns=_SHOWN)

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
            self.columns[object_type].own,
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
        return self._object(object_type, await self._completed(object_type, entry))

    async def read_entry(self, object_type: ObjectType, name: str | Guid) -> LdapEntry | None:
        """Reads the entry of an object; None if it is missing or of another class."""
        found = await self.client.read(name, self.columns[object_type].own, CONTROLS)
        entry = None if found is None else LdapEntry(found.name, found.attributes)
        return entry if entry is not None and _is_of(entry, object_type) else None

    async def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        """Returns the object of a path of MS-MQDS or of a DN (FullPath); None if there is none."""
        full = name_in_forest(path, self.forest)
        if full is not None:
            return await self.read_one(object_type, str(full))
        if object_type is ObjectType.ROUTINGLINK:
            return None
        computer = self.computers.named(computer_of(object_type, path))
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
        return self._target(object_type, path, computer)

    def _target(self, object_type: ObjectType, path: str, computer: LdapEntry | None) -> str | None:
        asked = ObjectType.SITE if object_type is ObjectType.CN else object_type
        above = None if computer is None else computer.distinguished_name
        return target_of(asked, path, self.forest, above)

    async def find_computer(self, name: str) -> LdapEntry | None:
        """Returns the computer with one of the names that computers have, wherever it stands."""
        query = LdapQuery(
            str(self.forest.domain),
            filter=computer_filter(name),
            attributes=_IDENTITY,
            page_size=0,
        )
        async with aclosing(self.client.search(query)) as found:
            entries = [LdapEntry(entry.name, entry.attributes) async for entry in found]
        computer = chosen_computer(name, entries)
        if computer is not None:
            self.computers.put(computer, name)
        elif entries:
            log.warning(
                "%d computers are called %s, and none has it as its account", len(entries), name
            )
        return computer

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
        if object_type is ObjectType.QUEUE and self.columns[object_type].computer:
            views = await self._hosted(entries)
        elif object_type is ObjectType.SITE or self.columns[object_type].computer:
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
                made.append(self._object(object_type, view))
            except (BadAttribute, DirectoryError, WireError) as error:
                self.skipped(object_type, entry, ProtocolError(str(error)))
        return made

    async def _completed(self, object_type: ObjectType, entry: LdapEntry) -> EntryView:
        """The entry with what its properties need from others."""
        view = EntryView(entry, self.forest)
        columns = self.columns[object_type].computer
        if columns and object_type is ObjectType.QUEUE:
            view = replace(view, computer=await self._computer_at(view.name.parent.parent))
        elif columns:
            computer = await self.client.read(str(view.name.parent), columns)
            if computer is not None:
                view = replace(view, computer=LdapEntry(computer.name, computer.attributes))
        if object_type is ObjectType.SITE and entry.guid is not None:
            view = replace(view, gates=await self._gates(view.name, entry.guid))
        return view

    async def _hosted(self, queues: Sequence[LdapEntry]) -> list[EntryView | BaseException]:
        """The queues with their computers, each of which is read once."""
        views: list[EntryView | BaseException] = []
        places: dict[NameKey, DistinguishedName] = {}
        for queue in queues:
            view = EntryView(queue, self.forest)
            try:
                place = view.name.parent.parent
            except BadAttribute as error:
                views.append(error)
                continue
            places[place.key] = place
            views.append(view)
        found = await asyncio.gather(*map(self._computer_at, places.values()))
        computers = dict(zip(places, found, strict=True))
        return [
            replace(view, computer=computers[view.name.parent.parent.key])
            if isinstance(view, EntryView)
            else view
            for view in views
        ]

    async def _computer_at(self, place: DistinguishedName) -> LdapEntry | None:
        """The computer of a queue, two levels above it (3.1.6.11.2)."""
        known = self.computers.at(place)
        if known is not None:
            return known
        found = await self.client.read(str(place), _IDENTITY)
        if found is None:
            return None
        computer = LdapEntry(found.name, found.attributes)
        self.computers.put(computer)
        return computer

    def _object(self, object_type: ObjectType, view: EntryView) -> DirectoryObject:
        unfit: list[BadAttribute] | None = None if self.unfit is None else []
        propids = self.columns[object_type].propids
        made = read_object(view, object_type, _partition(object_type, view), propids, unfit)
        if unfit and self.unfit is not None:
            self.unfit(object_type, view.entry, unfit)
        return made

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
