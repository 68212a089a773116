"""The methods by which clients change the directory (MS-MQDS 3.1.4), through its local events.

Functions over the events of one transaction and the caller's guard; whatever they raise undoes
all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mqis.protocol.directory.descriptors import (
    MachinePolicy,
    default_descriptor,
    descriptor_of,
)
from mqis.protocol.directory.guard import Access, Guard
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.locate import Target, locate
from mqis.protocol.directory.objects import (
    SECURITY_PROPERTY,
    DeletedObject,
    DirectoryObject,
    name_key,
)
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.directory.ownership import enterprise, machine_of
from mqis.protocol.directory.paths import check_new_path
from mqis.protocol.directory.read_methods import check_information, check_secured
from mqis.protocol.directory.user_certificates import with_digests
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation, merge
from mqis.protocol.security.masks import generic_mapping, map_descriptor
from mqis.texts import counted
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import MqdsPublicKey, PublicKey, PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

#: Objects that cannot be changed by path, because they have none (MQDS-3.1.4.9-02).
_BY_GUID_ONLY = (ObjectType.USER, ObjectType.ROUTINGLINK)
#: What is created by its path name (MQDS-3.1.4.4-04).
_NAMED = (ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.SITE)

_CERTIFIED = frozenset({int(PropId.U_SIGN_CERT), int(PropId.U_DIGEST)})

#: Longer descriptors are worked out each time, so that nobody fills the memory with them.
_REMEMBERED_BYTES = 4096


def as_properties(ids: Sequence[int], values: Sequence[PropVariant]) -> dict[int, PropVariant]:
    """The two arrays of a call as one; an identifier that stands twice is refused."""
    if len(ids) != len(values):
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"{counted(len(ids), 'property', 'properties')} with {counted(len(values), 'value')}",
        )
    properties = dict(zip(ids, values, strict=True))
    if len(properties) != len(ids):
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "a property stands twice")
    return properties


def creatable(number: int, path: str | None) -> Target:
    """Returns the target of S_DSCreateObject, if clients create such objects (MQDS-3.1.4.4-03)."""
    if number == ObjectType.ENTERPRISE:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION, "an enterprise cannot be created"
        )
    return Target.from_wire(number, path)


def create_object(
    events: DirectoryEvents,
    guard: Guard,
    target: Target,
    properties: Properties,
    *,
    descriptor: bytes | None = None,
    machine_policy: MachinePolicy = MachinePolicy.EVERYONE,
    unicode_names: bool = False,
) -> DirectoryObject:
    """S_DSCreateObject (3.1.4.4) of a target that is ``creatable``."""
    object_type = target.object_type
    if target.path is not None:
        check_new_path(object_type, target.path, unicode=unicode_names)
    if descriptor is not None and object_type is not ObjectType.QUEUE:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            f"a {object_type.label} is created without a descriptor",
        )
    owner = _owner(events, target, properties)
    name = target.path or ""
    known = events.user_of(properties) if object_type is ObjectType.USER else None
    # A user who is there already, as every account of Active Directory, gets more certificates:
    # whoever may write to a user creates nothing.
    if known is None or not guard.allows(known, Access.WRITE, events.transaction):
        guard.check_create(object_type, owner, name)
    security = creator = None
    if object_type in SECURITY_PROPERTY and (descriptor or guard.completes_descriptors):
        user = guard.token.user if guard.completes_descriptors else None
        initial = _initial_descriptor(object_type, user, descriptor, machine_policy)
        guard.check_owner(initial.owner, object_type, name)
        if initial.has_audit_list:
            guard.check_audit_list(object_type, name)
        guard.check_created(events.transaction, object_type, name)
        security = initial.data
        if not guard.is_administrator and initial.owner != guard.account:
            creator = guard.account
    if object_type is ObjectType.USER and PropId.U_DIGEST in properties:
        properties = with_digests(properties, {})
    permitted = _permitted(events, guard)
    return permitted.create(
        object_type, target.path, properties, security=security, creator=creator
    )


def _permitted(events: DirectoryEvents, guard: Guard) -> DirectoryEvents:
    """The events as this caller may use them: what gives power over others is checked as well."""
    tx, permit = events.transaction, events.permit

    def permit_to_caller(change: OwnChange) -> None:
        guard.check_change(change, tx)
        if permit is not None:
            permit(change)

    return replace(events, permit=permit_to_caller)


def _owner(
    events: DirectoryEvents, target: Target, properties: Properties
) -> DirectoryObject | None:
    """The object in which the new one is created."""
    tx = events.transaction
    if target.path is None and target.object_type in _NAMED:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"a {target.object_type.label} needs a path name"
        )
    if target.object_type is ObjectType.QUEUE:
        return machine_of(target.path or "", tx)
    if target.object_type is ObjectType.MACHINE:
        given = properties.get(PropId.QM_SITE_ID) or properties.get(PropId.QM_SITE_IDS)
        site = given.value if given is not None else events.own_site
        first = site[0] if isinstance(site, tuple) and site else site
        return tx.get(ObjectType.SITE, first) if isinstance(first, Guid) else None
    return enterprise(tx)


@dataclass(frozen=True, slots=True)
class _Initial:
    """The descriptor of a new object, and what of it the caller has to have a right for."""

    data: bytes
    owner: Sid | None
    has_audit_list: bool


def _initial_descriptor(
    object_type: ObjectType, owner: Sid | None, given: bytes | None, policy: MachinePolicy
) -> _Initial:
    """As ``_completed``; those who create much send the same descriptor again and again."""
    short = given is None or len(given) <= _REMEMBERED_BYTES
    make = _completed if short else _completed.__wrapped__
    return make(object_type, owner, given, policy)


@lru_cache(maxsize=256)
def _completed(
    object_type: ObjectType, owner: Sid | None, given: bytes | None, policy: MachinePolicy
) -> _Initial:
    """The given one, what is missing in it from the default (MQDS-3.1.4.4-20)."""
    default = default_descriptor(object_type, owner, policy)
    if given is None:
        return _Initial(default.to_bytes(), owner, False)
    try:
        wanted = SecurityDescriptor.from_bytes(given)
    except WireError as error:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR, f"the descriptor is damaged: {error}"
        ) from error
    parts = SecurityInformation(0)
    for part, there in (
        (SecurityInformation.OWNER, wanted.owner is not None),
        (SecurityInformation.GROUP, wanted.group is not None),
        (SecurityInformation.DACL, wanted.dacl is not None or wanted.has_null_dacl),
        (SecurityInformation.SACL, wanted.sacl is not None),
    ):
        if there:
            parts |= part
    merged = map_descriptor(merge(default, wanted, parts), generic_mapping(object_type))
    return _Initial(merged.to_bytes(), merged.owner, merged.sacl is not None)


def delete_object(events: DirectoryEvents, guard: Guard, target: Target) -> DeletedObject | None:
    """S_DSDeleteObject, S_DSDeleteObjectGuid (3.1.4.5, 3.1.4.6), for all types (note <137>).

    A user is also found by the digest of a certificate; then just that certificate goes, unless
    it is the last. The result is None in that case.
    """
    events = _permitted(events, guard)
    if target.object_type is ObjectType.USER:
        return _delete_user(events, guard, target)
    obj = locate(events.transaction, target)
    if target.object_type is ObjectType.ENTERPRISE and not _names(target, obj):
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND, f"the enterprise is not {target.path or target.guid}"
        )
    guard.check(obj, Access.DELETE, events.transaction)
    return events.delete_directory_object(obj)


def _names(target: Target, obj: DirectoryObject) -> bool:
    """Returns whether the target is this enterprise; to read and change it, no name is needed."""
    if target.path is not None:
        return name_key(target.path) == name_key(obj.path or "")
    return target.guid == obj.id


def _delete_user(events: DirectoryEvents, guard: Guard, target: Target) -> DeletedObject | None:
    tx = events.transaction
    if target.path is not None or target.guid is None:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "users are deleted by GUID")
    user = tx.get(ObjectType.USER, target.guid)
    if user is not None:
        guard.check(user, Access.DELETE, tx)
        return events.delete_directory_object(user)
    holders = tx.having(ObjectType.USER, PropId.U_DIGEST, target.guid.raw)
    user = next(holders, None)
    if user is None:
        raise DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, f"no user {target.guid}")
    guard.check(user, Access.DELETE, tx)
    digests = user.value(PropId.U_DIGEST)
    if isinstance(digests, tuple) and len(digests) > 1:
        events.set_stored(user, _without_certificate(user, target.guid))
        return None
    return events.delete_directory_object(user)


def _without_certificate(user: DirectoryObject, digest: Guid) -> dict[int, PropVariant]:
    stored = user.value(PropId.U_SIGN_CERT)
    listed = UserSignCerts.from_bytes(stored) if isinstance(stored, bytes) else UserSignCerts(())
    kept = tuple(c for c in listed.certificates if c.digest != digest.raw)
    digests = user.value(PropId.U_DIGEST)
    assert isinstance(digests, tuple)
    left = tuple(d for d in digests if d != digest)
    return props(
        {
            PropId.U_SIGN_CERT: UserSignCerts(kept).to_bytes(),
            PropId.U_DIGEST: left,
        }
    )


def set_properties(
    events: DirectoryEvents, guard: Guard, target: Target, properties: Properties
) -> DirectoryObject:
    """S_DSSetProps, S_DSSetPropsGuid, S_DSQMSetMachineProperties (3.1.4.9, .10, .16)."""
    if target.path is not None and target.object_type in _BY_GUID_ONLY:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"a {target.object_type.label} is changed by its GUID",
        )
    obj = locate(events.transaction, target)
    guard.check(obj, Access.WRITE, events.transaction)
    if obj.type is ObjectType.USER and not _CERTIFIED.isdisjoint(properties):
        properties = with_digests(properties, obj.properties)
    return _permitted(events, guard).update(obj, properties)


def set_security(
    events: DirectoryEvents,
    guard: Guard,
    target: Target,
    information: int,
    data: bytes | None,
) -> DirectoryObject:
    """S_DSSetObjectSecurity, S_DSSetObjectSecurityGuid (3.1.4.13, 3.1.4.14)."""
    parts = check_information(information)
    if target.object_type is ObjectType.ENTERPRISE and parts not in SecurityInformation.PARTS:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "an enterprise has no key")
    check_secured(target.object_type, parts)
    if not data:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "nothing to set was given")
    events = _permitted(events, guard)
    obj = locate(events.transaction, target)
    if parts in (SecurityInformation.KEYX_PUBLIC_KEY, SecurityInformation.SIGN_PUBLIC_KEY):
        guard.check(obj, Access.WRITE, events.transaction)
        return events.set_stored(obj, _key_change(obj, parts, data))
    _check_parts(guard, obj, parts, events)
    try:
        incoming = SecurityDescriptor.from_bytes(data)
    except WireError as error:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR, f"the descriptor is damaged: {error}"
        ) from error
    merged = merge(descriptor_of(obj), incoming, parts)
    if parts & SecurityInformation.OWNER:
        guard.check_owner(merged.owner, obj.type, obj.path or str(obj.id))
    mapped = map_descriptor(merged, generic_mapping(obj.type))
    change = PropVariant(VarType.BLOB, mapped.to_bytes())
    return events.set_stored(obj, {SECURITY_PROPERTY[obj.type]: change})


def _check_parts(
    guard: Guard, obj: DirectoryObject, parts: SecurityInformation, events: DirectoryEvents
) -> None:
    tx = events.transaction
    if parts & (SecurityInformation.OWNER | SecurityInformation.GROUP):
        guard.check(obj, Access.WRITE_OWNER, tx)
    if parts & SecurityInformation.DACL:
        guard.check(obj, Access.WRITE_DACL, tx)
    if parts & SecurityInformation.SACL:
        guard.check(obj, Access.SYSTEM_SECURITY, tx)


def _key_change(
    obj: DirectoryObject, part: SecurityInformation, data: bytes
) -> dict[int, PropVariant]:
    """A key list of one, under the base provider's name (MQDS-3.1.4.13-06)."""
    try:
        key = MqdsPublicKey.from_bytes(data).key
    except WireError as error:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"not a public key: {error}"
        ) from error
    propid = PropId.S_PSC_SIGNPK
    if obj.type is ObjectType.MACHINE:
        signing = part is SecurityInformation.SIGN_PUBLIC_KEY
        propid = PropId.QM_SIGN_PKS if signing else PropId.QM_ENCRYPT_PKS
    return {propid: PropVariant(VarType.BLOB, PublicKeys((PublicKey.of(key),)).to_bytes())}
