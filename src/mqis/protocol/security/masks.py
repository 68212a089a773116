"""Access rights per kind of object (MS-MQMQ 2.2.23 to 2.2.27) and what generic rights mean there.

Members have the specification's names without MQSEC_. The upper half of a mask is the same for
all objects (MS-DTYP 2.4.3): deleting, reading and changing permissions, taking ownership.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntFlag

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import AceFlags, Acl, OpaqueAce
from mqis.wire.security.descriptor import SecurityDescriptor


class Rights(IntFlag):
    """Standard, special and generic rights (MS-DTYP 2.4.3)."""

    DELETE = 0x0001_0000
    READ_CONTROL = 0x0002_0000
    WRITE_DAC = 0x0004_0000
    WRITE_OWNER = 0x0008_0000
    SYNCHRONIZE = 0x0010_0000
    ACCESS_SYSTEM_SECURITY = 0x0100_0000
    MAXIMUM_ALLOWED = 0x0200_0000
    GENERIC_ALL = 0x1000_0000
    GENERIC_EXECUTE = 0x2000_0000
    GENERIC_WRITE = 0x4000_0000
    GENERIC_READ = 0x8000_0000


class MachineRights(IntFlag):
    """MQQMACCESSMASK (2.2.23)."""

    DELETE_DEADLETTER_MESSAGE = 0x0000_0001
    PEEK_DEADLETTER_MESSAGE = 0x0000_0002
    CREATE_QUEUE = 0x0000_0004
    SET_MACHINE_PROPERTIES = 0x0000_0010
    GET_MACHINE_PROPERTIES = 0x0000_0020
    DELETE_JOURNAL_QUEUE_MESSAGE = 0x0000_0040
    PEEK_JOURNAL_QUEUE_MESSAGE = 0x0000_0080
    DELETE_MACHINE = 0x0001_0000
    GET_MACHINE_PERMISSIONS = 0x0002_0000
    CHANGE_MACHINE_PERMISSIONS = 0x0004_0000
    TAKE_MACHINE_OWNERSHIP = 0x0008_0000

    RECEIVE_DEADLETTER_MESSAGE = DELETE_DEADLETTER_MESSAGE | PEEK_DEADLETTER_MESSAGE
    RECEIVE_JOURNAL_QUEUE_MESSAGE = DELETE_JOURNAL_QUEUE_MESSAGE | PEEK_JOURNAL_QUEUE_MESSAGE
    MACHINE_WORLD_RIGHTS = GET_MACHINE_PROPERTIES | GET_MACHINE_PERMISSIONS
    MACHINE_GENERIC_READ = (
        MACHINE_WORLD_RIGHTS | RECEIVE_DEADLETTER_MESSAGE | RECEIVE_JOURNAL_QUEUE_MESSAGE
    )
    MACHINE_GENERIC_WRITE = MACHINE_WORLD_RIGHTS | CREATE_QUEUE
    MACHINE_GENERIC_ALL = (
        MACHINE_GENERIC_READ
        | MACHINE_GENERIC_WRITE
        | SET_MACHINE_PROPERTIES
        | DELETE_MACHINE
        | CHANGE_MACHINE_PERMISSIONS
        | TAKE_MACHINE_OWNERSHIP
    )


class QueueRights(IntFlag):
    """MQQUEUEACCESSMASK (2.2.24)."""

    DELETE_MESSAGE = 0x0000_0001
    PEEK_MESSAGE = 0x0000_0002
    WRITE_MESSAGE = 0x0000_0004
    DELETE_JOURNAL_MESSAGE = 0x0000_0008
    SET_QUEUE_PROPERTIES = 0x0000_0010
    GET_QUEUE_PROPERTIES = 0x0000_0020
    DELETE_QUEUE = 0x0001_0000
    GET_QUEUE_PERMISSIONS = 0x0002_0000
    CHANGE_QUEUE_PERMISSIONS = 0x0004_0000
    TAKE_QUEUE_OWNERSHIP = 0x0008_0000

    RECEIVE_MESSAGE = DELETE_MESSAGE | PEEK_MESSAGE
    RECEIVE_JOURNAL_MESSAGE = DELETE_JOURNAL_MESSAGE | PEEK_MESSAGE
    QUEUE_GENERIC_READ = (
        GET_QUEUE_PROPERTIES | GET_QUEUE_PERMISSIONS | RECEIVE_MESSAGE | RECEIVE_JOURNAL_MESSAGE
    )
    QUEUE_GENERIC_WRITE = GET_QUEUE_PROPERTIES | GET_QUEUE_PERMISSIONS | WRITE_MESSAGE
    QUEUE_GENERIC_ALL = (
        QUEUE_GENERIC_READ
        | QUEUE_GENERIC_WRITE
        | SET_QUEUE_PROPERTIES
        | DELETE_QUEUE
        | CHANGE_QUEUE_PERMISSIONS
        | TAKE_QUEUE_OWNERSHIP
    )


class SiteRights(IntFlag):
    """MQSITEACCESSMASK (2.2.25)."""

    CREATE_FRS = 0x0000_0001
    CREATE_BSC = 0x0000_0002
    CREATE_MACHINE = 0x0000_0004
    SET_SITE_PROPERTIES = 0x0000_0010
    GET_SITE_PROPERTIES = 0x0000_0020
    DELETE_SITE = 0x0001_0000
    GET_SITE_PERMISSIONS = 0x0002_0000
    CHANGE_SITE_PERMISSIONS = 0x0004_0000
    TAKE_SITE_OWNERSHIP = 0x0008_0000

    SITE_GENERIC_READ = GET_SITE_PROPERTIES | GET_SITE_PERMISSIONS
    SITE_GENERIC_WRITE = SITE_GENERIC_READ | CREATE_MACHINE
    SITE_GENERIC_ALL = (
        SITE_GENERIC_WRITE
        | CREATE_FRS
        | CREATE_BSC
        | SET_SITE_PROPERTIES
        | DELETE_SITE
        | CHANGE_SITE_PERMISSIONS
        | TAKE_SITE_OWNERSHIP
    )


class EnterpriseRights(IntFlag):
    """MQENTACCESSMASK (2.2.26)."""

    CREATE_USER = 0x0000_0001
    CREATE_SITE = 0x0000_0002
    CREATE_CN = 0x0000_0004
    SET_ENTERPRISE_PROPERTIES = 0x0000_0010
    GET_ENTERPRISE_PROPERTIES = 0x0000_0020
    DELETE_ENTERPRISE = 0x0001_0000
    GET_ENTERPRISE_PERMISSIONS = 0x0002_0000
    CHANGE_ENTERPRISE_PERMISSIONS = 0x0004_0000
    TAKE_ENTERPRISE_OWNERSHIP = 0x0008_0000

    ENTERPRISE_GENERIC_READ = CREATE_USER | GET_ENTERPRISE_PROPERTIES | GET_ENTERPRISE_PERMISSIONS
    ENTERPRISE_GENERIC_WRITE = ENTERPRISE_GENERIC_READ | CREATE_SITE | CREATE_CN
    ENTERPRISE_GENERIC_ALL = (
        ENTERPRISE_GENERIC_WRITE
        | SET_ENTERPRISE_PROPERTIES
        | DELETE_ENTERPRISE
        | CHANGE_ENTERPRISE_PERMISSIONS
        | TAKE_ENTERPRISE_OWNERSHIP
    )


class CnRights(IntFlag):
    """MQCNACCESSMASK (2.2.27)."""

    CN_OPEN_CONNECTOR = 0x0000_0001
    SET_CN_PROPERTIES = 0x0000_0010
    GET_CN_PROPERTIES = 0x0000_0020
    DELETE_CN = 0x0001_0000
    GET_CN_PERMISSIONS = 0x0002_0000
    CHANGE_CN_PERMISSIONS = 0x0004_0000
    TAKE_CN_OWNERSHIP = 0x0008_0000

    CN_GENERIC_READ = GET_CN_PROPERTIES | GET_CN_PERMISSIONS
    CN_GENERIC_ALL = (
        CN_GENERIC_READ
        | CN_OPEN_CONNECTOR
        | SET_CN_PROPERTIES
        | DELETE_CN
        | CHANGE_CN_PERMISSIONS
        | TAKE_CN_OWNERSHIP
    )


class UserRights(IntFlag):
    """The directory rights that MS-MQDS 3.1.4.4 borrows for users (MS-ADTS 5.1.3.2)."""

    DS_CREATE_CHILD = 0x0000_0001
    DS_DELETE_CHILD = 0x0000_0002
    DS_LIST_CONTENTS = 0x0000_0004
    DS_WRITE_PROPERTY_EXTENDED = 0x0000_0008
    DS_READ_PROPERTY = 0x0000_0010
    DS_WRITE_PROPERTY = 0x0000_0020
    DS_DELETE_TREE = 0x0000_0040
    DS_LIST_OBJECT = 0x0000_0080
    DS_CONTROL_ACCESS = 0x0000_0100
    DELETE = 0x0001_0000
    READ_CONTROL = 0x0002_0000
    WRITE_DAC = 0x0004_0000
    WRITE_OWNER = 0x0008_0000

    GENERIC_READ_MAPPING = READ_CONTROL | DS_LIST_CONTENTS | DS_READ_PROPERTY | DS_LIST_OBJECT
    GENERIC_WRITE_MAPPING = READ_CONTROL | DS_WRITE_PROPERTY_EXTENDED | DS_WRITE_PROPERTY
    GENERIC_EXECUTE_MAPPING = READ_CONTROL | DS_LIST_CONTENTS
    GENERIC_ALL_MAPPING = 0x000F_01FF


_GENERIC_READ = int(Rights.GENERIC_READ)
_GENERIC_WRITE = int(Rights.GENERIC_WRITE)
_GENERIC_EXECUTE = int(Rights.GENERIC_EXECUTE)
_GENERIC_ALL = int(Rights.GENERIC_ALL)
_GENERIC = _GENERIC_READ | _GENERIC_WRITE | _GENERIC_EXECUTE | _GENERIC_ALL


@dataclass(frozen=True, slots=True)
class GenericMapping:
    """The object's own rights that each generic right stands for."""

    read: int
    write: int
    execute: int
    all: int

    def map(self, mask: int) -> int:
        """``mask`` with its generic rights replaced, as a plain number."""
        mapped = int(mask) & ~_GENERIC
        for generic, meaning in (
            (_GENERIC_READ, self.read),
            (_GENERIC_WRITE, self.write),
            (_GENERIC_EXECUTE, self.execute),
            (_GENERIC_ALL, self.all),
        ):
            if mask & generic:
                mapped |= int(meaning)
        return mapped


# MS-MQMQ defines no generic execute for any object, so it stands for nothing, and no generic write
# for a connected network. Elsewhere generic write is to see the object and put something into it;
# a network has nothing to put in, which leaves the seeing.
_MAPPINGS = {
    ObjectType.QUEUE: GenericMapping(
        QueueRights.QUEUE_GENERIC_READ,
        QueueRights.QUEUE_GENERIC_WRITE,
        0,
        QueueRights.QUEUE_GENERIC_ALL,
    ),
    ObjectType.MACHINE: GenericMapping(
        MachineRights.MACHINE_GENERIC_READ,
        MachineRights.MACHINE_GENERIC_WRITE,
        0,
        MachineRights.MACHINE_GENERIC_ALL,
    ),
    ObjectType.SITE: GenericMapping(
        SiteRights.SITE_GENERIC_READ,
        SiteRights.SITE_GENERIC_WRITE,
        0,
        SiteRights.SITE_GENERIC_ALL,
    ),
    ObjectType.CN: GenericMapping(
        CnRights.CN_GENERIC_READ, CnRights.CN_GENERIC_READ, 0, CnRights.CN_GENERIC_ALL
    ),
    ObjectType.ENTERPRISE: GenericMapping(
        EnterpriseRights.ENTERPRISE_GENERIC_READ,
        EnterpriseRights.ENTERPRISE_GENERIC_WRITE,
        0,
        EnterpriseRights.ENTERPRISE_GENERIC_ALL,
    ),
    ObjectType.USER: GenericMapping(
        UserRights.GENERIC_READ_MAPPING,
        UserRights.GENERIC_WRITE_MAPPING,
        UserRights.GENERIC_EXECUTE_MAPPING,
        UserRights.GENERIC_ALL_MAPPING,
    ),
}


def generic_mapping(object_type: ObjectType) -> GenericMapping:
    """ValueError for routing links and deleted objects, which have no descriptor of their own."""
    mapping = _MAPPINGS.get(object_type)
    if mapping is None:
        raise ValueError(f"a {object_type.label} has no access rights of its own")
    return mapping


def map_descriptor(sd: SecurityDescriptor, mapping: GenericMapping) -> SecurityDescriptor:
    """``sd`` as it is to be attached to an object, with generic rights in its ACEs replaced.

    MS-DTYP 2.4.3 asks for this when a descriptor is set, since the access check does not look at
    generic bits of an ACE. Inherit-only ACEs keep theirs: they speak about objects of other kinds.
    """
    return replace(sd, dacl=_map_acl(sd.dacl, mapping), sacl=_map_acl(sd.sacl, mapping))


def _map_acl(acl: Acl | None, mapping: GenericMapping) -> Acl | None:
    if acl is None:
        return None
    return Acl(
        tuple(
            ace
            if isinstance(ace, OpaqueAce) or ace.flags & AceFlags.INHERIT_ONLY
            else replace(ace, mask=mapping.map(ace.mask))
            for ace in acl.aces
        )
    )
