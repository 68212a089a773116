"""Plans that create objects (MS-MQDSSM 3.1.6.1).

Active Directory chooses the identifier of a new entry: read it after the first step (E-MQDSSM-17).
Only a database that is filled without a server keeps a given one (``identifier``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mqis.protocol.activedirectory.certificates import certificate_attributes
from mqis.protocol.activedirectory.forest import (
    LDAP_CLASSES,
    Forest,
    machine_name,
    queue_name,
)
from mqis.protocol.activedirectory.queuename import split_name
from mqis.protocol.activedirectory.rights import to_active_directory
from mqis.protocol.activedirectory.servers import MachineServices, make_settings
from mqis.protocol.activedirectory.steps import (
    ENTRY_ALREADY_EXISTS,
    PlanFacts,
    PlanNeeds,
    PlanStep,
    attributes_of,
    invalid,
    missing,
    not_found,
    references_in,
    value_in,
    with_values,
)
from mqis.protocol.directory.objects import SECURITY_PROPERTY
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.security.masks import MachineRights
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry, AttributeChange, ModifyEntry, ModifyKind
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

#: The schema's limit for a common name; a directory may not check it.
MAX_COMMON_NAME = 64


@dataclass(frozen=True, slots=True)
class EntryCreation:
    """An object to create. ``path`` is its name in MS-MQDS; links have none."""

    object_type: ObjectType
    path: str
    properties: Properties
    #: Who creates it, for the descriptor of a machine.
    creator: Sid | None = None
    #: Written as objectGUID, which a server refuses.
    identifier: Guid | None = None
    #: The directory makes the caller the owner: only a privilege makes somebody else that.
    owned_by_caller: bool = False
    #: Sites are the replication topology of Active Directory itself (E-MQDSSM-03).
    sites_allowed: bool = False

    @property
    def computer(self) -> str:
        """The name of the computer that a machine or a queue belongs to."""
        if self.object_type is ObjectType.QUEUE:
            return QueuePath.parse(self.path).computer
        return self.path if self.object_type is ObjectType.MACHINE else ""

    def needs(self) -> PlanNeeds:
        names = references_in(self.object_type, self.properties)
        return PlanNeeds(self.computer, names | frozenset(self.services.sites))

    @property
    def services(self) -> MachineServices:
        if self.object_type is not ObjectType.MACHINE:
            return MachineServices()
        return MachineServices().with_properties(self.properties)


def plan_creation(creation: EntryCreation, forest: Forest, facts: PlanFacts) -> PlanStep:
    """Returns the step that makes the entry; ``DirectoryError`` if something is missing."""
    name = entry_name(creation, forest, facts)
    if len(name.leaf) > MAX_COMMON_NAME:
        raise invalid(f"{name.leaf!r} has more than {MAX_COMMON_NAME} characters")
    rows = with_values(_attributes(creation, facts))
    # A machine that was made before is no error: its settings may be missing still.
    again = creation.object_type is ObjectType.MACHINE
    accepted = frozenset({ENTRY_ALREADY_EXISTS} if again else ())
    return PlanStep(AddEntry(str(name), rows), accepted)


def plan_after_creation(
    creation: EntryCreation, machine: Guid, facts: PlanFacts
) -> tuple[PlanStep, ...]:
    """Returns the steps that follow once the directory has made a machine (3.1.6.1.1.3)."""
    if creation.object_type is not ObjectType.MACHINE:
        return ()
    steps: list[PlanStep] = []
    computer = _computer(creation, facts)
    certificates = with_values(certificate_attributes(creation.properties))
    if certificates:
        changes = tuple(AttributeChange(ModifyKind.REPLACE, *row) for row in certificates)
        steps.append(PlanStep(ModifyEntry(str(computer.distinguished_name), changes)))
    services = creation.services
    if services.is_server:
        sites = [facts.references.names.get(site) for site in services.sites]
        known = [site for site in sites if site is not None]
        steps += make_settings(computer.distinguished_name, known, machine, services)
    return tuple(steps)


def entry_name(creation: EntryCreation, forest: Forest, facts: PlanFacts) -> DistinguishedName:
    """The name of the new entry."""
    match creation.object_type:
        case ObjectType.MACHINE:
            return machine_name(_computer(creation, facts).distinguished_name)
        case ObjectType.QUEUE:
            computer = _computer(creation, facts).distinguished_name
            return queue_name(computer, QueuePath.parse(creation.path).queue)
        case ObjectType.SITE if creation.sites_allowed:
            return forest.site(creation.path)
        case ObjectType.SITE:
            raise DirectoryError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                "a site is part of Active Directory's own topology; allow it explicitly",
            )
        case ObjectType.ROUTINGLINK:
            return forest.link(*_ends(creation.properties))
    raise DirectoryError(
        HResult.MQ_ERROR_UNSUPPORTED_OPERATION,
        f"Active Directory makes no {creation.object_type.label} for Message Queuing",
    )


def reverse_link(creation: EntryCreation, forest: Forest) -> DistinguishedName:
    """The name of a link between the same sites in the other direction, which must not exist."""
    site1, site2 = _ends(creation.properties)
    return forest.link(site2, site1)


def _ends(properties: Properties) -> tuple[Guid, Guid]:
    ends = [value_in(properties, end) for end in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)]
    cost = value_in(properties, PropId.L_ACTUAL_COST)
    if not isinstance(ends[0], Guid) or not isinstance(ends[1], Guid) or cost is None:
        raise missing("a link needs both of its sites and its cost")
    return ends[0], ends[1]


def _computer(creation: EntryCreation, facts: PlanFacts) -> LdapEntry:
    if facts.computer is None:
        raise not_found(f"Active Directory has no computer {creation.computer}")
    return facts.computer


def _attributes(
    creation: EntryCreation, facts: PlanFacts
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    object_type = creation.object_type
    yield "objectClass", (LDAP_CLASSES[object_type].encode(),)
    if creation.identifier is not None:
        yield "objectGUID", (creation.identifier.raw,)
    given = dict(creation.properties)
    if object_type is ObjectType.MACHINE:
        yield from creation.services.machine_attributes()
        if not creation.services.sites:
            raise missing("a machine needs at least one site")
        yield "mSMQSites", tuple(dict.fromkeys(site.raw for site in creation.services.sites))
        given.pop(PropId.QM_SITE_IDS, None)
    if object_type is ObjectType.QUEUE:
        rest = split_name(QueuePath.parse(creation.path).queue)[1]
        yield "mSMQQueueNameExt", (rest.encode(),) if rest else ()
    yield from attributes_of(object_type, given, Use.CREATE, facts.references)
    descriptor = _descriptor(creation, facts)
    if descriptor is not None:
        translated = to_active_directory(descriptor, object_type)
        yield "nTSecurityDescriptor", (translated.to_bytes(),)


# --- descriptors ----------------------------------------------------------------------------------


def _descriptor(creation: EntryCreation, facts: PlanFacts) -> SecurityDescriptor | None:
    given = given_descriptor(creation.object_type, creation.properties)
    if creation.object_type is not ObjectType.MACHINE:
        return given
    user = creation.creator if given is None or given.owner is None else given.owner
    foreign = value_in(creation.properties, PropId.QM_FOREIGN) == 1
    made = machine_descriptor(_computer_sid(facts), user, foreign=foreign)
    return replace(made, owner=None) if creation.owned_by_caller else made


def given_descriptor(object_type: ObjectType, properties: Properties) -> SecurityDescriptor | None:
    """The descriptor in the properties of an object; None without one."""
    propid = SECURITY_PROPERTY.get(object_type)
    value = None if propid is None else value_in(properties, propid)
    if not isinstance(value, bytes) or not value:
        return None
    try:
        return SecurityDescriptor.from_bytes(value)
    except WireError as error:
        raise invalid(f"the security descriptor: {error}") from error


def _computer_sid(facts: PlanFacts) -> Sid | None:
    values = () if facts.computer is None else facts.computer.values("objectSid")
    try:
        return Sid.from_bytes(values[0]) if values else None
    except WireError:
        return None


def machine_descriptor(
    computer: Sid | None, user: Sid | None, *, foreign: bool
) -> SecurityDescriptor:
    """The descriptor of a new machine (3.1.6.1.1.8); of a given one only the owner counts."""
    world = MachineRights.MACHINE_GENERIC_WRITE if foreign else MachineRights.MACHINE_WORLD_RIGHTS
    full = MachineRights.MACHINE_GENERIC_ALL
    trusted = [sid for sid in dict.fromkeys((computer, user)) if sid is not None]
    aces = (allow(well_known.EVERYONE, world), *(allow(sid, full) for sid in trusted))
    return SecurityDescriptor(owner=computer, dacl=Acl(aces))
