"""Entries as objects for a store of our own, whoever wrote the entries down (MS-MQDSSM 3.1.6.3).

A dump often lacks what Active Directory shows only when asked: descriptors, times, ``parentGUID``.
Such a property is left out of the object and not made up. ``ImportSources`` has what the object
needs from other entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mqis.protocol.activedirectory.certificates import is_certified
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.forest import LDAP_CLASSES, SETTINGS_CLASS, Forest
from mqis.protocol.activedirectory.reading import columns_of, read_properties
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS, KEPT, rows_of
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.write_mapping import stored_value
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.seqnum import SequenceNumber

#: The place of a machine that names no site. No site has this identifier; the null GUID is refused.
NO_SITE: Final = Guid(b"\xff" * 16)

#: Classes of Message Queuing that are no objects of its directory, in lower case.
_OTHER_CLASSES: Final = frozenset(
    {SETTINGS_CLASS.lower(), "msmqmigrateduser", "msmq-group", "msmq-custom-recipient"}
)
_TYPES: Final = {
    LDAP_CLASSES[kind].lower(): kind
    for kind in (
        ObjectType.QUEUE,
        ObjectType.MACHINE,
        ObjectType.SITE,
        ObjectType.ENTERPRISE,
        ObjectType.ROUTINGLINK,
    )
}
#: Left out of an object whose entry has no such attribute, instead of refusing the entry.
_OPTIONAL: Final = frozenset({"ntsecuritydescriptor", "whencreated", "whenchanged", "parentguid"})
_IMPORTED: Final = {
    kind: tuple(
        row.id
        for row in rows_of(kind)
        # The rest of a long name is part of the path already.
        if row.id in KEPT and row.id is not PropId.Q_NAME_SUFFIX
    )
    for kind in (*_TYPES.values(), ObjectType.CN, ObjectType.USER)
}
_CALLED_BY_CN: Final = (ObjectType.SITE, ObjectType.CN)
#: The attribute without which a property is left out, by the property.
_NEEDED: Final = {
    propid: row.attribute
    for propid, row in ATTRIBUTE_ROWS.items()
    if row.attributes and row.attribute.lower() in _OPTIONAL
}
#: A zero or an empty value of these, which no new object of a store gets, says nothing.
_SILENT: Final = frozenset(
    row.id for row in ROWS.values() if row.default is None and not row.required
)


@dataclass(frozen=True, slots=True)
class ImportSources:
    """The other entries that an object is made of, as far as they are known."""

    forest: Forest
    references: References = field(default_factory=References)
    #: Of each site: the gates of its links that are its members (3.1.6.20.4).
    gates: Mapping[Guid, tuple[Guid, ...]] = field(default_factory=dict)


def type_of(entry: LdapEntry) -> ObjectType | None:
    """Returns the type of object that an entry is; None if Message Queuing does not need it.

    ``BadAttribute`` for a class whose name says that it is one of Message Queuing.
    """
    names = [value.lower().decode("ascii", "replace") for value in entry.values("objectClass")]
    if not names:
        raise BadAttribute(
            entry.name, "objectClass", "is missing: ask for it as well, for it tells what this is"
        )
    found = next((_TYPES[name] for name in names if name in _TYPES), None)
    if found is not None:
        return found
    for name in names:
        if name.startswith("msmq") and name not in _OTHER_CLASSES:
            raise BadAttribute(entry.name, "objectClass", f"{name!r} is no class of MS-MQDSSM")
    is_user = "user" in names and "computer" not in names
    return ObjectType.USER if is_user and is_certified(entry) else None


def import_columns(object_type: ObjectType) -> tuple[str, ...]:
    """The attributes to ask for, each once."""
    return columns_of(_IMPORTED[object_type])[0]


def imported_object(
    entry: LdapEntry,
    object_type: ObjectType,
    sources: ImportSources,
    computer: LdapEntry | None = None,
    unfit: list[BadAttribute] | None = None,
) -> DirectoryObject:
    """Returns the object; ``BadAttribute`` if a value does not fit, or a needed one is missing.

    With ``unfit``, values that the object can do without go there, as for a mirror. The store that
    takes the object numbers it anew and finds its partition.
    """
    if entry.guid is None:
        raise BadAttribute(entry.name, "objectGUID", "is missing or not 16 octets")
    gates = sources.gates.get(entry.guid, ())
    shown = _named(entry) if object_type in _CALLED_BY_CN else entry
    view = EntryView(shown, sources.forest, computer, sources.references, gates)
    found = read_properties(view, object_type, _present(entry, object_type), unfit)
    properties = {
        propid: value for propid, value in found.items() if value.value or propid not in _SILENT
    }
    if object_type is ObjectType.MACHINE:
        properties |= _placed(properties)
    return _unplaced(object_type, entry.guid, properties)


def without_unfit(obj: DirectoryObject) -> tuple[DirectoryObject, tuple[PropId, ...]]:
    """The object without values that a store of our own refuses, and the properties that had them.

    The signing keys of most computers are certificates, for example (E-MQDSSM-22).
    """
    unfit = tuple(PropId(propid) for propid in obj.properties if not _fits(obj, PropId(propid)))
    if not unfit:
        return obj, ()
    kept = {propid: value for propid, value in obj.properties.items() if propid not in unfit}
    return _unplaced(obj.type, obj.id, kept), unfit


def _fits(obj: DirectoryObject, propid: PropId) -> bool:
    try:
        stored_value(propid, obj.properties[propid])
    except DirectoryError:
        return False
    return True


def _named(entry: LdapEntry) -> LdapEntry:
    """With its cn, which records that add an entry leave to its name."""
    if entry.values("cn"):
        return entry
    try:
        leaf = entry.distinguished_name.leaf
    except WireError as error:
        raise BadAttribute(entry.name, "distinguishedName", str(error)) from error
    return LdapEntry(entry.name, (*entry.attributes, ("cn", (leaf.encode(),))))


def readable_link(entry: LdapEntry, sources: ImportSources) -> DirectoryObject | None:
    """The link of an entry; None if the entry cannot become one."""
    try:
        return imported_object(entry, ObjectType.ROUTINGLINK, sources)
    except BadAttribute:
        return None


def _present(entry: LdapEntry, object_type: ObjectType) -> Iterable[PropId]:
    for propid in _IMPORTED[object_type]:
        needed = _NEEDED.get(propid)
        if needed is None or entry.values(needed):
            yield propid


def _placed(properties: Mapping[int, PropVariant]) -> dict[int, PropVariant]:
    """Sites in one order, because values have none; a machine in no site gets ``NO_SITE``."""
    found = properties.get(PropId.QM_SITE_IDS)
    sites = sorted(guids_in(None if found is None else found.value))
    return {
        PropId.QM_SITE_IDS: prop(PropId.QM_SITE_IDS, tuple(sites) or (NO_SITE,)),
        PropId.QM_CNS: prop(PropId.QM_CNS, tuple(sites)),
    }


def _unplaced(
    object_type: ObjectType, identifier: Guid, properties: Mapping[int, PropVariant]
) -> DirectoryObject:
    return DirectoryObject(object_type, identifier, Guid.NULL, SequenceNumber.MIN, properties)


def is_placed(machine: DirectoryObject) -> bool:
    """Returns whether a machine names a site."""
    return machine.value(PropId.QM_SITE_IDS) != (NO_SITE,)


def network_of(site: DirectoryObject) -> DirectoryObject:
    """The connected network that a site is at the same time (MS-MQDS 3.1.6.12)."""
    foreign = site.value(PropId.S_FOREIGN) == 1
    properties: dict[int, PropVariant] = {
        PropId.CN_NAME: prop(PropId.CN_NAME, site.path),
        PropId.CN_PROTOCOLID: prop(PropId.CN_PROTOCOLID, 5 if foreign else 1),
    }
    return replace(site, type=ObjectType.CN, properties=properties)


def gates_of_sites(
    links: Iterable[DirectoryObject], sites_of: Mapping[Guid, tuple[Guid, ...]]
) -> dict[Guid, tuple[Guid, ...]]:
    """The gates of each site: those of its links that are its members (3.1.6.20.4).

    ``sites_of`` has the sites of the machines that are gates.
    """
    found: dict[Guid, set[Guid]] = {}
    for link in links:
        ends = link.value(PropId.L_NEIGHBOR1), link.value(PropId.L_NEIGHBOR2)
        for gate in guids_in(link.value(PropId.L_GATES)):
            for site in sites_of.get(gate, ()):
                if site in ends:
                    found.setdefault(site, set()).add(gate)
    return {site: tuple(sorted(gates)) for site, gates in found.items()}


def guids_in(value: Value) -> tuple[Guid, ...]:
    """The identifiers in the value of a property."""
    return tuple(v for v in value if isinstance(v, Guid)) if isinstance(value, tuple) else ()
