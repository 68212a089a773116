"""Puts the objects of a store into a running Active Directory: first a plan, then the writing.

The command only adds. An object whose identifier or name is there already is left alone. One that
was deleted is put back with its identifier (its tombstone is reanimated, MS-ADTS 3.1.1.5.3.7). All
others are made anew, and the directory gives them new identifiers, which is told.

Each step looks for itself: whoever is interrupted runs the command again, and it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from enum import Enum

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.transfer import Progress, silent
from mqis.protocol.activedirectory.conditions import class_filter
from mqis.protocol.activedirectory.creating import (
    EntryCreation,
    entry_name,
    plan_after_creation,
    plan_creation,
)
from mqis.protocol.activedirectory.forest import SETTINGS_CLASS, Forest
from mqis.protocol.activedirectory.publishing import Renumbering, reanimation
from mqis.protocol.activedirectory.servers import SERVER_ATTRIBUTES, MachineServices
from mqis.protocol.activedirectory.steps import ENTRY_ALREADY_EXISTS, PlanFacts, PlanStep
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ports import Store, View
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.controls import show_deleted
from mqis.wire.ldap.filters import Equality, Or
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: The types that are written, each after those that it refers to. Sites only if that is asked for.
_TYPES = (ObjectType.SITE, ObjectType.MACHINE, ObjectType.ROUTINGLINK, ObjectType.QUEUE)


class PublishAction(Enum):
    """The fate of an object."""

    PRESENT = "is there already"
    SAME_NAME = "another object of this name is there already"
    PUT_BACK = "is put back with its identifier"
    CREATE = "is made, with a new identifier"
    #: Of a machine that is there already.
    SETTINGS = "its settings are made"
    #: After a write only.
    REFUSED = "was refused"


#: What counts as written.
WRITTEN = frozenset({PublishAction.PUT_BACK, PublishAction.CREATE, PublishAction.SETTINGS})


@dataclass(frozen=True, slots=True)
class PublishStep:
    """One object and what happens to it, or has happened."""

    obj: DirectoryObject
    action: PublishAction
    #: The reason of a refusal.
    reason: str = ""

    @property
    def name(self) -> str:
        return self.obj.path or str(self.obj.id)

    def __str__(self) -> str:
        told = f"{self.obj.type.label} {self.name}: {self.action.value}"
        return f"{told}: {self.reason}" if self.reason else told


@dataclass(slots=True)
class Existing:
    """Identifiers and names of what the directory has, living and deleted."""

    names: dict[Guid, DistinguishedName] = field(default_factory=dict)
    guids: dict[str, Guid] = field(default_factory=dict)
    #: The names of tombstones.
    deleted: dict[Guid, str] = field(default_factory=dict)
    computers: dict[str, LdapEntry | None] = field(default_factory=dict)

    def add(self, guid: Guid, name: DistinguishedName) -> None:
        self.names[guid] = name
        self.guids[str(name).casefold()] = guid


class Publishing:
    """Plans and writes the objects of one view into one forest."""

    def __init__(
        self, estate: EstateReader, view: View, notes: TransferNotes, *, sites: bool = False
    ) -> None:
        self._estate = estate
        self._view = view
        self._notes = notes
        self._sites = sites
        self._existing = Existing()
        self._renumbered = Renumbering()
        self._planned: set[str] = set()

    async def plan(self) -> list[PublishStep]:
        """Returns what happens to each object; nothing is written."""
        await self._look()
        steps = []
        for obj in self._objects():
            step = await self._step(obj)
            if step is not None:
                steps.append(await self._completed(step))
        self._tell_left_out()
        return steps

    async def write(
        self, steps: Sequence[PublishStep], progress: Progress = silent
    ) -> list[PublishStep]:
        """Carries out a plan; returns what has happened: a step that was refused says so."""
        done = []
        for at, step in enumerate(steps, 1):
            try:
                await self._write(step)
            except (DirectoryError, LdapRefused, WireError) as error:
                what = "its settings were" if step.action is PublishAction.SETTINGS else "was"
                self._notes.tell(f"{what} not written: {error}", step.name)
                done.append(PublishStep(step.obj, PublishAction.REFUSED, str(error)))
            else:
                done.append(step)
            progress(at, len(steps))
        return done

    # --- looking ----------------------------------------------------------------------------------

    async def _look(self) -> None:
        objects = (condition for kind in _TYPES for condition in class_filter(kind))
        classes = (*objects, Equality("objectClass", SETTINGS_CLASS.encode()))
        first = self._estate.first
        places = [(domain, domain.forest.domain) for domain in self._estate.domains]
        for reader, base in [*places, (first, first.forest.configuration)]:
            query = LdapQuery(
                str(base),
                filter=Or(classes),
                attributes=("objectGUID", "isDeleted"),
                controls=(show_deleted,),
            )
            async with aclosing(reader.client.search(query)) as found:
                async for entry in found:
                    self._remember(entry)

    def _remember(self, entry: LdapEntry) -> None:
        if entry.guid is None:
            return
        if entry.text("isDeleted") == "TRUE":
            self._existing.deleted[entry.guid] = entry.name
            return
        try:
            self._existing.add(entry.guid, entry.distinguished_name)
        except WireError as error:
            raise StorageError(
                f"{entry.name}: the directory shows no such name: {error}"
            ) from error

    async def _step(self, obj: DirectoryObject) -> PublishStep | None:
        if obj.id in self._existing.names:
            return PublishStep(obj, PublishAction.PRESENT)
        try:
            name = entry_name(*await self._creation(obj))
        except (DirectoryError, WireError) as error:
            self._notes.tell(f"cannot be written: {error}", obj.path or str(obj.id))
            return None
        there = self._existing.guids.get(str(name).casefold())
        if there is not None:
            self._renumbered.note(obj.id, there)
            return PublishStep(obj, PublishAction.SAME_NAME)
        missing = self._missing(obj, name)
        if missing:
            self._notes.tell(missing, obj.path or str(obj.id))
            return None
        self._planned.add(str(name).casefold())
        self._existing.names[obj.id] = name  # so that what refers to it can be planned
        put_back = obj.id in self._existing.deleted
        return PublishStep(obj, PublishAction.PUT_BACK if put_back else PublishAction.CREATE)

    async def _completed(self, step: PublishStep) -> PublishStep:
        """The step; for a server that is there without its settings, one that makes them.

        An interrupted run did not reach them.
        """
        if step.obj.type is not ObjectType.MACHINE or step.action in WRITTEN:
            return step
        try:
            lacking = await self._lacks_settings(step.obj)
        except (DirectoryError, LdapRefused, WireError) as error:
            self._notes.tell(f"its settings cannot be looked for: {error}", step.name)
            return step
        return PublishStep(step.obj, PublishAction.SETTINGS) if lacking else step

    async def _lacks_settings(self, machine: DirectoryObject) -> bool:
        creation, forest, facts = await self._creation(machine)
        here = self._renumbered.of(machine.id)
        place = self._existing.names.get(here)
        if place is None or not creation.services.is_server:
            return False
        found = await self._estate.reader_at(place).client.read(here, SERVER_ATTRIBUTES)
        if found is None or not MachineServices.of(EntryView(found, forest)).is_server:
            return False
        return any(
            SETTINGS_CLASS.encode() in change.values("objectClass")
            and str(DistinguishedName.parse(change.name)).casefold() not in self._existing.guids
            for change in self._settings_entries(machine, creation, facts)
        )

    def _missing(self, obj: DirectoryObject, name: DistinguishedName) -> str:
        """The reason why an object cannot be written here; empty if it can."""
        known = self._existing.names
        match obj.type:
            case ObjectType.SITE if not self._sites:
                return "sites are missing in the Active Directory: make them there, or use --sites"
            case ObjectType.MACHINE:
                sites = guids_of(self._renumbered.translated(obj).value(PropId.QM_SITE_IDS))
                return "" if known.keys() & set(sites) else "cannot be written: its site is missing"
            case ObjectType.ROUTINGLINK:
                link = self._renumbered.translated(obj)
                ends = {link.value(PropId.L_NEIGHBOR1), link.value(PropId.L_NEIGHBOR2)}
                return "" if ends <= known.keys() else "cannot be written: a site is missing"
            case ObjectType.QUEUE:
                machine = str(name.parent).casefold()
                there = machine in self._planned or machine in self._existing.guids
                return "" if there else "cannot be written: its machine is missing"
        return ""

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, step: PublishStep) -> None:
        obj = step.obj
        if step.action not in WRITTEN:
            return
        creation, forest, facts = await self._creation(obj)
        if step.action is PublishAction.SETTINGS:
            await self._settings(obj, creation, facts)
            return
        made = plan_creation(creation, forest, facts)
        if step.action is PublishAction.PUT_BACK:
            back = reanimation(self._existing.deleted[obj.id], made.change)
            place = DistinguishedName.parse(made.change.name)
            await self._estate.reader_at(place).client.apply(back, (show_deleted,))
            self._existing.add(obj.id, entry_name(creation, forest, facts))
        else:
            await self._apply(made)
            await self._numbered(obj, entry_name(creation, forest, facts))
        await self._settings(obj, creation, facts)

    async def _settings(
        self, machine: DirectoryObject, creation: EntryCreation, facts: PlanFacts
    ) -> None:
        """Adds the settings of a server."""
        for change in self._settings_entries(machine, creation, facts):
            await self._apply(PlanStep(change, frozenset({ENTRY_ALREADY_EXISTS})))

    def _settings_entries(
        self, machine: DirectoryObject, creation: EntryCreation, facts: PlanFacts
    ) -> Iterator[AddEntry]:
        """The settings of a server, and the entries above. Each computer writes its own keys."""
        for step in plan_after_creation(creation, self._renumbered.of(machine.id), facts):
            if isinstance(step.change, AddEntry):
                yield step.change

    async def _apply(self, step: PlanStep) -> None:
        try:
            place = DistinguishedName.parse(step.change.name)
            await self._estate.reader_at(place).client.apply(step.change)
        except LdapRefused as error:
            if error.code not in step.accepted:
                raise

    async def _numbered(self, obj: DirectoryObject, name: DistinguishedName) -> None:
        """Reads the identifier that the directory has given."""
        found = await self._estate.reader_at(name).client.read(str(name), ("objectGUID",))
        guid = None if found is None else found.guid
        if guid is None:
            raise StorageError(f"{name}: was made, and cannot be read: has the account the right?")
        self._existing.add(guid, name)
        self._renumbered.note(obj.id, guid)
        told = f"{obj.path or name}: {obj.id} -> {guid}"
        self._notes.tell("objects got another identifier", told)

    async def _creation(self, obj: DirectoryObject) -> tuple[EntryCreation, Forest, PlanFacts]:
        """The entry to make, with the identifiers that this directory uses."""
        here = self._renumbered.translated(obj)
        creation = EntryCreation(here.type, here.path or "", here.properties, sites_allowed=True)
        computer = await self._computer_of(here, creation) if creation.computer else None
        wanted = creation.needs().names
        known = self._existing.names
        names = {guid: known[guid] for guid in wanted if guid in known}
        return creation, self._estate.first.forest, PlanFacts(computer, References(names))

    async def _computer_of(self, obj: DirectoryObject, creation: EntryCreation) -> LdapEntry | None:
        """The computer of a machine or a queue.

        One that is there says itself below which computer it stands, whatever that is called; so
        does the machine of a queue (E-MQDSSM-62).
        """
        is_queue = obj.type is ObjectType.QUEUE
        machine = obj.value(PropId.Q_QMID) if is_queue else self._renumbered.of(obj.id)
        place = self._existing.names.get(machine) if isinstance(machine, Guid) else None
        if place is None or not (is_queue or str(place).casefold() in self._existing.guids):
            return await self._computer(creation.computer)
        return LdapEntry(str(place.parent), ())

    async def _computer(self, name: str) -> LdapEntry | None:
        key = name.casefold()
        if key not in self._existing.computers:
            found = [await domain.find_computer(name) for domain in self._estate.domains]
            self._existing.computers[key] = next((each for each in found if each), None)
        return self._existing.computers[key]

    # --- objects ----------------------------------------------------------------------------------

    def _objects(self) -> Iterator[DirectoryObject]:
        for object_type in _TYPES:
            yield from self._view.objects(object_type)

    def _tell_left_out(self) -> None:
        for user in self._view.objects(ObjectType.USER):
            self._notes.tell("certificates of users are not written", str(user.id))


# --- over the network -----------------------------------------------------------------------------


async def publish_store(
    domains: Sequence[ConnectingOptions],
    store: Store,
    *,
    write: bool,
    sites: bool = False,
    progress: Progress = silent,
) -> tuple[list[PublishStep], int, TransferNotes]:
    """Returns the plan, the number of objects written, and the remarks.

    After a write, a step of the plan that was refused is ``PublishAction.REFUSED``.
    An object goes into the domain that has its computer.
    """
    notes = TransferNotes()
    async with AsyncExitStack() as stack:
        clients = []
        for options in domains:
            client, _ = await connect(options)
            stack.push_async_callback(client.close)
            clients.append(client)
        try:
            estate = EstateReader.of([await ForestReader.open(client) for client in clients])
            with store.read() as view:
                publishing = Publishing(estate, view, notes, sites=sites)
                steps = await publishing.plan()
                if write:
                    steps = await publishing.write(steps, progress)
        except LdapConnectionLost as error:
            reason = f"{error}; run the command again: what was written is found, and it goes on"
            raise MqisError(reason) from error
        except LdapError as error:
            raise explained(error) from error
    written = sum(step.action in WRITTEN for step in steps) if write else 0
    return steps, written, notes
