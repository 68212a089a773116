"""Reads whole objects from one domain of an Active Directory (MS-MQDSSM 3.1.6.3, 3.1.6.4).

    reader = await ForestReader.open(client)
    queue = await reader.find(ObjectType.QUEUE, "srv1\\orders")

Import, mirror, publishing and pass-through servers read by it; ``estate`` reads everything, of all
domains of a forest, and of LDIF files. A search has two pages of entries in memory, and one batch
of objects is the most that is kept. Names of other entries come with their identifiers (the
extended-DN control), so that references need no reads of their own. A machine and a queue are
completed by their computer, a site by the gates of its links.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from mqis.protocol.activedirectory.conditions import class_filter, search_filter
from mqis.protocol.activedirectory.forest import ROOT_ATTRIBUTES, Forest
from mqis.protocol.activedirectory.importing import gates_of_link, gates_of_sites
from mqis.protocol.activedirectory.reading import (
    columns_of,
    kept_of,
    read_object,
    shown_in,
    shown_of,
)
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
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.errors import LdapRefused
from mqis.protocol.ldap.ports import LdapDirectory, LdapQuery
from mqis.runtime.activedirectory.computers import KnownComputers
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import LdapControl, SdFlags, extended_dn, sd_flags
from mqis.wire.ldap.filters import Equality, Filter, Or
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

log = logging.getLogger(__name__)

#: Descriptors without the audit list, which takes a privilege, and identifiers beside names.
CONTROLS: Final[tuple[LdapControl, ...]] = (
    sd_flags(SdFlags.OWNER | SdFlags.GROUP | SdFlags.DACL),
    extended_dn(),
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
    def of(cls, propids: tuple[PropId, ...]) -> Columns:
        """A computer is read with all that tells which one it is, so that it can be remembered."""
        own, computer = columns_of(propids)
        return cls(propids, own, tuple(dict.fromkeys((*computer, *_IDENTITY))) if computer else ())


#: What tells which computer an entry is.
_IDENTITY: Final = ("objectClass", "objectGUID", "objectSid", *COMPUTER_NAMES)
#: All that an object of a store keeps; and what a pass-through server shows: the names that the
#: directory gives, too.
_KEPT: Final = {object_type: Columns.of(kept_of(object_type)) for object_type in ObjectType}
_SHOWN: Final = {object_type: Columns.of(shown_of(object_type)) for object_type in ObjectType}

#: The gates of each site.
Gates = Mapping[Guid, tuple[Guid, ...]]


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object, and the entry that it was made of."""

    entry: LdapEntry
    obj: DirectoryObject


@dataclass(frozen=True, slots=True)
class ForestReader:
    """Reads objects of one forest; ``skipped`` is told of entries that are no sound objects.

    With ``unfit``, an object is sound without a value that does not fit and that it can do without.
    With ``hidden``, it is sound without its descriptor and its times, which dumps often lack.
    """

    client: LdapDirectory
    forest: Forest
    skipped: Skipped = field(default=_log_skipped)
    unfit: Unfit | None = None
    hidden: bool = False
    page_size: int = PAGE_SIZE
    columns: Mapping[ObjectType, Columns] = field(default_factory=lambda: _KEPT, repr=False)
    computers: KnownComputers = field(default_factory=KnownComputers, compare=False)

    @classmethod
    async def open(
        cls,
        client: LdapDirectory,
        skipped: Skipped = _log_skipped,
        unfit: Unfit | None = None,
        *,
        hidden: bool = False,
    ) -> ForestReader:
        """Reads the naming contexts; ``ProtocolError`` if this is no Active Directory."""
        return cls(client, await read_forest(client), skipped, unfit, hidden)

    @classmethod
    async def open_for_callers(cls, client: LdapDirectory) -> ForestReader:
        """Opens the reader of a pass-through server, whose objects have all their names."""
        return cls(client, await read_forest(client), columns=_SHOWN)

    async def search(
        self,
        object_type: ObjectType,
        condition: Filter | None = None,
        *,
        base: str | None = None,
        scope: SearchScope = SearchScope.SUBTREE,
    ) -> AsyncGenerator[DirectoryObject, None]:
        """Yields the objects of a type that meet a condition, below ``base`` if that is given."""
        async with aclosing(self.found(object_type, condition, base=base, scope=scope)) as found:
            async for each in found:
                yield each.obj

    async def found(
        self,
        object_type: ObjectType,
        condition: Filter | None = None,
        *,
        base: str | None = None,
        scope: SearchScope = SearchScope.SUBTREE,
        gates: Gates | None = None,
    ) -> AsyncGenerator[ReadObject, None]:
        """Yields the objects with their entries; ``gates`` of sites are searched if not given."""
        batch: list[LdapEntry] = []
        async with aclosing(self.entries(object_type, condition, base, scope)) as found:
            async for entry in found:
                batch.append(entry)
                if len(batch) == BATCH:
                    for each in await self._objects_of(object_type, batch, gates):
                        yield each
                    batch = []
        for each in await self._objects_of(object_type, batch, gates):
            yield each

    async def entries(
        self,
        object_type: ObjectType,
        condition: Filter | None = None,
        base: str | None = None,
        scope: SearchScope = SearchScope.SUBTREE,
    ) -> AsyncGenerator[LdapEntry, None]:
        """Yields entries of a type with the attributes that its objects take."""
        query = LdapQuery(
            str(self.forest.search_base(object_type)) if base is None else base,
            scope,
            search_filter(object_type, *([] if condition is None else [condition])),
            self.columns[object_type].own,
            CONTROLS,
            self.page_size,
        )
        async with aclosing(self.client.search(query)) as found:
            async for entry in found:
                yield entry

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
        entry = await self.client.read(name, self.columns[object_type].own, CONTROLS)
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
            entries = [entry async for entry in found]
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
                names[guid] = entry.distinguished_name
        return References(names)

    # --- objects of entries -----------------------------------------------------------------------

    async def _objects_of(
        self, object_type: ObjectType, entries: Sequence[LdapEntry], gates: Gates | None
    ) -> list[ReadObject]:
        views: Sequence[EntryView | BaseException]
        if object_type is ObjectType.SITE and gates is not None:
            views = [self._with_gates(entry, gates) for entry in entries]
        elif object_type is ObjectType.QUEUE:
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
                made.append(ReadObject(entry, self._object(object_type, view)))
            except (BadAttribute, DirectoryError, WireError) as error:
                told = error if isinstance(error, BadAttribute) else ProtocolError(str(error))
                self.skipped(object_type, entry, told)
        return made

    def _with_gates(self, site: LdapEntry, gates: Gates) -> EntryView:
        found = () if site.guid is None else gates.get(site.guid, ())
        return EntryView(site, self.forest, gates=found)

    async def _completed(self, object_type: ObjectType, entry: LdapEntry) -> EntryView:
        """The entry with what its properties need from others."""
        view = EntryView(entry, self.forest)
        columns = self.columns[object_type].computer
        if object_type is ObjectType.QUEUE:
            return replace(view, computer=await self._computer_at(view.name.parent.parent))
        if columns:
            computer = await self.client.read(str(view.name.parent), columns)
            if computer is not None:
                self._remember(computer)
                view = replace(view, computer=computer)
        if object_type is ObjectType.SITE and entry.guid is not None:
            ends = tuple(
                Equality(end, str(view.name).encode()) for end in ("mSMQSite1", "mSMQSite2")
            )
            view = self._with_gates(entry, await gates_in([self], Or(ends)))
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
        computer = await self.client.read(str(place), _IDENTITY)
        return None if computer is None else self._remember(computer)

    def _remember(self, computer: LdapEntry) -> LdapEntry:
        """Without its certificates, which may be large."""
        kept = ((name, computer.values(name)) for name in _IDENTITY if computer.values(name))
        known = LdapEntry(computer.name, tuple(kept))
        self.computers.put(known)
        return known

    def _object(self, object_type: ObjectType, view: EntryView) -> DirectoryObject:
        unfit: list[BadAttribute] | None = None if self.unfit is None else []
        propids = self.columns[object_type].propids
        if self.hidden:
            propids = shown_in(view.entry, propids)
        made = read_object(view, object_type, _partition(object_type, view), propids, unfit)
        if unfit and self.unfit is not None:
            self.unfit(object_type, view.entry, unfit)
        return made

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


async def gates_in(domains: Sequence[ForestReader], condition: Filter | None = None) -> Gates:
    """The gates of the sites of a forest, by its links that meet a condition (3.1.6.20.4).

    Gates are few among the machines; a deleted one has no sites.
    """
    async with aclosing(domains[0].entries(ObjectType.ROUTINGLINK, condition)) as found:
        links = [link async for link in found]
    named = sorted(frozenset[Guid]().union(*map(gates_of_link, links)))
    sites: dict[Guid, tuple[Guid, ...]] = {}
    for start in range(0, len(named), BATCH):
        for domain in domains:
            some = named[start : start + BATCH]
            told = await asyncio.gather(*map(domain.sites_of, some))
            for gate, listed in zip(some, told, strict=True):
                sites[gate] = sites.get(gate, ()) + listed
    return gates_of_sites(links, sites)


async def read_forest(client: LdapDirectory) -> Forest:
    """Reads the naming contexts of a server; ``ProtocolError`` if it is no domain controller."""
    root = await client.read("", ROOT_ATTRIBUTES)
    if root is None:
        raise ProtocolError("the server shows no root entry: it is no directory")
    return Forest.of(root)


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
