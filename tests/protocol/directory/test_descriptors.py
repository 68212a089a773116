"""Descriptors that objects have when nobody gave them one."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.descriptors import (
    MachinePolicy,
    default_descriptor,
    descriptor_of,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import AceType, PlainAce
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE, Sid
from tests.protocol.directory.world import (
    ALICE_SID,
    CN,
    DESCRIPTOR,
    ENTERPRISE,
    MACHINE,
    QUEUE,
    SITE,
    USER,
    World,
    blob,
)

BOB = Sid.parse("S-1-5-21-1-2-3-1002")


def _grants(descriptor: SecurityDescriptor) -> dict[Sid, int]:
    assert descriptor.dacl is not None
    grants = {}
    for ace in descriptor.dacl.aces:
        assert isinstance(ace, PlainAce)
        assert ace.type is AceType.ACCESS_ALLOWED
        grants[ace.sid] = ace.mask
    return grants


@pytest.mark.parametrize(
    ("object_type", "everyone", "owner"),
    [
        pytest.param(QUEUE, 0x20020, 0xF003F, marks=pytest.mark.req("MQDS-3.1.4.4-19")),
        (MACHINE, 0xF00F7, 0xF00F7),
        pytest.param(SITE, 0x20020, 0xF0037, marks=pytest.mark.req("MQDS-3.1.4.4-22")),
        # READ_CONTROL, list contents, read property, list object; and the two write rights
        pytest.param(USER, 0x20094, 0x200BC, marks=pytest.mark.req("MQDS-3.1.4.4-23")),
        (CN, 0x20020, 0xF0031),
        (ENTERPRISE, 0x20021, 0xF0037),
    ],
)
def test_masks(object_type: ObjectType, everyone: int, owner: int) -> None:
    descriptor = default_descriptor(object_type, BOB)
    assert descriptor.owner == BOB
    assert _grants(descriptor) == {EVERYONE: everyone, BOB: owner}
    assert SecurityDescriptor.from_bytes(descriptor.to_bytes()) == descriptor


def test_full_control_of_machines_can_be_kept_to_the_owner() -> None:
    descriptor = default_descriptor(MACHINE, BOB, MachinePolicy.OWNER)
    assert _grants(descriptor) == {EVERYONE: 0x20020, BOB: 0xF00F7}


def test_without_an_owner_there_is_just_everyone() -> None:
    assert _grants(default_descriptor(QUEUE, None)) == {EVERYONE: 0x20020}


def test_an_object_has_its_own_or_the_default_of_its_type() -> None:
    world = World(described=False)
    queue = world.one(QUEUE)
    assert descriptor_of(queue) == default_descriptor(QUEUE, None)
    changed = world.update_event(queue, {1101: blob(DESCRIPTOR)})
    assert descriptor_of(changed).to_bytes() == DESCRIPTOR


def test_machines_of_before_are_not_everybodys() -> None:
    """Everyone may only read a machine that was stored without a descriptor, before any policy."""
    assert _grants(descriptor_of(World(described=False).one(MACHINE))) == {EVERYONE: 0x20020}


def test_a_user_owns_the_object_about_it() -> None:
    world = World()
    descriptor = descriptor_of(world.one(USER))
    assert descriptor.owner == Sid.from_bytes(ALICE_SID)
    nameless = world.update_event(world.one(USER), {701: blob(b"")})
    assert descriptor_of(nameless).owner is None
