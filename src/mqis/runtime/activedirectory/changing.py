"""Changes of a directory call in an Active Directory (MS-MQDSSM 3.1.6.1, 3.1.6.2, 3.1.6.7).

Each change is a plan of LDAP operations, which are sent at once and in order. They are no
transaction: a write that was interrupted is completed when the same call is made again. A machine
that was created without its settings is deleted and created again.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

from mqis.protocol.activedirectory.changing import PropertyWrite, plan_deletion, plan_write
from mqis.protocol.activedirectory.creating import (
    EntryCreation,
    given_descriptor,
    plan_after_creation,
    plan_creation,
    reverse_link,
)
from mqis.protocol.activedirectory.results import hresult_of
from mqis.protocol.activedirectory.steps import (
    ENTRY_ALREADY_EXISTS,
    PlanFacts,
    PlanStep,
    needed_right,
    value_in,
)
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition
from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.protocol.errors import ChangedMeanwhile, DirectoryError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.errors import LdapRefused
from mqis.runtime.activedirectory.connection import CallerConnection, ForestConnection
from mqis.runtime.activedirectory.errors import AccountRefused
from mqis.runtime.activedirectory.forestview import ForestView
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.journal import JournalRecord
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.seqnum import SequenceNumber

#: The directory keeps these by itself.
_TIMES: Final = frozenset(
    propid
    for role in (PropertyRole.CREATE_TIME, PropertyRole.MODIFY_TIME)
    for propid in by_role(role).values()
)
_NO_CERTIFICATES: Final[Properties] = {PropId.U_SIGN_CERT: prop(PropId.U_SIGN_CERT, b"")}


class ForestTransaction(ForestView):
    """A view that also changes. Every change is made at once."""

    def __init__(self, link: ForestConnection, *, sites_allowed: bool = False) -> None:
        super().__init__(link)
        self._sites_allowed = sites_allowed

    @property
    def writes(self) -> None:
        """Not counted: nothing can be rolled back."""

    def insert(self, obj: DirectoryObject) -> DirectoryObject:
        """Creates an object and returns it with the identifier that the directory has given."""
        descriptor = given_descriptor(obj.type, obj.properties)
        creation = EntryCreation(
            obj.type,
            obj.path or "",
            obj.properties,
            creator=None if descriptor is None else descriptor.owner,
            owned_by_caller=isinstance(self._link, CallerConnection),
            sites_allowed=self._sites_allowed,
        )
        guid = self._link.ask(obj.type, lambda reader: _create(reader, creation))
        self._remembered.clear()
        return replace(obj, id=guid)

    def update(self, old: DirectoryObject, new: DirectoryObject) -> None:
        changed = {
            propid: value
            for propid, value in new.properties.items()
            if propid not in _TIMES and old.properties.get(propid) != value
        }
        self._write(old, changed)

    def _write(self, obj: DirectoryObject, changed: Properties) -> None:
        allowed = self._sites_allowed
        self._link.ask(obj.type, lambda reader: _write(reader, obj, changed, allowed))
        self._remembered.clear()

    def delete(self, obj: DirectoryObject) -> None:
        """Deletes an object. Of a user the certificates go: the account is not ours to delete."""
        if obj.type is ObjectType.USER:
            self._write(obj, _NO_CERTIFICATES)
            return
        allowed = self._sites_allowed
        self._link.ask(obj.type, lambda reader: _delete(reader, obj, allowed))
        self._remembered.clear()

    def savepoint(self) -> AbstractContextManager[None]:
        return nullcontext()

    # --- what only a store of our own keeps -------------------------------------------------------

    def insert_if_free(self, obj: DirectoryObject) -> bool:
        raise _of_replication()

    def put_creator(self, object_type: ObjectType, id: Guid, account: bytes) -> None:  # noqa: A002
        """Nothing to do: the directory limits accounts by quotas of its own."""

    def bury(self, tombstone: DeletedObject) -> None:
        """Nothing to do: the directory keeps tombstones of its own."""

    def unbury(self, partition: Guid, id: Guid) -> None:  # noqa: A002
        """Nothing to do."""

    def put_partition(self, partition: Partition) -> None:
        """Nothing to do: changes are numbered by the directory (uSNChanged)."""

    def drop_partition(self, id: Guid) -> None:  # noqa: A002
        """Nothing to do."""

    def purge(self, partition: Guid, through: SequenceNumber) -> int:
        return 0

    def put_state(self, family: str, key: bytes, value: bytes) -> None:
        raise _of_replication()

    def drop_state(self, family: str, key: bytes) -> None:
        raise _of_replication()

    def append(self, record: JournalRecord) -> int:
        raise _of_replication()

    def trim_outbox(self, through: int) -> None:
        """Nothing to do: nothing was appended."""


def _of_replication() -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_UNSUPPORTED_OPERATION, "Active Directory replicates itself"
    )


async def _create(reader: ForestReader, creation: EntryCreation) -> Guid:
    needs = creation.needs()
    known = await reader.names_of(sorted(needs.names))
    facts = PlanFacts(await _computer(reader, creation), known)
    if creation.object_type is ObjectType.ROUTINGLINK:
        await _refuse_second_link(reader, creation)
    step = plan_creation(creation, reader.forest, facts)
    await _apply(reader, [step])
    made = await reader.client.read(step.change.name, ("objectGUID",))
    guid = None if made is None else made.guid
    if guid is None:
        raise BadAttribute(step.change.name, "objectGUID", "the new entry does not show it")
    await _apply(reader, plan_after_creation(creation, guid, facts))
    return guid


async def _computer(reader: ForestReader, creation: EntryCreation) -> LdapEntry | None:
    """The computer of a new machine or queue.

    A queue belongs to the machine that the caller's rights were checked against, whatever its
    computer is called by now.
    """
    machine = value_in(creation.properties, PropId.Q_QMID)
    if creation.object_type is ObjectType.QUEUE and isinstance(machine, Guid):
        place = (await reader.names_of([machine])).names.get(machine)
        return None if place is None else LdapEntry(str(place.parent), ())
    return await reader.find_computer(creation.computer) if creation.computer else None


async def _refuse_second_link(reader: ForestReader, creation: EntryCreation) -> None:
    name = str(reverse_link(creation, reader.forest))
    if await reader.client.read(name, ("objectGUID",)) is not None:
        code = hresult_of(ENTRY_ALREADY_EXISTS, ObjectType.ROUTINGLINK)
        raise DirectoryError(code, f"{name} links these sites already")


async def _write(
    reader: ForestReader, obj: DirectoryObject, changed: Properties, sites_allowed: bool
) -> None:
    view = await _view(reader, obj)
    write = PropertyWrite(obj.type, view, changed, sites_allowed, obj.properties)
    known = await reader.names_of(sorted(write.needs()))
    await _apply(reader, plan_write(replace(write, view=replace(view, references=known))))


async def _delete(reader: ForestReader, obj: DirectoryObject, sites_allowed: bool) -> None:
    view = await _view(reader, obj)
    sites = [Guid(value) for value in view.entry.values("mSMQSites") if len(value) == 16]
    view = replace(view, references=await reader.names_of(sites))
    await _apply(reader, plan_deletion(obj.type, view, sites_allowed=sites_allowed))


async def _view(reader: ForestReader, obj: DirectoryObject) -> EntryView:
    entry = await reader.read_entry(obj.type, obj.id)
    if entry is None:
        raise DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, f"no {obj.type.label} {obj.id}")
    return EntryView(entry, reader.forest)


async def _apply(reader: ForestReader, steps: Iterable[PlanStep]) -> None:
    for step in steps:
        try:
            await reader.client.apply(step.change)
        except LdapRefused as error:
            if error.code in step.conflicts:
                raise ChangedMeanwhile(str(error)) from error
            if error.code in step.accepted:
                continue
            if error.code == ResultCode.INSUFFICIENT_ACCESS_RIGHTS:
                raise AccountRefused(str(error), needed_right(step.change)) from error
            raise
