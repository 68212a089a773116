"""Objects of a store of our own as entries of an Active Directory, and what those do not keep.

Each entry is read back as the directory would show it: a property that comes back different, or not
at all, is lost there, and the caller tells so. Nothing here asks a directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mqis.protocol.activedirectory.certificates import certificate_attributes
from mqis.protocol.activedirectory.creating import (
    EntryCreation,
    given_descriptor,
    plan_after_creation,
    plan_creation,
)
from mqis.protocol.activedirectory.forest import Forest, machine_name
from mqis.protocol.activedirectory.rights import to_active_directory
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.activedirectory.steps import PlanFacts, value_in, with_values
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.attributes import AttributeRows
from mqis.wire.ldap.changes import AddEntry, EntryChange
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import SecurityDescriptor

#: A disabled computer account: nobody can log on with it before somebody has set its password.
_DISABLED_COMPUTER = b"4098"


@dataclass(frozen=True, slots=True)
class ExportPlaces:
    """The names under which objects are written."""

    forest: Forest
    #: The container of computers, and the names of sites and machines by their identifiers.
    computers: DistinguishedName
    names: Mapping[Guid, DistinguishedName] = field(default_factory=dict)
    #: Write objectGUID: only a database that is filled without a server takes it (E-MQDSSM-17).
    identifiers: bool = True
    #: The gates of each site.
    gates: Mapping[Guid, tuple[Guid, ...]] = field(default_factory=dict)

    def computer(self, name: str) -> DistinguishedName:
        return self.computers.child("CN", name)

    def machine(self, name: str) -> DistinguishedName:
        return machine_name(self.computer(name))

    def facts(self, computer: str) -> PlanFacts:
        entry = LdapEntry(str(self.computer(computer)), ()) if computer else None
        return PlanFacts(entry, References(self.names))


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """The records of an object, and the properties that Active Directory does not keep."""

    records: tuple[AddEntry, ...]
    lost: tuple[PropId, ...] = ()


def computer_entry(machine: DirectoryObject, places: ExportPlaces) -> AddEntry:
    """The account of a machine's computer, with the signing keys of the machine."""
    name = machine.path or ""
    rows: AttributeRows = (
        ("objectClass", (b"computer",)),
        ("sAMAccountName", (f"{name}$".encode(),)),
        ("userAccountControl", (_DISABLED_COMPUTER,)),
    )
    return AddEntry(
        str(places.computer(name)), rows + with_values(certificate_attributes(machine.properties))
    )


def exported_entry(
    obj: DirectoryObject, places: ExportPlaces, *, with_computer: bool = True
) -> ExportedEntry:
    """Returns the records of an object; ``DirectoryError`` if Active Directory cannot have it."""
    if obj.type is ObjectType.ROUTINGLINK:
        obj = _with_site_gates(obj, places)
    creation, facts = _creation(obj, places), _facts(obj, places)
    made = plan_creation(creation, places.forest, facts).change
    assert isinstance(made, AddEntry)
    if obj.type is ObjectType.MACHINE:
        made = _with_descriptor(made, obj)
    computer = None
    records = [made]
    if obj.type is ObjectType.MACHINE:
        if with_computer:
            account = computer_entry(obj, places)
            computer = LdapEntry(account.name, account.attributes)
        records += _settings(creation, obj.id, facts)
    return ExportedEntry(tuple(records), tuple(_lost(obj, made, places, computer)))


def _creation(obj: DirectoryObject, places: ExportPlaces) -> EntryCreation:
    return EntryCreation(
        obj.type,
        obj.path or "",
        obj.properties,
        identifier=obj.id if places.identifiers else None,
        sites_allowed=True,
    )


def _facts(obj: DirectoryObject, places: ExportPlaces) -> PlanFacts:
    computer = ""
    if obj.type is ObjectType.MACHINE:
        computer = obj.path or ""
    if obj.type is ObjectType.QUEUE:
        computer = QueuePath.parse(obj.path or "").computer
    return places.facts(computer)


def _with_site_gates(link: DirectoryObject, places: ExportPlaces) -> DirectoryObject:
    """Active Directory keeps the gates of sites at the links alone (E-MQBR-01)."""
    gates = set(guids_of(link.value(PropId.L_GATES)))
    for end in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2):
        site = link.value(end)
        gates |= set(places.gates.get(site, ())) if isinstance(site, Guid) else set()
    listed = prop(PropId.L_GATES, tuple(sorted(gates)))
    return link.with_properties({PropId.L_GATES: listed}, link.seq)


def _with_descriptor(made: AddEntry, machine: DirectoryObject) -> AddEntry:
    """A machine that exists keeps its permissions; a new one would get those of its computer."""
    given = given_descriptor(ObjectType.MACHINE, machine.properties)
    rows = tuple(row for row in made.attributes if row[0] != "nTSecurityDescriptor")
    if given is None:
        return replace(made, attributes=rows)
    translated = to_active_directory(given, ObjectType.MACHINE).to_bytes()
    return replace(made, attributes=(*rows, ("nTSecurityDescriptor", (translated,))))


def _settings(creation: EntryCreation, machine: Guid, facts: PlanFacts) -> Iterator[AddEntry]:
    for step in plan_after_creation(creation, machine, facts):
        change: EntryChange = step.change
        if isinstance(change, AddEntry):
            yield change


# --- losses ---------------------------------------------------------------------------------------


def _lost(
    obj: DirectoryObject, made: AddEntry, places: ExportPlaces, computer: LdapEntry | None
) -> Iterator[PropId]:
    rows: AttributeRows = (*made.attributes, ("cn", (_leaf(made).encode(),)))
    if obj.type is ObjectType.QUEUE and isinstance(owner := obj.value(PropId.Q_QMID), Guid):
        rows += (("parentGUID", (owner.raw,)),)
    view = EntryView(
        LdapEntry(made.name, rows),
        places.forest,
        computer,
        References(places.names),
        places.gates.get(obj.id, ()),
    )
    for propid, value in obj.properties.items():
        if not _same(PropId(propid), value, _shown(propid, view)):
            yield PropId(propid)


def _leaf(made: AddEntry) -> str:
    return DistinguishedName.parse(made.name).leaf


def _shown(propid: int, view: EntryView) -> PropVariant | None:
    row = ATTRIBUTE_ROWS.get(propid)
    try:
        return None if row is None else row.value(view)
    except BadAttribute:
        return None


def _same(propid: PropId, ours: PropVariant, theirs: PropVariant | None) -> bool:
    if theirs is None:
        return not ours.value
    if propid in SECURITY_PROPERTY.values():
        return _permissions(ours) == _permissions(theirs)
    if isinstance(ours.value, str) and isinstance(theirs.value, str):
        return ours.value.lower() == theirs.value.lower()
    if isinstance(ours.value, tuple) and isinstance(theirs.value, tuple):
        return set(ours.value) == set(theirs.value)
    return ours == theirs


def _permissions(value: PropVariant) -> object:
    assert isinstance(value.value, bytes)  # the entry could not have been made otherwise
    found = SecurityDescriptor.from_bytes(value.value)
    return found.owner, found.group, found.dacl


def is_worth_telling(propid: PropId) -> bool:
    """Returns whether the loss of a property matters: times and reserved values never do."""
    row = ROWS.get(propid)
    return row is not None and not row.reserved


def routing_servers(machine: DirectoryObject) -> tuple[Guid, ...]:
    """The machines that a machine names, which have to exist before it does."""
    lists = (value_in(machine.properties, p) for p in (PropId.QM_OUTFRS, PropId.QM_INFRS))
    return tuple(guid for found in lists for guid in guids_of(found))
