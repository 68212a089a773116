"""Descriptors both ways: every right means the same, and nothing is widened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.activedirectory import rights
from mqis.protocol.activedirectory.rights import (
    DescriptorParts,
    from_active_directory,
    parts_of,
    to_active_directory,
)
from mqis.protocol.security.masks import (
    EnterpriseRights,
    MachineRights,
    QueueRights,
    SiteRights,
    generic_mapping,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import (
    AceFlags,
    AceType,
    Acl,
    ObjectAce,
    OpaqueAce,
    PlainAce,
    allow,
)
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import Sid
from mqis.wire.writer import Writer

ALICE, BOB = Sid.parse("S-1-5-21-1-2-3-1001"), Sid.parse("S-1-5-21-1-2-3-1002")
READ, WRITE, EXTENDED = 0x14, 0x20, 0x100
TYPES = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.SITE,
    ObjectType.ENTERPRISE,
    ObjectType.CN,
)


def listed(*aces: PlainAce | ObjectAce | OpaqueAce) -> SecurityDescriptor:
    return SecurityDescriptor(dacl=Acl(aces))


def translated(object_type: ObjectType, mask: int) -> list[tuple[int, Guid | None]]:
    found = to_active_directory(listed(allow(ALICE, mask)), object_type)
    assert found.dacl is not None
    return [
        (ace.mask, ace.object_type if isinstance(ace, ObjectAce) else None)
        for ace in found.dacl.aces
        if not isinstance(ace, OpaqueAce)
    ]


@pytest.mark.req("MQDSSM-3.1.6.1.1.8-05")
def test_reading_and_writing_properties_do_not_change_places() -> None:
    for object_type in TYPES:
        assert translated(object_type, 0x20) == [(READ, None)]
        assert translated(object_type, 0x10) == [(WRITE, None)]


@pytest.mark.parametrize(
    ("object_type", "mask", "expected"),
    [
        (ObjectType.QUEUE, QueueRights.WRITE_MESSAGE, [(EXTENDED, rights.SEND)]),
        (ObjectType.QUEUE, QueueRights.PEEK_MESSAGE, [(EXTENDED, rights.PEEK)]),
        (ObjectType.QUEUE, QueueRights.RECEIVE_MESSAGE,
         [(EXTENDED, rights.RECEIVE), (EXTENDED, rights.PEEK)]),
        (ObjectType.QUEUE, QueueRights.RECEIVE_JOURNAL_MESSAGE,
         [(EXTENDED, rights.PEEK), (EXTENDED, rights.RECEIVE_JOURNAL)]),
        (ObjectType.QUEUE, QueueRights.DELETE_MESSAGE, []),
        (ObjectType.QUEUE, 0x000F_0000, [(0x000F_0000, None)]),
        (ObjectType.MACHINE, MachineRights.CREATE_QUEUE, [(1, None)]),
        (ObjectType.MACHINE, MachineRights.RECEIVE_DEADLETTER_MESSAGE,
         [(EXTENDED, rights.RECEIVE_DEAD_LETTER), (EXTENDED, rights.PEEK_DEAD_LETTER)]),
        (ObjectType.MACHINE, MachineRights.RECEIVE_JOURNAL_QUEUE_MESSAGE,
         [(EXTENDED, rights.RECEIVE_COMPUTER_JOURNAL), (EXTENDED, rights.PEEK_COMPUTER_JOURNAL)]),
        (ObjectType.CN, 1, [(EXTENDED, rights.OPEN_CONNECTOR)]),
        (ObjectType.SITE, SiteRights.CREATE_MACHINE | SiteRights.CREATE_BSC, []),
        (ObjectType.ENTERPRISE, EnterpriseRights.CREATE_SITE, []),
    ],
)  # fmt: skip
@pytest.mark.req("MQDSSM-3.1.6.1.1.8-06")
def test_translation(
    object_type: ObjectType, mask: int, expected: list[tuple[int, Guid | None]]
) -> None:
    assert translated(object_type, mask) == expected


@pytest.mark.req("MQDSSM-3.1.6.1.1.8-06")
def test_the_nine_extended_rights() -> None:
    for guid, digits in (
        (rights.RECEIVE, "06bd3200-df3e"), (rights.PEEK, "06bd3201-df3e"),
        (rights.SEND, "06bd3202-df3e"), (rights.RECEIVE_JOURNAL, "06bd3203-df3e"),
        (rights.RECEIVE_DEAD_LETTER, "4b6e08c0-df3c"), (rights.PEEK_DEAD_LETTER, "4b6e08c1-df3c"),
        (rights.RECEIVE_COMPUTER_JOURNAL, "4b6e08c2-df3c"),
        (rights.PEEK_COMPUTER_JOURNAL, "4b6e08c3-df3c"), (rights.OPEN_CONNECTOR, "b4e60130-df3f"),
    ):  # fmt: skip
        assert str(guid) == f"{digits}-11d1-9c86-006008764d0e"


MASKS = st.integers(0, 0xFF).map(int) | st.sampled_from([0x1000_0000, 0x8000_0000, 0x4000_0000])
ACES = st.builds(
    PlainAce,
    st.sampled_from([AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED]),
    st.builds(int.__or__, MASKS, st.sampled_from([0, 0x20000, 0xF0000])),
    st.sampled_from([ALICE, BOB]),
)


def effect(descriptor: SecurityDescriptor, sid: Sid, object_type: ObjectType) -> tuple[int, int]:
    """The bits that a walk of the list allows and denies a trustee."""
    allowed = denied = 0
    assert descriptor.dacl is not None
    for ace in descriptor.dacl.aces:
        assert isinstance(ace, PlainAce)
        mask = generic_mapping(object_type).map(ace.mask)
        if ace.sid == sid and ace.type is AceType.ACCESS_ALLOWED:
            allowed |= mask & ~denied
        elif ace.sid == sid:
            denied |= mask & ~allowed
    return allowed, denied


@given(st.sampled_from(TYPES), st.lists(ACES, max_size=4))
@pytest.mark.req("MQDSSM-3.1.6.1.1.8-05")
def test_nobody_gains_a_right_by_the_way_there_and_back(
    object_type: ObjectType, aces: list[PlainAce]
) -> None:
    given_ = listed(*aces)
    once = from_active_directory(to_active_directory(given_, object_type), object_type)
    for sid in (ALICE, BOB):
        assert effect(once, sid, object_type)[0] & ~effect(given_, sid, object_type)[0] == 0
    again = from_active_directory(to_active_directory(once, object_type), object_type)
    assert again == once


@pytest.mark.parametrize("object_type", TYPES)
def test_full_rights_come_back(object_type: ObjectType) -> None:
    full = int(generic_mapping(object_type).all)
    read = from_active_directory(
        to_active_directory(listed(allow(ALICE, 0x1000_0000)), object_type), object_type
    )
    lost = 7 if object_type in (ObjectType.SITE, ObjectType.ENTERPRISE) else 0
    assert read.dacl == Acl((allow(ALICE, full & ~lost),))


def test_full_control_of_an_administrator_is_every_right() -> None:
    read = from_active_directory(listed(allow(ALICE, 0x000F_01FF)), ObjectType.QUEUE)
    assert read.dacl == Acl((allow(ALICE, int(QueueRights.QUEUE_GENERIC_ALL)),))


def test_a_denied_peek_denies_to_receive() -> None:
    denied = PlainAce(AceType.ACCESS_DENIED, int(QueueRights.PEEK_MESSAGE), ALICE)
    made = to_active_directory(listed(denied), ObjectType.QUEUE)
    assert made.dacl is not None
    guids = {ace.object_type for ace in made.dacl.aces if isinstance(ace, ObjectAce)}
    assert {rights.RECEIVE, rights.PEEK} <= guids


def test_a_right_on_one_property_allows_little_and_denies_much() -> None:
    one = Guid.parse("bf967953-0de6-11d0-a285-00aa003049e2")
    allowed = ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, WRITE, ALICE, one)
    denied = ObjectAce(AceType.ACCESS_DENIED_OBJECT, WRITE, ALICE, one)
    read = from_active_directory(listed(allowed, denied), ObjectType.QUEUE)
    mask = int(QueueRights.SET_QUEUE_PROPERTIES)
    assert read.dacl == Acl((PlainAce(AceType.ACCESS_DENIED, mask, ALICE),))


def conditional(ace_type: int, mask: int) -> OpaqueAce:
    writer = Writer()
    writer.u32(mask)
    ALICE.encode(writer)
    return OpaqueAce(ace_type, writer.getvalue())


def test_what_does_not_apply_is_skipped() -> None:
    inherit = AceFlags.INHERIT_ONLY | AceFlags.CONTAINER_INHERIT
    read = from_active_directory(
        listed(
            allow(ALICE, WRITE, inherit),
            PlainAce(AceType.SYSTEM_AUDIT, WRITE, ALICE),
            ObjectAce(AceType.ACCESS_ALLOWED_OBJECT, EXTENDED, ALICE, Guid.NULL),
            conditional(AceType.ACCESS_ALLOWED_CALLBACK, WRITE),
            conditional(AceType.ACCESS_DENIED_CALLBACK, WRITE),
            OpaqueAce(0x13, b""),
        ),
        ObjectType.QUEUE,
    )
    mask = int(QueueRights.SET_QUEUE_PROPERTIES)
    assert read.dacl == Acl((PlainAce(AceType.ACCESS_DENIED, mask, ALICE),))
    audit = listed(PlainAce(AceType.SYSTEM_AUDIT, 1, ALICE), conditional(9, 1))
    assert to_active_directory(audit, ObjectType.QUEUE).dacl == Acl()


def test_a_missing_list_and_parts() -> None:
    nobody = SecurityDescriptor(owner=ALICE, group=BOB)
    assert to_active_directory(nobody, ObjectType.QUEUE) == nobody
    assert from_active_directory(nobody, ObjectType.QUEUE) == nobody
    assert parts_of(nobody) == DescriptorParts.OWNER | DescriptorParts.GROUP
    assert parts_of(SecurityDescriptor(dacl=Acl())) == DescriptorParts.DACL
    everybody = SecurityDescriptor(control=Control.DACL_PRESENT)
    made = to_active_directory(everybody, ObjectType.SITE)
    assert made.dacl is not None
    assert {ace.sid for ace in made.dacl.aces if isinstance(ace, PlainAce)} == {well_known.EVERYONE}
