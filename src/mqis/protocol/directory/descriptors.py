"""The descriptor that an object has when nobody gave it one (MS-MQDS 3.1.4.4)."""

from __future__ import annotations

from enum import Enum

from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.security.masks import (
    CnRights,
    EnterpriseRights,
    MachineRights,
    QueueRights,
    SiteRights,
    UserRights,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE, Sid


class MachinePolicy(Enum):
    """The callers who get full control of a new machine object. The text says Everyone."""

    EVERYONE = "everyone"
    OWNER = "owner"


#: What Everyone may do, and what the owner may.
_DEFAULTS: dict[ObjectType, tuple[int, int]] = {
    ObjectType.QUEUE: (
        QueueRights.GET_QUEUE_PROPERTIES | QueueRights.GET_QUEUE_PERMISSIONS,
        QueueRights.QUEUE_GENERIC_ALL,
    ),
    ObjectType.MACHINE: (MachineRights.MACHINE_GENERIC_ALL, MachineRights.MACHINE_GENERIC_ALL),
    ObjectType.SITE: (SiteRights.SITE_GENERIC_READ, SiteRights.SITE_GENERIC_ALL),
    ObjectType.CN: (CnRights.CN_GENERIC_READ, CnRights.CN_GENERIC_ALL),
    ObjectType.ENTERPRISE: (
        EnterpriseRights.ENTERPRISE_GENERIC_READ,
        EnterpriseRights.ENTERPRISE_GENERIC_ALL,
    ),
    ObjectType.USER: (
        UserRights.GENERIC_READ_MAPPING,
        UserRights.GENERIC_READ_MAPPING
        | UserRights.DS_WRITE_PROPERTY
        | UserRights.DS_WRITE_PROPERTY_EXTENDED,
    ),
}


def default_descriptor(
    object_type: ObjectType,
    owner: Sid | None,
    machine_policy: MachinePolicy = MachinePolicy.EVERYONE,
) -> SecurityDescriptor:
    """Owner, and a list with one entry for Everyone and one for the owner."""
    everyone, own = _DEFAULTS[object_type]
    if object_type is ObjectType.MACHINE and machine_policy is MachinePolicy.OWNER:
        everyone = MachineRights.MACHINE_WORLD_RIGHTS
    entries = [allow(EVERYONE, int(everyone))]
    if owner is not None:
        entries.append(allow(owner, int(own)))
    return SecurityDescriptor(owner=owner, dacl=Acl(tuple(entries)))


def descriptor_of(obj: DirectoryObject) -> SecurityDescriptor:
    """Returns the descriptor that protects ``obj``: its own, or the default of its type.

    A user has no property for one; whoever the user is, owns the object.
    """
    propid = SECURITY_PROPERTY.get(obj.type)
    data = obj.value(propid) if propid is not None else None
    if isinstance(data, bytes) and data:
        return SecurityDescriptor.from_bytes(data)
    sid = obj.value(PropId.U_SID) if obj.type is ObjectType.USER else None
    owner = Sid.from_bytes(sid) if isinstance(sid, bytes) and sid else None
    return default_descriptor(obj.type, owner, MachinePolicy.OWNER)
