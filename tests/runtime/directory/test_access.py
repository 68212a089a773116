"""Every method asks first: rights, owners, administrators, anonymous callers, the audit trail."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import Operation
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid
from tests.protocol.directory.world import (
    BILLS,
    C13,
    C14,
    C15,
    ENTERPRISE,
    KEYS,
    LINK,
    LINK_AB,
    MACHINE,
    ORDERS,
    QUEUE,
    SITE,
    SITE_A,
    STOCK,
    World,
    blob,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    ALICE,
    BOB,
    HOST,
    OK,
    SIGNATURE_SIZE,
    Caller,
    initiator,
    scenario,
    serving,
)

DENIED = int(HResult.MQ_ERROR_ACCESS_DENIED)
NOT_FOUND = int(HResult.MQDS_OBJECT_NOT_FOUND)
NO_MACHINE = int(HResult.MQ_ERROR_MACHINE_NOT_FOUND)
NULL = VarType.NULL
NEW_DACL = parse_sddl("D:(A;;0x20;;;WD)").to_bytes()
NEW_OWNER = parse_sddl("O:WD").to_bytes()  # a group that every caller is in
NEW_SACL = parse_sddl("S:(AU;FA;0x10;;;WD)").to_bytes()
SIZE = SIGNATURE_SIZE

Q = TypeVar("Q")
Deed = Callable[[Caller], Awaitable[int]]


def _deed(operation: Operation[Q, Any], make: Callable[[ContextHandle], Q]) -> Deed:
    """A call that comes back with its result."""

    async def do(caller: Caller) -> int:
        result: int = (await caller.call(operation, make(caller.auth))).result
        return result

    return do


def _create(object_type: ObjectType, path: str, properties: dict[int, PropVariant]) -> Deed:
    ids, values = tuple(properties), tuple(properties.values())
    request = dscomm.CreateObject(object_type, path, None, ids, values, None)
    return _deed(dscomm.CREATE_OBJECT, lambda _auth: request)


#: (what is done, the object that decides, the right on it that it takes)
DEEDS: list[tuple[str, Deed, tuple[ObjectType, Guid], int]] = [
    (
        "S_DSCreateObject",
        _create(QUEUE, "C14\\new", {108: text("x")}),
        (MACHINE, C14),
        0x4,
    ),
    (
        "S_DSDeleteObject",
        _deed(dscomm.DELETE_OBJECT, lambda _: dscomm.ByPath(QUEUE, "C14\\orders")),
        (QUEUE, ORDERS),
        0x1_0000,
    ),
    (
        "S_DSDeleteObjectGuid",
        _deed(dscomm.DELETE_OBJECT_GUID, lambda _: dscomm.ByGuid(QUEUE, ORDERS)),
        (QUEUE, ORDERS),
        0x1_0000,
    ),
    (
        "S_DSGetProps",
        _deed(
            dscomm.GET_PROPS,
            lambda auth: dscomm.GetProps(QUEUE, "C14\\orders", (103,), (NULL,), auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x20,
    ),
    (
        "S_DSGetPropsGuid",
        _deed(
            dscomm.GET_PROPS_GUID,
            lambda auth: dscomm.GetPropsGuid(QUEUE, ORDERS, (103,), (NULL,), auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x20,
    ),
    (
        "S_DSSetProps",
        _deed(
            dscomm.SET_PROPS,
            lambda _: dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),)),
        ),
        (QUEUE, ORDERS),
        0x10,
    ),
    (
        "S_DSSetPropsGuid",
        _deed(
            dscomm.SET_PROPS_GUID,
            lambda _: dscomm.SetPropsGuid(QUEUE, ORDERS, (108,), (text("x"),)),
        ),
        (QUEUE, ORDERS),
        0x10,
    ),
    (
        "S_DSQMSetMachineProperties",
        _deed(
            dscomm.QM_SET_MACHINE_PROPERTIES,
            lambda _: dscomm.SetMachineProperties("C14", (214,), (ui4(1),), 1),
        ),
        (MACHINE, C14),
        0x10,
    ),
    (
        "S_DSGetObjectSecurity",
        _deed(
            dscomm.GET_OBJECT_SECURITY,
            lambda auth: dscomm.GetSecurity(QUEUE, "C14\\orders", 7, 999, auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x2_0000,
    ),
    (
        "S_DSGetObjectSecurityGuid",
        _deed(
            dscomm.GET_OBJECT_SECURITY_GUID,
            lambda auth: dscomm.GetSecurityGuid(QUEUE, ORDERS, 7, 999, auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x2_0000,
    ),
    (
        "S_DSQMGetObjectSecurity",
        _deed(
            dscomm.QM_GET_OBJECT_SECURITY,
            lambda auth: dscomm.GetMachineSecurity(QUEUE, ORDERS, 7, 999, 1, auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x2_0000,
    ),
    (
        "a key by S_DSGetObjectSecurity",
        _deed(
            dscomm.GET_OBJECT_SECURITY,
            lambda auth: dscomm.GetSecurity(MACHINE, "C14", 0x8000_0000, 999, auth, SIZE),
        ),
        (MACHINE, C14),
        0x20,
    ),
    (
        "S_DSSetObjectSecurity of the list",
        _deed(
            dscomm.SET_OBJECT_SECURITY,
            lambda _: dscomm.SetSecurity(QUEUE, "C14\\orders", 4, NEW_DACL),
        ),
        (QUEUE, ORDERS),
        0x4_0000,
    ),
    (
        "S_DSSetObjectSecurityGuid of the owner",
        _deed(
            dscomm.SET_OBJECT_SECURITY_GUID,
            lambda _: dscomm.SetSecurityGuid(QUEUE, ORDERS, 1, NEW_OWNER),
        ),
        (QUEUE, ORDERS),
        0x8_0000,
    ),
    (
        "S_DSGetComputerSites",
        _deed(
            dscomm2.GET_COMPUTER_SITES,
            lambda auth: dscomm2.GetComputerSites("C14", auth, SIZE),
        ),
        (MACHINE, C14),
        0x20,
    ),
    (
        "S_DSGetPropsEx of a key",
        _deed(
            dscomm2.GET_PROPS_EX,
            lambda auth: dscomm.GetProps(MACHINE, "C14", (239,), (NULL,), auth, SIZE),
        ),
        (MACHINE, C14),
        0x20,
    ),
    (
        "S_DSGetPropsGuidEx of permissions",
        _deed(
            dscomm2.GET_PROPS_GUID_EX,
            lambda auth: dscomm.GetPropsGuid(QUEUE, ORDERS, (1102,), (NULL,), auth, SIZE),
        ),
        (QUEUE, ORDERS),
        0x2_0000,
    ),
    (
        "S_DSBeginDeleteNotification",
        _deed(
            dscomm2.BEGIN_DELETE_NOTIFICATION,
            lambda auth: dscomm2.BeginDeleteNotification("C14\\orders", auth),
        ),
        (QUEUE, ORDERS),
        0x1_0000,
    ),
    (
        "S_DSCreateServersCache",
        _deed(
            dscomm.CREATE_SERVERS_CACHE,
            lambda auth: dscomm.CreateServersCache(0, None, auth, SIZE),
        ),
        (ENTERPRISE, Guid.NULL),
        0x20,
    ),
]
_PROPERTY = {QUEUE: 1101, MACHINE: 1201, SITE: 1301, ENTERPRISE: 1601}


def guarded(place: tuple[ObjectType, Guid], mask: int, who: Sid) -> World:
    """A world where ``who`` has ``mask`` on one object, and everything on the others."""
    world = World()
    world.update_event(world.one(MACHINE), {239: blob(KEYS)})
    for object_type, propid in _PROPERTY.items():
        rights = mask if object_type is place[0] else 0x000F_FFFF
        sddl = f"O:SYD:(A;;0x{rights:x};;;{who})"
        world.update_event(world.one(object_type), {propid: blob(parse_sddl(sddl).to_bytes())})
    return world


@pytest.mark.req("MQDS-2.1-08", "MQDS-3.1.4-03", "MQDS-2.1-07")
@pytest.mark.parametrize(
    ("deed", "place", "right"),
    [pytest.param(deed, place, right, id=name) for name, deed, place, right in DEEDS],
)
@scenario
async def test_each_method_takes_one_right(
    deed: Deed, place: tuple[ObjectType, Guid], right: int
) -> None:
    """Denied with all rights but that one, done with just that one, and only by its holder.

    For who may not even read the object it is not there; the enterprise is no secret.
    """
    hidden = {MACHINE: NO_MACHINE, ENTERPRISE: DENIED}.get(place[0], NOT_FOUND)
    if right != 0x4 and place[0] is MACHINE:
        hidden = NOT_FOUND
    lacking = guarded(place, 0x000F_FFFF & ~right, ALICE.sid)
    async with serving(lacking) as served, served.caller(ALICE) as alice:
        before = lacking.snapshot()
        assert await deed(alice) == (hidden if right == 0x20 else DENIED)
        assert lacking.snapshot() == before
    async with serving(guarded(place, right, ALICE.sid)) as served:
        async with served.caller(BOB) as bob, served.caller() as nobody:
            assert [await deed(bob), await deed(nobody)] == [hidden, hidden]
        async with served.caller(ALICE) as alice:
            assert await deed(alice) == OK


@pytest.mark.parametrize("deed", [pytest.param(deed, id=name) for name, deed, _, _ in DEEDS])
@scenario
async def test_administrators_may_do_all_of_it(deed: Deed) -> None:
    world = World()
    world.update_event(world.one(MACHINE), {239: blob(KEYS)})
    for object_type, propid in _PROPERTY.items():
        nobody = blob(parse_sddl("O:SYD:").to_bytes())
        world.update_event(world.one(object_type), {propid: nobody})
    async with serving(world) as served, served.caller(ADMIN) as admin:
        assert await deed(admin) == OK


@pytest.mark.req("MQDS-3.1.4.5-01", "MQDS-3.1.4.6-01")
@scenario
async def test_a_denial_leaves_an_audit_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "mqis.audit")
    async with serving() as served:
        async with served.caller(BOB) as bob, served.caller() as nobody:
            by_path, by_guid = dscomm.ByPath(QUEUE, "C14\\orders"), dscomm.ByGuid(SITE, SITE_A)
            assert (await bob.call(dscomm.DELETE_OBJECT, by_path)).result == DENIED
            assert (await nobody.call(dscomm.DELETE_OBJECT_GUID, by_guid)).result == DENIED
        with served.world.store.read() as view:
            assert view.get(QUEUE, ORDERS) is not None
            assert view.get(SITE, SITE_A) is not None
    lines = [record.getMessage() for record in caplog.records if record.name == "mqis.audit"]
    assert lines == [
        f"denied: {BOB.sid} may not delete queue C14\\orders",
        "denied: S-1-5-7 may not delete site Alpha",
    ]


@scenario
async def test_what_is_allowed_leaves_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqis.audit")
    async with serving() as served, served.caller(ADMIN) as admin:
        gone = dscomm.ByGuid(QUEUE, ORDERS)
        assert (await admin.call(dscomm.DELETE_OBJECT_GUID, gone)).result == OK
    assert [record for record in caplog.records if record.name == "mqis.audit"] == []


class TestOwners:
    @pytest.mark.req("MQDS-3.1.4.4-19", "MQDS-2.1-07")
    @scenario
    async def test_who_creates_may_do_everything_and_others_look(self) -> None:
        world = World()
        everybody = blob(parse_sddl("O:SYD:(A;;0x24;;;WD)").to_bytes())
        world.update_event(world.one(MACHINE), {1201: everybody})
        create = _create(QUEUE, "C14\\mine", {108: text("x")})
        change = dscomm.SetProps(QUEUE, "C14\\mine", (108,), (text("y"),))
        async with (
            serving(world) as served,
            served.caller(ALICE) as alice,
            served.caller(BOB) as bob,
        ):
            assert await create(alice) == OK
            assert (await bob.call(dscomm.SET_PROPS, change)).result == DENIED
            look = dscomm.GetProps(QUEUE, "C14\\mine", (108,), (NULL,), bob.auth, SIZE)
            assert (await bob.call(dscomm.GET_PROPS, look)).values == (text("x"),)
            assert (await alice.call(dscomm.SET_PROPS, change)).result == OK
            gone = dscomm.ByPath(QUEUE, "C14\\mine")
            assert (await bob.call(dscomm.DELETE_OBJECT, gone)).result == DENIED
            assert (await alice.call(dscomm.DELETE_OBJECT, gone)).result == OK

    @scenario
    async def test_audit_lists_are_for_administrators(self) -> None:
        request = dscomm.SetSecurityGuid(QUEUE, ORDERS, 8, NEW_SACL)
        world = guarded((QUEUE, ORDERS), 0x000F_FFFF, ALICE.sid)
        async with (
            serving(world) as served,
            served.caller(ALICE) as alice,
            served.caller(ADMIN) as admin,
        ):
            read = dscomm.GetSecurityGuid(QUEUE, ORDERS, 8, 999, alice.auth, SIZE)
            got = await alice.call(dscomm.GET_OBJECT_SECURITY_GUID, read)
            assert (got.result, got.descriptor) == (DENIED, bytes(999))
            call = alice.call(dscomm.SET_OBJECT_SECURITY_GUID, request)
            assert (await call).result == DENIED
            call = admin.call(dscomm.SET_OBJECT_SECURITY_GUID, request)
            assert (await call).result == OK

    @pytest.mark.req("MQDS-3.1.4.21.5-01")
    @scenario
    async def test_permissions_as_a_property_take_the_right_to_read_them(self) -> None:
        """234 is in the read table, but an object that may be read is not one to be audited."""
        world = guarded((MACHINE, C14), 0x20, ALICE.sid)
        async with (
            serving(world) as served,
            served.caller(ALICE) as alice,
            served.caller(ADMIN) as admin,
        ):
            ask = dscomm.GetProps(MACHINE, "C14", (203, 234), (NULL, NULL), alice.auth, SIZE)
            assert (await alice.call(dscomm.GET_PROPS, ask)).result == DENIED
            ask = replace(ask, auth=admin.auth)
            got = await admin.call(dscomm.GET_PROPS, ask)
            assert got.result == OK
            assert got.values[1] == world.one(MACHINE).properties[1201]
            assert await _found(alice, 202) == [C13, C14, C15]
            assert await _found(alice, 202, 234) == [C13, C15]


async def _found(caller: Caller, *columns: int) -> list[Guid]:
    """The identifiers that a lookup of these columns finds, the first of which they are."""
    request = dscomm.LookupBegin(None, None, ColumnSet(columns), None, caller.auth)
    begun = await caller.call(dscomm.LOOKUP_BEGIN, request)
    assert begun.result == OK
    following = dscomm.LookupNext(begun.handle, 128, caller.auth, SIZE)
    values = (await caller.call(dscomm.LOOKUP_NEXT, following)).values
    await caller.call(dscomm.LOOKUP_END, dscomm.HandleGiven(begun.handle))
    return [v.value for v in values[:: len(columns)] if isinstance(v.value, Guid)]


class TestLookups:
    @pytest.mark.req("MQDS-3.1.4-03")
    @scenario
    async def test_what_may_not_be_read_is_not_there(self) -> None:
        world = guarded((QUEUE, ORDERS), 0x000F_FFFF & ~0x20, ALICE.sid)
        async with (
            serving(world) as served,
            served.caller(ALICE) as alice,
            served.caller(ADMIN) as admin,
        ):
            assert await _found(alice, 101) == [BILLS, STOCK]
            assert await _found(admin, 101) == [BILLS, ORDERS, STOCK]


class TestAnonymous:
    @pytest.mark.req("MQDS-2.1-06")
    @scenario
    async def test_anybody_connects_and_reads_what_everyone_may(self) -> None:
        async with serving() as served, served.caller() as nobody:
            ask = dscomm.GetProps(QUEUE, "C14\\orders", (103,), (NULL,), nobody.auth, SIZE)
            assert (await nobody.call(dscomm.GET_PROPS, ask)).result == OK
            change = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
            assert (await nobody.call(dscomm.SET_PROPS, change)).result == DENIED

    @scenario
    async def test_everyone_need_not_include_the_anonymous(self) -> None:
        async with serving() as served, served.caller() as nobody, served.caller(BOB) as bob:
            served.configure(anonymous_in_everyone=False)
            ask = dscomm.GetProps(QUEUE, "C14\\orders", (103,), (NULL,), nobody.auth, SIZE)
            assert (await nobody.call(dscomm.GET_PROPS, ask)).result == NOT_FOUND
            ask = replace(ask, auth=bob.auth)
            assert (await bob.call(dscomm.GET_PROPS, ask)).result == OK

    @scenario
    async def test_links_are_the_enterprises(self) -> None:
        change = dscomm.SetPropsGuid(LINK, LINK_AB, (812,), (ui4(7),))
        async with serving() as served, served.caller(BOB) as bob, served.caller(ADMIN) as admin:
            ask = dscomm.GetPropsGuid(LINK, LINK_AB, (812,), (NULL,), bob.auth, SIZE)
            assert (await bob.call(dscomm.GET_PROPS_GUID, ask)).result == OK
            assert (await bob.call(dscomm.SET_PROPS_GUID, change)).result == DENIED
            assert (await admin.call(dscomm.SET_PROPS_GUID, change)).result == OK


class TestIdentity:
    @pytest.mark.req("MQDS-1.7-02", "MQDS-2.1-07")
    @pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
    @scenario
    async def test_ntlm_at_every_level_that_counts(self, level: int) -> None:
        async with serving() as served, served.caller(ADMIN, level=level) as admin:
            change = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
            assert (await admin.call(dscomm.SET_PROPS, change)).result == OK

    @pytest.mark.req("SEC-5-01")
    @pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PACKET])
    @scenario
    async def test_below_the_minimum_level_a_caller_is_anonymous(self, level: int) -> None:
        async with serving() as served, served.caller(ADMIN, level=level) as admin:
            change = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
            assert (await admin.call(dscomm.SET_PROPS, change)).result == DENIED

    @pytest.mark.req("MQDS-1.7-02")
    @scenario
    async def test_negotiate_leads_to_the_same_caller(self) -> None:
        credentials = Credentials(initiator(ADMIN), AuthType.SPNEGO, AuthLevel.PRIVACY, HOST)
        interfaces = [dscomm.SYNTAX, dscomm2.SYNTAX]
        async with (
            serving() as served,
            await RpcClient.connect(HOST, served.port, interfaces, credentials=credentials) as rpc,
        ):
            change = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
            assert (await Caller(rpc).call(dscomm.SET_PROPS, change)).result == OK

    @scenario
    async def test_administrators_are_those_of_now(self) -> None:
        """A configuration change applies at once, not with the next connection."""
        change = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
        async with serving() as served, served.caller(BOB) as bob, served.caller(ADMIN) as admin:
            for caller, result in ((bob, DENIED), (admin, OK)):
                assert (await caller.call(dscomm.SET_PROPS, change)).result == result
            served.configure(administrators=frozenset({BOB.sid}))
            for caller, result in ((bob, OK), (admin, DENIED)):
                assert (await caller.call(dscomm.SET_PROPS, change)).result == result
