"""MQSEC rights (MS-MQMQ 2.2.23 to 2.2.27) and generic mappings."""

from __future__ import annotations

from enum import IntFlag

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.security.masks import (
    CnRights,
    EnterpriseRights,
    GenericMapping,
    MachineRights,
    QueueRights,
    Rights,
    SiteRights,
    UserRights,
    generic_mapping,
    map_descriptor,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import AceFlags, AceType, Acl, ObjectAce, OpaqueAce, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE
from tests.security_values import audit
from tests.strategies.security import masks

#: The enumerations as the specification has them, sums worked out.
RIGHTS: list[tuple[type[IntFlag], dict[str, int]]] = [
    (
        MachineRights,
        {
            "DELETE_DEADLETTER_MESSAGE": 0x00000001,
            "PEEK_DEADLETTER_MESSAGE": 0x00000002,
            "CREATE_QUEUE": 0x00000004,
            "SET_MACHINE_PROPERTIES": 0x00000010,
            "GET_MACHINE_PROPERTIES": 0x00000020,
            "DELETE_JOURNAL_QUEUE_MESSAGE": 0x00000040,
            "PEEK_JOURNAL_QUEUE_MESSAGE": 0x00000080,
            "DELETE_MACHINE": 0x00010000,
            "GET_MACHINE_PERMISSIONS": 0x00020000,
            "CHANGE_MACHINE_PERMISSIONS": 0x00040000,
            "TAKE_MACHINE_OWNERSHIP": 0x00080000,
            "RECEIVE_DEADLETTER_MESSAGE": 0x00000003,
            "RECEIVE_JOURNAL_QUEUE_MESSAGE": 0x000000C0,
            "MACHINE_GENERIC_READ": 0x000200E3,
            "MACHINE_GENERIC_WRITE": 0x00020024,
            "MACHINE_GENERIC_ALL": 0x000F00F7,
            "MACHINE_WORLD_RIGHTS": 0x00020020,
        },
    ),
    (
        QueueRights,
        {
            "DELETE_MESSAGE": 0x00000001,
            "PEEK_MESSAGE": 0x00000002,
            "WRITE_MESSAGE": 0x00000004,
            "DELETE_JOURNAL_MESSAGE": 0x00000008,
            "SET_QUEUE_PROPERTIES": 0x00000010,
            "GET_QUEUE_PROPERTIES": 0x00000020,
            "DELETE_QUEUE": 0x00010000,
            "GET_QUEUE_PERMISSIONS": 0x00020000,
            "CHANGE_QUEUE_PERMISSIONS": 0x00040000,
            "TAKE_QUEUE_OWNERSHIP": 0x00080000,
            "RECEIVE_MESSAGE": 0x00000003,
            "RECEIVE_JOURNAL_MESSAGE": 0x0000000A,
            "QUEUE_GENERIC_READ": 0x0002002B,
            "QUEUE_GENERIC_WRITE": 0x00020024,
            "QUEUE_GENERIC_ALL": 0x000F003F,
        },
    ),
    (
        SiteRights,
        {
            "CREATE_FRS": 0x00000001,
            "CREATE_BSC": 0x00000002,
            "CREATE_MACHINE": 0x00000004,
            "SET_SITE_PROPERTIES": 0x00000010,
            "GET_SITE_PROPERTIES": 0x00000020,
            "DELETE_SITE": 0x00010000,
            "GET_SITE_PERMISSIONS": 0x00020000,
            "CHANGE_SITE_PERMISSIONS": 0x00040000,
            "TAKE_SITE_OWNERSHIP": 0x00080000,
            "SITE_GENERIC_READ": 0x00020020,
            "SITE_GENERIC_WRITE": 0x00020024,
            "SITE_GENERIC_ALL": 0x000F0037,
        },
    ),
    (
        EnterpriseRights,
        {
            "CREATE_USER": 0x00000001,
            "CREATE_SITE": 0x00000002,
            "CREATE_CN": 0x00000004,
            "SET_ENTERPRISE_PROPERTIES": 0x00000010,
            "GET_ENTERPRISE_PROPERTIES": 0x00000020,
            "DELETE_ENTERPRISE": 0x00010000,
            "GET_ENTERPRISE_PERMISSIONS": 0x00020000,
            "CHANGE_ENTERPRISE_PERMISSIONS": 0x00040000,
            "TAKE_ENTERPRISE_OWNERSHIP": 0x00080000,
            "ENTERPRISE_GENERIC_READ": 0x00020021,
            "ENTERPRISE_GENERIC_WRITE": 0x00020027,
            "ENTERPRISE_GENERIC_ALL": 0x000F0037,
        },
    ),
    (
        CnRights,
        {
            "CN_OPEN_CONNECTOR": 0x00000001,
            "SET_CN_PROPERTIES": 0x00000010,
            "GET_CN_PROPERTIES": 0x00000020,
            "DELETE_CN": 0x00010000,
            "GET_CN_PERMISSIONS": 0x00020000,
            "CHANGE_CN_PERMISSIONS": 0x00040000,
            "TAKE_CN_OWNERSHIP": 0x00080000,
            "CN_GENERIC_READ": 0x00020020,
            "CN_GENERIC_ALL": 0x000F0031,
        },
    ),
    (
        Rights,
        {
            "DELETE": 0x00010000,
            "READ_CONTROL": 0x00020000,
            "WRITE_DAC": 0x00040000,
            "WRITE_OWNER": 0x00080000,
            "SYNCHRONIZE": 0x00100000,
            "ACCESS_SYSTEM_SECURITY": 0x01000000,
            "MAXIMUM_ALLOWED": 0x02000000,
            "GENERIC_ALL": 0x10000000,
            "GENERIC_EXECUTE": 0x20000000,
            "GENERIC_WRITE": 0x40000000,
            "GENERIC_READ": 0x80000000,
        },
    ),
    (
        UserRights,
        {
            "DS_CREATE_CHILD": 0x00000001,
            "DS_DELETE_CHILD": 0x00000002,
            "DS_LIST_CONTENTS": 0x00000004,
            "DS_WRITE_PROPERTY_EXTENDED": 0x00000008,
            "DS_READ_PROPERTY": 0x00000010,
            "DS_WRITE_PROPERTY": 0x00000020,
            "DS_DELETE_TREE": 0x00000040,
            "DS_LIST_OBJECT": 0x00000080,
            "DS_CONTROL_ACCESS": 0x00000100,
            "DELETE": 0x00010000,
            "READ_CONTROL": 0x00020000,
            "WRITE_DAC": 0x00040000,
            "WRITE_OWNER": 0x00080000,
            "GENERIC_READ_MAPPING": 0x00020094,
            "GENERIC_WRITE_MAPPING": 0x00020028,
            "GENERIC_EXECUTE_MAPPING": 0x00020004,
            "GENERIC_ALL_MAPPING": 0x000F01FF,
        },
    ),
]


@pytest.mark.parametrize(("rights", "expected"), RIGHTS)
def test_values(rights: type[IntFlag], expected: dict[str, int]) -> None:
    assert {name: int(value) for name, value in rights.__members__.items()} == expected


@pytest.mark.parametrize(
    ("object_type", "read", "write", "execute", "everything"),
    [
        (ObjectType.QUEUE, 0x2002B, 0x20024, 0, 0xF003F),
        (ObjectType.MACHINE, 0x200E3, 0x20024, 0, 0xF00F7),
        (ObjectType.SITE, 0x20020, 0x20024, 0, 0xF0037),
        (ObjectType.ENTERPRISE, 0x20021, 0x20027, 0, 0xF0037),
        (ObjectType.CN, 0x20020, 0x20020, 0, 0xF0031),
        (ObjectType.USER, 0x20094, 0x20028, 0x20004, 0xF01FF),
    ],
)
def test_generic_rights(
    object_type: ObjectType, read: int, write: int, execute: int, everything: int
) -> None:
    mapping = generic_mapping(object_type)
    assert mapping.map(0x80000000) == read
    assert mapping.map(0x40000000) == write
    assert mapping.map(0x20000000) == execute
    assert mapping.map(0x10000000) == everything
    assert mapping.map(0xC0000001) == read | write | 1
    assert mapping.map(0x0FFFFFFF) == 0x0FFFFFFF


@pytest.mark.parametrize("object_type", [ObjectType.ROUTINGLINK, ObjectType.DELETEDOBJECT])
def test_objects_without_rights(object_type: ObjectType) -> None:
    with pytest.raises(ValueError, match="no access rights"):
        generic_mapping(object_type)


def test_write_on_users_is_what_the_default_descriptor_gives_its_owner() -> None:
    granted = UserRights.DS_WRITE_PROPERTY_EXTENDED | UserRights.DS_WRITE_PROPERTY
    assert int(granted | UserRights.GENERIC_READ_MAPPING) == 0x200BC


@given(masks, st.builds(GenericMapping, masks, masks, masks, masks))
def test_mapping_with_any_table(mask: int, mapping: GenericMapping) -> None:
    used = (
        (0x80000000, mapping.read),
        (0x40000000, mapping.write),
        (0x20000000, mapping.execute),
        (0x10000000, mapping.all),
    )
    expected = mask & 0x0FFFFFFF
    for bit, meaning in used:
        expected |= meaning if mask & bit else 0
    assert mapping.map(mask) == expected


def test_descriptor_to_attach() -> None:
    queue = generic_mapping(ObjectType.QUEUE)
    opaque = OpaqueAce(0x09, bytes(4))
    inherit_only = allow(EVERYONE, 0x10000000, AceFlags.INHERIT_ONLY)
    by_object = ObjectAce(AceType.ACCESS_DENIED_OBJECT, 0x40000000, EVERYONE)
    sd = SecurityDescriptor(
        owner=EVERYONE,
        dacl=Acl((allow(EVERYONE, 0x80000001), by_object, inherit_only, opaque)),
        sacl=Acl((audit(EVERYONE, 0x10000000, AceFlags.FAILED_ACCESS),)),
    )
    assert map_descriptor(sd, queue) == SecurityDescriptor(
        owner=EVERYONE,
        dacl=Acl(
            (
                allow(EVERYONE, 0x2002B),
                ObjectAce(AceType.ACCESS_DENIED_OBJECT, 0x20024, EVERYONE),
                inherit_only,
                opaque,
            )
        ),
        sacl=Acl((audit(EVERYONE, 0xF003F, AceFlags.FAILED_ACCESS),)),
    )
    assert map_descriptor(SecurityDescriptor.EMPTY, queue) == SecurityDescriptor.EMPTY
