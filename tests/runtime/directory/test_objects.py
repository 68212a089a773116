"""S_DSCreateObject, S_DSDeleteObject, S_DSDeleteObjectGuid over a socket."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mqis.protocol.directory.descriptors import MachinePolicy, descriptor_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Transaction, View
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, is_failure
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.security.acl import PlainAce
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import EVERYONE, Sid
from tests.protocol.directory.world import (
    ALICE,
    BARE_CERTIFICATE,
    BOB_SID,
    C14,
    CN,
    DELETED,
    ENTERPRISE,
    ENTERPRISE_ID,
    LINK,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SECOND_CERTIFICATE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    blob,
    certificates,
    digest,
    guid,
    guids,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    OK,
    Caller,
    scenario,
    serving,
)

SYSTEM = Sid.parse("S-1-5-18")
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
LINK_PATH = SITE_B.big_endian.hex() + SITE_A.big_endian.hex()
Properties = dict[int, PropVariant]

#: Of each type that clients create: a path, the least that it takes, the property of its GUID.
LEAST: dict[ObjectType, tuple[str | None, Properties, int]] = {
    QUEUE: ("C14\\new", {108: text("new")}, 101),
    MACHINE: ("C16", {201: guid(SITE_A)}, 202),
    SITE: ("Gamma", {305: PropVariant(VarType.UI2, 5)}, 302),
    CN: ("Net2", {503: guid(OTHER)}, 503),
    USER: (
        None,
        {
            701: blob(BOB_SID),
            702: blob(certificates(SECOND_CERTIFICATE)),
            705: guids(digest(SECOND_CERTIFICATE)),
        },
        706,
    ),
    LINK: (LINK_PATH, {801: guid(SITE_B), 802: guid(SITE_A), 812: ui4(5)}, 806),
}


async def create(
    caller: Caller,
    object_type: int,
    path: str | None,
    properties: Properties,
    *,
    descriptor: bytes | None = None,
    wanted: Guid | None = Guid.NULL,
) -> dscomm.Created:
    ids, values = tuple(properties), tuple(properties.values())
    request = dscomm.CreateObject(object_type, path, descriptor, ids, values, wanted)
    return await caller.call(dscomm.CREATE_OBJECT, request)


async def delete(caller: Caller, object_type: int, target: str | Guid) -> int:
    if isinstance(target, str):
        by_path = dscomm.ByPath(object_type, target)
        return (await caller.call(dscomm.DELETE_OBJECT, by_path)).result
    by_guid = dscomm.ByGuid(object_type, target)
    return (await caller.call(dscomm.DELETE_OBJECT_GUID, by_guid)).result


def found(world: World, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
    with world.store.read() as view:
        return view.get(object_type, id)


def masks(descriptor: SecurityDescriptor) -> dict[Sid, int]:
    assert descriptor.dacl is not None
    plain = [ace for ace in descriptor.dacl.aces if isinstance(ace, PlainAce)]
    return {ace.sid: ace.mask for ace in plain}


class TestCreate:
    @pytest.mark.req("MQDS-3.1.4.4-27", "MQDS-3.1.4.4-28")
    @pytest.mark.parametrize("object_type", list(LEAST))
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_each_type_and_its_guid(
        self, object_type: ObjectType, transfer: SyntaxId
    ) -> None:
        path, properties, _ = LEAST[object_type]
        async with serving() as served, served.caller(ADMIN, transfers=[transfer]) as caller:
            got = await create(caller, object_type, path, properties)
            assert got.result == OK
            assert got.guid
            assert found(served.world, object_type, got.guid) is not None

    @pytest.mark.req("MQDS-3.1.4.4-28")
    @pytest.mark.parametrize("object_type", list(LEAST))
    @scenario
    async def test_a_client_that_does_not_want_the_guid(self, object_type: ObjectType) -> None:
        path, properties, _ = LEAST[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, object_type, path, properties, wanted=None)
            assert (got.result, got.guid) == (OK, None)

    @pytest.mark.req("MQDS-3.1.4.4-03")
    @pytest.mark.parametrize(
        ("number", "code"),
        [
            (DELETED, INVALID),
            (9, INVALID),
            (58, INVALID),
            (ENTERPRISE, HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION),
        ],
    )
    @scenario
    async def test_types_that_are_not_created(self, number: int, code: HResult) -> None:
        """Before anything else: properties and descriptor are wrong as well."""
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            got = await create(caller, number, "x", {99: ui4(1)}, descriptor=b"?", wanted=OTHER)
            assert (got.result, got.guid) == (code, OTHER)
            assert served.world.snapshot() == before

    @pytest.mark.req("MQDS-3.1.4.4-04")
    @pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE])
    @scenario
    async def test_types_that_need_a_path(self, object_type: ObjectType) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, object_type, None, LEAST[object_type][1])
            assert got.result == INVALID

    @pytest.mark.req("MQDS-3.1.4.4-04")
    @pytest.mark.parametrize("path", ["orders", "C14\\private$\\q", "C14\\", "\\q", "", "C14\\a;b"])
    @scenario
    async def test_paths_that_are_no_public_queues(self, path: str) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, QUEUE, path, {108: text("x")})
            assert got.result == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME

    @pytest.mark.parametrize(
        ("object_type", "change", "code"),
        [
            (QUEUE, {203: text("x")}, HResult.MQ_ERROR_ILLEGAL_PROPID),
            (QUEUE, {4711: ui4(1)}, HResult.MQ_ERROR_ILLEGAL_PROPID),
            (QUEUE, {108: ui4(1)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
            (QUEUE, {108: text("x" * 125)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
            (QUEUE, {109: PropVariant(VarType.I4, 1)}, HResult.MQ_ERROR_PROPERTY_NOTALLOWED),
            (LINK, {812: ui4(0)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
            (LINK, {803: ui4(1)}, HResult.MQ_ERROR_PROPERTY_NOTALLOWED),
        ],
    )
    @scenario
    async def test_properties_that_are_wrong(
        self, object_type: ObjectType, change: Properties, code: HResult
    ) -> None:
        path, properties, _ = LEAST[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            got = await create(caller, object_type, path, {**properties, **change})
            assert got.result == code
            assert served.world.snapshot() == before

    @pytest.mark.req("MQDS-3.1.4.4-27")
    @pytest.mark.parametrize(
        ("object_type", "path", "code"),
        [
            (QUEUE, "c14\\ORDERS", HResult.MQ_ERROR_QUEUE_EXISTS),
            (MACHINE, "c14", HResult.MQ_ERROR_MACHINE_EXISTS),
            (QUEUE, "C99\\q", HResult.MQ_ERROR_MACHINE_NOT_FOUND),
        ],
    )
    @scenario
    async def test_what_the_store_refuses_is_the_answer(
        self, object_type: ObjectType, path: str, code: HResult
    ) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            got = await create(caller, object_type, path, LEAST[object_type][1])
            assert got.result == code
            assert served.world.snapshot() == before

    @pytest.mark.req("MQDS-3.1.4.21.8.3-01")
    @scenario
    async def test_what_the_create_table_leaves_out_follows_the_update_table(self) -> None:
        """214 is in the update table alone; 203 the create table ignores; 218 it refuses."""
        async with serving() as served, served.caller(ADMIN) as caller:
            given = {201: guid(SITE_A), 214: ui4(7), 203: text("other")}
            got = await create(caller, MACHINE, "C16", given)
            assert got.guid is not None
            machine = served.world.get(MACHINE, got.guid)
            assert (served.world.show(machine, 214), machine.path) == (7, "C16")
            refused = {201: guid(SITE_A), 218: PropVariant(VarType.I4, 1)}
            got = await create(caller, MACHINE, "C17", refused)
            assert got.result == HResult.MQ_ERROR_PROPERTY_NOTALLOWED

    @pytest.mark.departs("MQDS-3.1.4.4-26")
    @scenario
    async def test_networks_are_created(self) -> None:
        path, properties, _ = LEAST[CN]
        async with serving() as served, served.caller(ADMIN) as caller:
            assert (await create(caller, CN, path, properties)).result == OK

    @scenario
    async def test_a_machine_goes_to_the_site_of_the_server(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            nowhere = await create(caller, MACHINE, "C16", {214: ui4(1)})
            assert nowhere.result == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES
            served.configure(own_site=SITE_B)
            got = await create(caller, MACHINE, "C16", {214: ui4(1)})
            assert got.guid is not None
            assert served.world.get(MACHINE, got.guid).partition == SITE_B
            listed = await create(caller, MACHINE, "C17", {222: guids(SITE_A, SITE_B)})
            assert listed.guid is not None
            assert served.world.get(MACHINE, listed.guid).partition == SITE_A


class TestDescriptors:
    @pytest.mark.parametrize(
        ("object_type", "everyone", "owner"),
        [
            pytest.param(QUEUE, 0x20020, 0xF003F, marks=pytest.mark.req("MQDS-3.1.4.4-19")),
            (MACHINE, 0xF00F7, 0xF00F7),
            pytest.param(SITE, 0x20020, 0xF0037, marks=pytest.mark.req("MQDS-3.1.4.4-22")),
            pytest.param(CN, 0x20020, 0xF0031, marks=pytest.mark.departs("MQDS-3.1.4.4-26")),
        ],
    )
    @pytest.mark.req("MQDS-2.1-07")
    @scenario
    async def test_the_caller_owns_what_it_creates(
        self, object_type: ObjectType, everyone: int, owner: int
    ) -> None:
        path, properties, _ = LEAST[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, object_type, path, properties)
            assert got.guid is not None
            descriptor = descriptor_of(served.world.get(object_type, got.guid))
        assert descriptor.owner == ADMIN.sid
        assert masks(descriptor) == {EVERYONE: everyone, ADMIN.sid: owner}

    @scenario
    async def test_machines_can_be_kept_from_everyone(self) -> None:
        settings = {"machine_policy": MachinePolicy.OWNER}
        async with serving() as served, served.caller(ADMIN) as caller:
            served.configure(**settings)
            got = await create(caller, MACHINE, "C16", {201: guid(SITE_A)})
            assert got.guid is not None
            descriptor = descriptor_of(served.world.get(MACHINE, got.guid))
        assert masks(descriptor) == {EVERYONE: 0x20020, ADMIN.sid: 0xF00F7}

    @pytest.mark.req("MQDS-3.1.4.4-23")
    @scenario
    async def test_a_user_owns_its_own_object(self) -> None:
        """Whoever created it: the object is about that user."""
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, USER, None, LEAST[USER][1])
            assert got.guid is not None
            descriptor = descriptor_of(served.world.get(USER, got.guid))
        assert descriptor.owner == Sid.from_bytes(BOB_SID)
        assert masks(descriptor) == {EVERYONE: 0x20094, Sid.from_bytes(BOB_SID): 0x200BC}

    @pytest.mark.req("MQDS-3.1.4.4-20")
    @pytest.mark.parametrize(
        ("sddl", "owner", "group", "grants"),
        [
            ("O:SYG:SYD:(A;;0x20;;;WD)", SYSTEM, SYSTEM, {EVERYONE: 0x20}),
            ("D:(A;;0x20;;;WD)", ADMIN.sid, None, {EVERYONE: 0x20}),
            ("O:SY", SYSTEM, None, {EVERYONE: 0x20020, ADMIN.sid: 0xF003F}),
            # Generic rights become a queue's own.
            ("D:(A;;GA;;;WD)", ADMIN.sid, None, {EVERYONE: 0xF003F}),
        ],
    )
    @scenario
    async def test_what_is_missing_in_a_given_one_is_the_default(
        self, sddl: str, owner: Sid, group: Sid | None, grants: dict[Sid, int]
    ) -> None:
        given = parse_sddl(sddl).to_bytes()
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, QUEUE, "C14\\new", {108: text("x")}, descriptor=given)
            assert got.guid is not None
            descriptor = descriptor_of(served.world.get(QUEUE, got.guid))
        assert (descriptor.owner, descriptor.group) == (owner, group)
        assert masks(descriptor) == grants

    @pytest.mark.req("MQDS-3.1.4.4-20")
    @scenario
    async def test_null_list_and_audit_list_are_taken_too(self) -> None:
        audited = parse_sddl("D:NO_ACCESS_CONTROLS:(AU;FA;0x20;;;WD)")
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(
                caller, QUEUE, "C14\\new", {108: text("x")}, descriptor=audited.to_bytes()
            )
            assert got.guid is not None
            descriptor = descriptor_of(served.world.get(QUEUE, got.guid))
        assert descriptor.has_null_dacl
        assert descriptor.sacl == audited.sacl

    @pytest.mark.req("MQDS-3.1.4.4-20")
    @pytest.mark.parametrize("damaged", [b"\1", b"\0" * 20, parse_sddl("O:SY").to_bytes()[:-1]])
    @scenario
    async def test_damaged_ones(self, damaged: bytes) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            got = await create(caller, QUEUE, "C14\\new", {108: text("x")}, descriptor=damaged)
            assert got.result == HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR

    @pytest.mark.req("MQDS-3.1.4.4-12", "MQDS-3.1.4.4-31")
    @pytest.mark.parametrize("object_type", [t for t in LEAST if t is not QUEUE])
    @pytest.mark.parametrize("descriptor", [parse_sddl("O:SY").to_bytes(), b"not valid"])
    @scenario
    async def test_other_types_are_created_without(
        self, object_type: ObjectType, descriptor: bytes
    ) -> None:
        """Any descriptor is too much, valid or not."""
        path, properties, _ = LEAST[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            got = await create(caller, object_type, path, properties, descriptor=descriptor)
            assert got.result == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
            assert served.world.snapshot() == before


class TestDelete:
    @pytest.mark.req("MQDS-3.1.4.5-03", "MQDS-3.1.6.13-01")
    @pytest.mark.parametrize(
        ("object_type", "path", "guid"),
        [
            (QUEUE, "C14\\orders", ORDERS),
            (MACHINE, "C14", C14),
            (LINK, SITE_A.big_endian.hex() + SITE_B.big_endian.hex(), LINK_AB),
            pytest.param(SITE, "Alpha", SITE_A, marks=pytest.mark.departs("MQDS-3.1.6.13-02")),
            pytest.param(CN, "Net", NET, marks=pytest.mark.departs("MQDS-3.1.6.13-02")),
            pytest.param(
                ENTERPRISE, "Corp", ENTERPRISE_ID, marks=pytest.mark.departs("MQDS-3.1.6.13-02")
            ),
        ],
    )
    @scenario
    async def test_by_path(self, object_type: ObjectType, path: str, guid: Guid) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, object_type, path) == OK
            assert found(served.world, object_type, guid) is None
            assert await delete(caller, object_type, path) == NOT_FOUND

    @pytest.mark.req("MQDS-3.1.4.6-03", "MQDS-3.1.6.13-06")
    @pytest.mark.parametrize(
        ("object_type", "guid"),
        [
            (QUEUE, ORDERS),
            (MACHINE, C14),
            (SITE, SITE_A),
            (CN, NET),
            (ENTERPRISE, ENTERPRISE_ID),
            (LINK, LINK_AB),
            (USER, ALICE),
        ],
    )
    @scenario
    async def test_by_guid(self, object_type: ObjectType, guid: Guid) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, object_type, guid) == OK
            assert found(served.world, object_type, guid) is None
            assert await delete(caller, object_type, guid) == NOT_FOUND

    @pytest.mark.req("MQDS-3.1.6.13-05", "MQDS-3.1.6.13-01")
    @pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE, CN, USER, LINK])
    @scenario
    async def test_a_miss_is_a_failure(self, object_type: ObjectType) -> None:
        """Also of a link, for which the text sets success in its last step."""
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            assert await delete(caller, object_type, OTHER) == NOT_FOUND
            if object_type is not USER:
                assert await delete(caller, object_type, "nobody") == NOT_FOUND
            assert served.world.snapshot() == before

    @scenario
    async def test_another_enterprise_is_not_this_one(self) -> None:
        """Reading needs no name; deleting does."""
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, ENTERPRISE, "Other") == NOT_FOUND
            assert await delete(caller, ENTERPRISE, OTHER) == NOT_FOUND
            assert found(served.world, ENTERPRISE, ENTERPRISE_ID) is not None

    @pytest.mark.req("MQDS-3.1.4.5-05", "MQDS-3.1.4.21.1-02")
    @pytest.mark.parametrize("number", [DELETED, 9, 58])
    @scenario
    async def test_types_that_are_not_deleted(self, number: int) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, number, "C14") == INVALID
            assert await delete(caller, number, C14) == INVALID


class TestDeleteUsers:
    @pytest.mark.req("MQDS-3.1.6.13-03")
    @scenario
    async def test_by_the_digest_of_the_only_certificate(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, USER, digest(SECOND_CERTIFICATE)) == NOT_FOUND
            assert await delete(caller, USER, digest(BARE_CERTIFICATE)) == OK
            assert found(served.world, USER, ALICE) is None

    @pytest.mark.req("MQDS-3.1.6.13-03")
    @pytest.mark.parametrize(
        ("gone", "left"),
        [(BARE_CERTIFICATE, SECOND_CERTIFICATE), (SECOND_CERTIFICATE, BARE_CERTIFICATE)],
    )
    @scenario
    async def test_by_the_digest_of_one_of_two(self, gone: bytes, left: bytes) -> None:
        """That certificate goes, the user stays."""
        world = World()
        both = (BARE_CERTIFICATE, SECOND_CERTIFICATE)
        digests = guids(*map(digest, both))
        world.update_event(world.one(USER), {702: blob(certificates(*both)), 705: digests})
        async with serving(world) as served, served.caller(ADMIN) as caller:
            assert await delete(caller, USER, digest(gone)) == OK
            user = world.get(USER, ALICE)
            assert world.show(user, 705) == (digest(left),)
            assert world.show(user, 702) == certificates(left)
            assert await delete(caller, USER, digest(left)) == OK
            assert found(world, USER, ALICE) is None

    @pytest.mark.req("MQDS-3.1.6.13-03", "MQDS-3.1.4.5-05")
    @scenario
    async def test_not_by_path(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await delete(caller, USER, "alice") == INVALID


class Failing(MemoryStore):
    """A store that fails in the way it is told to."""

    error: Exception | None = None

    @contextmanager
    def read(self) -> Iterator[View]:
        if self.error is not None:
            raise self.error
        with super().read() as view:
            yield view

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        if self.error is not None:
            raise self.error
        with super().write() as transaction:
            yield transaction


@pytest.mark.req("MQDS-3.1.4-04", "MQDS-3.1.4.4-31")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("the disk is full"), HResult.MQ_ERROR_DS_ERROR),
        (RuntimeError("a mistake of ours"), HResult.MQ_ERROR),
    ],
)
@scenario
async def test_failures_are_results_not_faults(error: Exception, code: HResult) -> None:
    store = Failing()
    async with serving(store=store) as served, served.caller(ADMIN) as caller:
        store.error = error
        logging.getLogger("mqis.runtime.directory.results").setLevel(logging.CRITICAL)
        try:
            got = await create(caller, QUEUE, "C14\\new", {108: text("x")})
            results = [got.result, await delete(caller, QUEUE, "C14\\new")]
            null = VarType.NULL
            read = dscomm.GetProps(QUEUE, "C14\\orders", (101,), (null,), caller.auth, 16)
            results.append((await caller.call(dscomm.GET_PROPS, read)).result)
        finally:
            logging.getLogger("mqis.runtime.directory.results").setLevel(logging.NOTSET)
        assert results == [code, code, code]
        assert all(map(is_failure, results))
