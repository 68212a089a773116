"""Access control: rights, administrators, links, audit lines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from mqis.protocol.directory.descriptors import default_descriptor
from mqis.protocol.directory.guard import (
    CREATE_RIGHT,
    Access,
    DeferringGuard,
    Denial,
    Guard,
)
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.security.access import Token
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE, Sid
from tests.protocol.directory.world import (
    ALICE_SID,
    CN,
    ENTERPRISE,
    LINK,
    MACHINE,
    QUEUE,
    SITE,
    USER,
    World,
    blob,
    refusal,
)

DENIED = HResult.MQ_ERROR_ACCESS_DENIED
BOB = Sid.parse("S-1-5-21-1-2-3-1002")
EVERY_RIGHT = 0x000F_FFFF
#: MS-MQMQ 2.2.23 to 2.2.27: the same bit for the same thing, whatever the type.
RIGHTS = {
    Access.READ: 0x20,
    Access.WRITE: 0x10,
    Access.DELETE: 0x1_0000,
    Access.READ_SECURITY: 0x2_0000,
    Access.WRITE_DACL: 0x4_0000,
    Access.WRITE_OWNER: 0x8_0000,
}
#: MS-ADTS 5.1.3.2: read-property and write-property.
USER_RIGHTS = {Access.READ: 0x10, Access.WRITE: 0x20, Access.DELETE: 0x20}
WITH_DESCRIPTOR = [QUEUE, MACHINE, SITE, CN, ENTERPRISE]


@pytest.fixture
def world() -> World:
    return World()


def _granting(obj: DirectoryObject, mask: int, who: Sid = BOB) -> DirectoryObject:
    descriptor = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl((allow(who, mask),)))
    return _with(obj, blob(descriptor.to_bytes()))


def _with(obj: DirectoryObject, descriptor: PropVariant) -> DirectoryObject:
    return replace(obj, properties={**obj.properties, SECURITY_PROPERTY[obj.type]: descriptor})


def _guard(user: Sid = BOB, *groups: Sid) -> tuple[Guard, list[Denial]]:
    heard: list[Denial] = []
    return Guard(Token.authenticated(user, groups), frozenset(), heard.append), heard


@pytest.mark.req("MQDS-2.1-08")
@pytest.mark.parametrize("object_type", WITH_DESCRIPTOR)
@pytest.mark.parametrize("access", list(RIGHTS))
def test_exactly_one_right_decides(world: World, object_type: ObjectType, access: Access) -> None:
    obj, right = world.one(object_type), RIGHTS[access]
    guard, heard = _guard()
    with world.store.read() as view:
        guard.check(_granting(obj, right), access, view)
        assert heard == []
        lacking = _granting(obj, EVERY_RIGHT & ~right)
        refused = refusal(lambda: guard.check(lacking, access, view))
    # What may not be read is not there, but for the enterprise, which everybody knows.
    hidden = access is Access.READ and object_type is not ENTERPRISE
    assert refused == (HResult.MQDS_OBJECT_NOT_FOUND if hidden else HResult.MQ_ERROR_ACCESS_DENIED)
    assert heard == [Denial(BOB, access.value, object_type, obj.path or "")]


@pytest.mark.parametrize("access", list(USER_RIGHTS))
def test_users_have_the_rights_of_directories(world: World, access: Access) -> None:
    """A user object has no descriptor; by the default everybody reads it, and its user writes."""
    user = world.one(USER)
    stranger, _ = _guard()
    owner, _ = _guard(Sid.from_bytes(ALICE_SID))
    with world.store.read() as view:
        assert owner.allows(user, access, view)
        assert stranger.allows(user, access, view) is (access is Access.READ)


def test_a_judgement_is_about_the_sid_not_the_object(world: World) -> None:
    user = world.one(USER)
    guard, _ = _guard()
    with world.store.read() as view:
        assert not guard.allows(user, Access.WRITE, view)
        mine = replace(user, properties={**user.properties, 701: blob(BOB.to_bytes())})
        assert guard.allows(mine, Access.WRITE, view)


@pytest.mark.req("MQDS-3.1.4.5-01")
def test_the_audit_line_says_who_and_what(world: World) -> None:
    guard, heard = _guard()
    nobodys = _granting(world.one(QUEUE), 0)
    with world.store.read() as view:
        refusal(lambda: guard.check(nobodys, Access.DELETE, view))
    assert [str(line) for line in heard] == [
        "denied: S-1-5-21-1-2-3-1002 may not delete queue C14\\orders"
    ]
    assert str(replace(heard[0], caller=None)).startswith("denied: anonymous may not")


def test_administrators_pass_every_check(world: World) -> None:
    guard = Guard(Token.authenticated(BOB, [ADMINISTRATORS]), frozenset({ADMINISTRATORS}))
    assert guard.is_administrator
    with world.store.read() as view:
        for object_type in WITH_DESCRIPTOR:
            for access in Access:
                guard.check(_granting(world.one(object_type), 0), access, view)
    guard.check_create(MACHINE, None, "C99")


def test_audit_lists_are_for_administrators_alone(world: World) -> None:
    guard, _ = _guard()
    with world.store.read() as view:
        granted = _granting(world.one(QUEUE), EVERY_RIGHT | 0x0100_0000)
        assert not guard.allows(granted, Access.SYSTEM_SECURITY, view)


def test_the_owner_reads_and_changes_permissions_whatever_the_list_says(world: World) -> None:
    descriptor = SecurityDescriptor(owner=BOB, dacl=Acl(()))
    mine = _with(world.one(QUEUE), blob(descriptor.to_bytes()))
    guard, _ = _guard()
    with world.store.read() as view:
        allowed = [access for access in Access if guard.allows(mine, access, view)]
    assert allowed == [Access.READ_SECURITY, Access.WRITE_DACL]


class TestCreate:
    @pytest.mark.req("MQDS-2.1-08")
    @pytest.mark.parametrize(
        ("object_type", "owner_type", "right"),
        [
            (QUEUE, MACHINE, 0x4),  # MQSEC_CREATE_QUEUE
            (MACHINE, SITE, 0x4),  # MQSEC_CREATE_MACHINE
            (SITE, ENTERPRISE, 0x2),  # MQSEC_CREATE_SITE
            (CN, ENTERPRISE, 0x4),  # MQSEC_CREATE_CN
            (USER, ENTERPRISE, 0x1),  # MQSEC_CREATE_USER
            (LINK, ENTERPRISE, 0x10),  # MQSEC_SET_ENTERPRISE_PROPERTIES
        ],
    )
    def test_is_asked_of_the_owner(
        self, world: World, object_type: ObjectType, owner_type: ObjectType, right: int
    ) -> None:
        assert CREATE_RIGHT[object_type][0] is owner_type
        owner = world.one(owner_type)
        guard, heard = _guard()
        guard.check_create(object_type, _granting(owner, right), "new")
        lacking = _granting(owner, EVERY_RIGHT & ~right)
        refused = refusal(lambda: guard.check_create(object_type, lacking, "new"))
        assert refused == HResult.MQ_ERROR_ACCESS_DENIED
        assert [str(line) for line in heard] == [
            f"denied: {BOB} may not create {object_type.label} new"
        ]

    def test_nobodys_objects_are_created_by_administrators(self) -> None:
        guard, _ = _guard()
        refused = refusal(lambda: guard.check_create(SITE, None, "new"))
        assert refused == HResult.MQ_ERROR_ACCESS_DENIED


class TestLinks:
    """A link has no descriptor: the enterprise is asked."""

    @pytest.mark.parametrize(
        ("access", "right"),
        [
            (Access.READ, 0x20),
            (Access.WRITE, 0x10),
            (Access.DELETE, 0x10),
            (Access.READ_SECURITY, 0x20),
        ],
    )
    def test_rights_of_the_enterprise(self, access: Access, right: int) -> None:
        for mask, allowed in ((right, True), (EVERY_RIGHT & ~right, False)):
            world = World()
            root = world.one(ENTERPRISE)
            descriptor = _granting(root, mask).properties[SECURITY_PROPERTY[ENTERPRISE]]
            world.update_event(root, {SECURITY_PROPERTY[ENTERPRISE]: descriptor})
            guard, _ = _guard()
            with world.store.read() as view:
                assert guard.allows(world.one(LINK), access, view) is allowed

    def test_without_an_enterprise_they_are_read_only(self, world: World) -> None:
        world.delete(world.one(ENTERPRISE))
        guard, _ = _guard()
        with world.store.read() as view:
            link = world.one(LINK)
            assert [a for a in Access if guard.allows(link, a, view)] == [Access.READ]


def test_equal_descriptors_are_judged_once(world: World) -> None:
    guard, _ = _guard()
    queue = _granting(world.one(QUEUE), 0x20)
    with world.store.read() as view:
        for _ in range(3):
            assert guard.allows(replace(queue, id=queue.id), Access.READ, view)
        assert len(guard._judged) == 1
        guard.allows(_granting(world.one(QUEUE), 0), Access.READ, view)
        assert len(guard._judged) == 2


def test_what_a_guard_remembers_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each queue may have a descriptor of its own, and one of them may be large."""
    monkeypatch.setattr("mqis.protocol.directory.guard.MAX_JUDGED", 3)
    guard, _ = _guard()
    with world.store.read() as view:
        for right in range(10):
            guard.allows(_granting(world.one(QUEUE), right), Access.READ, view)
            assert len(guard._judged) <= 3
        entries = "".join(f"(A;;0x20;;;S-1-5-21-1-2-3-{n})" for n in range(100))
        large = _with(world.one(QUEUE), blob(parse_sddl(f"D:{entries}(A;;0x20;;;WD)").to_bytes()))
        assert guard.allows(large, Access.READ, view)
        assert max(len(key[1] or b"") for key in guard._judged) <= 256


def test_a_descriptor_that_cannot_be_read_grants_nothing(world: World) -> None:
    broken = _with(world.one(QUEUE), blob(b"\1\2\3"))
    guard, _ = _guard()
    with world.store.read() as view:
        assert not any(guard.allows(broken, access, view) for access in Access)


def test_generic_rights_of_a_stored_descriptor_count(world: World) -> None:
    """One that another server made need not have its generic rights mapped."""
    generic = _with(world.one(QUEUE), blob(parse_sddl("D:(A;;GR;;;WD)").to_bytes()))
    guard, _ = _guard()
    with world.store.read() as view:
        assert guard.allows(generic, Access.READ, view)
        assert not guard.allows(generic, Access.WRITE, view)


@pytest.mark.req("MQDS-2.1-06")
def test_anonymous_callers_have_what_everyone_has(world: World) -> None:
    for in_everyone in (True, False):
        guard = Guard(Token.anonymous(in_everyone=in_everyone))
        open_queue = _granting(world.one(QUEUE), 0x20, EVERYONE)
        with world.store.read() as view:
            assert guard.allows(open_queue, Access.READ, view) is in_everyone
            assert not guard.allows(open_queue, Access.WRITE, view)


def test_silence_is_the_default(world: World) -> None:
    guard = Guard(Token.anonymous())
    with world.store.read() as view:
        nobodys = _granting(world.one(QUEUE), 0)
        refused = refusal(lambda: guard.check(nobodys, Access.READ, view))
    assert refused == HResult.MQDS_OBJECT_NOT_FOUND
    assert default_descriptor(QUEUE, None).owner is None


@pytest.mark.parametrize("kind", WITH_DESCRIPTOR)
def test_a_deferring_guard_leaves_rights_to_the_directory(kind: ObjectType, world: World) -> None:
    guard = DeferringGuard(Token(BOB, frozenset()))
    closed = _granting(world.one(kind), 0)
    with world.store.read() as view:
        for access in RIGHTS:
            guard.check(closed, access, view)
        guard.check_create(ObjectType.QUEUE, closed, "new")
        guard.check_create(ObjectType.MACHINE, None, "new")
        guard.check_owner(ADMINISTRATORS, kind, "new")
        assert refusal(lambda: guard.check(closed, Access.SYSTEM_SECURITY, view)) == DENIED
    assert refusal(lambda: guard.check_administrator("end", kind, "x")) == DENIED


@pytest.mark.parametrize("kind", WITH_DESCRIPTOR)
def test_a_deferring_guard_makes_up_no_permissions(kind: ObjectType, world: World) -> None:
    guard = DeferringGuard(Token(BOB, frozenset()))
    obj = world.one(kind)
    kept = {id_: value for id_, value in obj.properties.items() if id_ != SECURITY_PROPERTY[kind]}
    sealed = replace(obj, properties=kept)
    with world.store.read() as view:
        guard.check(sealed, Access.READ, view)
        guard.check(sealed, Access.WRITE, view)
        for access in (Access.READ_SECURITY, Access.WRITE_DACL, Access.WRITE_OWNER):
            assert refusal(partial(guard.check, sealed, access, view)) == DENIED
