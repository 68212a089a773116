"""Objects of an Active Directory as a store of our own keeps them (MS-MQDSSM 3.1.6.3).

``ForestReader`` makes the objects, of a domain controller or of LDIF files. Here is what a store
changes about them, the same for an import and a mirror, and which entries become objects at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from mqis.protocol.activedirectory.certificates import is_certified
from mqis.protocol.activedirectory.forest import LDAP_CLASSES, SETTINGS_CLASS
from mqis.protocol.activedirectory.reading import default_of
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownership import machine_of
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.directory.write_mapping import stored_value
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ports import View
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

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
#: A zero or an empty value of these, which no new object of a store gets, says nothing.
_SILENT: Final = frozenset(
    row.id for row in ROWS.values() if row.default is None and not row.required
)


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


# --- what a store keeps ---------------------------------------------------------------------------


def kept_objects(obj: DirectoryObject) -> tuple[DirectoryObject, ...]:
    """Returns what a store keeps of an object: itself, and of a site its connected network too.

    Lists get one order, because a directory's values have none. So reading an object twice gives
    the same. A machine in no site gets ``NO_SITE``.
    """
    kept = {propid: _settled(propid, value, obj.id) for propid, value in obj.properties.items()}
    kept.pop(PropId.Q_NAME_SUFFIX, None)  # the rest of a long name is in the path already
    if obj.type is ObjectType.MACHINE:
        sites = guids_of(kept[PropId.QM_SITE_IDS].value)
        kept[PropId.QM_SITE_IDS] = prop(PropId.QM_SITE_IDS, sites or (NO_SITE,))
        kept[PropId.QM_CNS] = prop(PropId.QM_CNS, sites)
    made = replace(obj, properties=kept)
    return (made, network_of(made)) if obj.type is ObjectType.SITE else (made,)


def _settled(propid: int, variant: PropVariant, owner: Guid) -> PropVariant:
    value = variant.value
    if isinstance(value, tuple) and all(isinstance(item, Guid) for item in value):
        return PropVariant(variant.vt, tuple(sorted(value)))  # type: ignore[type-var]
    if propid == PropId.U_SIGN_CERT and isinstance(value, bytes):
        return PropVariant(variant.vt, _listed(value, owner))
    return variant


def _listed(value: bytes, owner: Guid) -> bytes:
    """A list of certificates; a bare certificate gets the user's identifier in it."""
    try:
        listed = UserSignCerts.from_property(value, owner) if value else UserSignCerts(())
        return listed.to_bytes()
    except WireError:
        return value


def as_new(obj: DirectoryObject) -> DirectoryObject:
    """The object without the values that say nothing and that no new object of a store has."""
    told = {k: v for k, v in obj.properties.items() if v.value or k not in _SILENT}
    return replace(obj, properties=told)


def with_defaults(obj: DirectoryObject) -> tuple[DirectoryObject, tuple[PropId, ...]]:
    """The object with defaults instead of values that the store refuses, and their properties.

    What has no default stays: the object is refused for it. The signing keys of most computers are
    certificates, for example (E-MQDSSM-22).
    """
    instead: dict[int, PropVariant] = {}
    for propid, value in obj.properties.items():
        default = None if _is_taken(PropId(propid), value) else default_of(propid)
        if default is not None:
            instead[propid] = default
    fitting = replace(obj, properties={**obj.properties, **instead})
    return fitting, tuple(map(PropId, instead))


def _is_taken(propid: PropId, value: PropVariant) -> bool:
    try:
        stored_value(propid, value)
    except DirectoryError:
        return False
    return True


def check_host(queue: DirectoryObject, view: View) -> None:
    """Refuses a new queue if another machine than its own has the name of its computer.

    A store finds the machine of a new queue by that name. A dump may not tell the machine.
    """
    machine = queue.value(PropId.Q_QMID)
    if isinstance(machine, Guid) and machine_of(queue.path or "", view).id != machine:
        raise DirectoryError(
            HResult.MQ_ERROR_MACHINE_NOT_FOUND, "another machine has the name of its computer"
        )


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


# --- gates ----------------------------------------------------------------------------------------


def gates_of_link(link: LdapEntry) -> frozenset[Guid]:
    """The gates that a link names and that exist; names come with identifiers (extended DN)."""
    return _named_in(link, "mSMQSiteGates")


def gates_of_sites(
    links: Iterable[LdapEntry], sites_of: Mapping[Guid, tuple[Guid, ...]]
) -> dict[Guid, tuple[Guid, ...]]:
    """The gates of each site: those of its links that are its members (3.1.6.20.4).

    ``sites_of`` has the sites of the machines that are gates.
    """
    found: dict[Guid, set[Guid]] = {}
    for link in links:
        ends = _named_in(link, "mSMQSite1") | _named_in(link, "mSMQSite2")
        for gate in gates_of_link(link):
            for site in ends.intersection(sites_of.get(gate, ())):
                found.setdefault(site, set()).add(gate)
    return {site: tuple(sorted(gates)) for site, gates in found.items()}


def _named_in(entry: LdapEntry, attribute: str) -> frozenset[Guid]:
    """A damaged name names nobody: the link is left out for it, and not the sites."""
    found = set()
    for value in entry.values(attribute):
        try:
            found.add(References().guid_of(value))
        except (WireError, UnicodeError):
            continue
    return frozenset(guid for guid in found if guid is not None)
