"""Plans that write properties of objects and that delete objects (MS-MQDSSM 3.1.6.2, 3.1.6.7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mqis.protocol.activedirectory.certificates import certificate_attributes, user_changes
from mqis.protocol.activedirectory.creating import given_descriptor
from mqis.protocol.activedirectory.rights import parts_of, to_active_directory
from mqis.protocol.activedirectory.servers import (
    MachineServices,
    make_settings,
    remove_settings,
    writes_services,
)
from mqis.protocol.activedirectory.steps import (
    OTHER_VALUES,
    PlanStep,
    attributes_of,
    references_in,
)
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import BadAttribute
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AttributeChange, DeleteEntry, ModifyEntry, ModifyKind
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties

_DELETABLE = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.SITE,
    ObjectType.ROUTINGLINK,
)


@dataclass(frozen=True, slots=True)
class PropertyWrite:
    """Properties to write to the entry of ``view``, which was read before.

    Of a machine the view has ``SERVER_ATTRIBUTES``, and its references have the names of the sites
    that ``needs`` returns.
    """

    object_type: ObjectType
    view: EntryView
    properties: Properties
    #: The descriptor of a site guards the topology of Active Directory (E-MQDSSM-03).
    sites_allowed: bool = False
    #: The properties that the new ones were made of: what a user had before.
    read: Properties = field(default_factory=dict)

    @property
    def before(self) -> MachineServices:
        is_machine = self.object_type is ObjectType.MACHINE
        return MachineServices.of(self.view) if is_machine else MachineServices()

    @property
    def after(self) -> MachineServices:
        is_machine = self.object_type is ObjectType.MACHINE
        return self.before.with_properties(self.properties) if is_machine else MachineServices()

    def needs(self) -> frozenset[Guid]:
        """The identifiers whose names the plan needs."""
        sites = frozenset(self.before.sites) | frozenset(self.after.sites)
        return references_in(self.object_type, self.properties) | sites


def plan_write(write: PropertyWrite) -> tuple[PlanStep, ...]:
    """Returns the steps: settings, properties, descriptor, certificates (3.1.6.7).

    Settings come first. What they were made of is seen at the machine's entry, so a write that is
    interrupted among them is seen as not made, and the same write completes it (E-MQDSSM-54).
    """
    if write.object_type in (ObjectType.CN, ObjectType.DELETEDOBJECT):
        raise DirectoryError(
            HResult.MQ_ERROR_UNSUPPORTED_OPERATION,
            f"Active Directory keeps no {write.object_type.label} of Message Queuing",
        )
    if write.object_type is ObjectType.USER:
        changes = tuple(user_changes(write.properties, write.read))
        modified = ModifyEntry(str(write.view.name), changes)
        return (PlanStep(modified, conflicts=OTHER_VALUES),) if changes else ()
    return (*_settings(write), *(PlanStep(change) for change in _modifications(write)))


def _modifications(write: PropertyWrite) -> Iterator[ModifyEntry]:
    name = str(write.view.name)
    changes = _replaced(_attributes(write))
    if changes:  # a modification without changes is refused
        yield ModifyEntry(name, changes)
    descriptor = given_descriptor(write.object_type, write.properties)
    if descriptor is not None:
        if write.object_type is ObjectType.SITE and not write.sites_allowed:
            raise _own_topology(name)
        translated = to_active_directory(descriptor, write.object_type)
        value = (translated.to_bytes(),)
        change = AttributeChange(ModifyKind.REPLACE, "nTSecurityDescriptor", value)
        yield ModifyEntry(name, (change,), int(parts_of(translated)))
    if write.object_type is ObjectType.MACHINE:
        certificates = _replaced(certificate_attributes(write.properties))
        if certificates:
            yield ModifyEntry(str(write.view.name.parent), certificates)


def _replaced(rows: Iterator[tuple[str, tuple[bytes, ...]]]) -> tuple[AttributeChange, ...]:
    return tuple(AttributeChange(ModifyKind.REPLACE, name, values) for name, values in rows)


def _attributes(write: PropertyWrite) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    given, references = dict(write.properties), write.view.references
    if write.object_type is ObjectType.MACHINE:
        if writes_services(given):
            yield from write.after.machine_attributes()
        if PropId.QM_SITE_ID in given or PropId.QM_SITE_IDS in given:
            yield "mSMQSites", tuple(dict.fromkeys(site.raw for site in write.after.sites))
            given.pop(PropId.QM_SITE_IDS, None)
    yield from attributes_of(write.object_type, given, Use.WRITE, references)


def _settings(write: PropertyWrite) -> Iterator[PlanStep]:
    """Settings follow the services and the sites of a machine (3.1.6.7.1.9)."""
    before, after = write.before, write.after
    if before == after:
        return
    computer = write.view.name.parent
    was = before.sites if before.is_server else ()
    now = after.sites if after.is_server else ()
    gone = [site for site in was if site not in now]
    yield from remove_settings(computer.leaf, _names(write.view, gone))
    if now:
        yield from make_settings(computer, _names(write.view, now), _identifier(write.view), after)


def _identifier(view: EntryView) -> Guid:
    if view.entry.guid is None:
        raise BadAttribute(view.entry.name, "objectGUID", "is missing")
    return view.entry.guid


def _names(view: EntryView, sites: tuple[Guid, ...] | list[Guid]) -> list[DistinguishedName]:
    """A site that was not found is skipped."""
    found = (view.references.names.get(site) for site in sites)
    return [name for name in found if name is not None]


def _own_topology(name: str) -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_ACCESS_DENIED,
        f"{name} is a site of Active Directory's own topology; allow it explicitly",
    )


def plan_deletion(
    object_type: ObjectType, view: EntryView, *, sites_allowed: bool = False
) -> tuple[PlanStep, ...]:
    """Returns the steps that delete an object, of a machine with its queues and settings.

    The services of a machine are read before, for afterwards nobody knows them (E-MQDSSM-14).
    """
    if object_type not in _DELETABLE:
        raise DirectoryError(
            HResult.MQ_ERROR_UNSUPPORTED_OPERATION,
            f"a {object_type.label} cannot be deleted from Active Directory here",
        )
    if object_type is ObjectType.SITE and not sites_allowed:
        raise _own_topology(str(view.name))
    machine = object_type is ObjectType.MACHINE
    steps = [PlanStep(DeleteEntry(str(view.name), tree=machine))]
    if machine:
        services = MachineServices.of(view)
        sites = services.sites if services.is_server else ()
        steps += remove_settings(view.name.parent.leaf, _names(view, sites))
    return tuple(steps)
