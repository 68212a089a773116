"""S_DSGetProps, S_DSSetProps and their kin, S_DSQMSetMachineProperties, over a socket."""

from __future__ import annotations

import pytest

from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests.protocol.directory.world import (
    ALICE,
    ALICE_SID,
    BARE_CERTIFICATE,
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
    ui1,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    NOW,
    OK,
    SIGNATURE_SIZE,
    Caller,
    scenario,
    serving,
)
from tests.waiting import DEADLINE_S
from tests.wire.ndr_judge.corpus import BY_NAME
from tests.wire.ndr_judge.stub import encode
from tests.wire.ndr_judge.variant import blank

NULL = PropVariant(VarType.NULL, None)
LINK_PATH = SITE_A.big_endian.hex() + SITE_B.big_endian.hex()
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
ILLEGAL = HResult.MQ_ERROR_ILLEGAL_PROPID
NO_VALUE = HResult.E_ADS_PROPERTY_NOT_FOUND


async def get(
    caller: Caller,
    object_type: int,
    target: str | Guid | None,
    ids: tuple[int, ...],
    given: tuple[VarType, ...] | None = None,
) -> dscomm.PropsGot:
    types = given or (VarType.NULL,) * len(ids)
    if isinstance(target, str):
        by_path = dscomm.GetProps(object_type, target, ids, types, caller.auth, SIGNATURE_SIZE)
        return await caller.call(dscomm.GET_PROPS, by_path)
    by_guid = dscomm.GetPropsGuid(object_type, target, ids, types, caller.auth, SIGNATURE_SIZE)
    return await caller.call(dscomm.GET_PROPS_GUID, by_guid)


async def put(
    caller: Caller, object_type: int, target: str | Guid, change: dict[int, PropVariant]
) -> int:
    ids, values = tuple(change), tuple(change.values())
    if isinstance(target, str):
        by_path = dscomm.SetProps(object_type, target, ids, values)
        return (await caller.call(dscomm.SET_PROPS, by_path)).result
    by_guid = dscomm.SetPropsGuid(object_type, target, ids, values)
    return (await caller.call(dscomm.SET_PROPS_GUID, by_guid)).result


#: Of each type: path, GUID, and what two of its properties show.
KNOWN: dict[ObjectType, tuple[str, Guid, dict[int, Value]]] = {
    QUEUE: ("C14\\orders", ORDERS, {101: ORDERS, 115: C14}),
    MACHINE: ("C14", C14, {203: "C14", 201: SITE_A}),
    SITE: ("Alpha", SITE_A, {301: "Alpha", 304: "PSC1"}),
    CN: ("Net", NET, {502: "Net", 503: NET}),
    ENTERPRISE: ("Corp", ENTERPRISE_ID, {601: "Corp", 604: "PEC0"}),
    LINK: (LINK_PATH, LINK_AB, {806: LINK_AB, 803: 5}),
}


class TestGet:
    @pytest.mark.req("MQDS-3.1.4.7-06", "MQDS-3.1.4.7-07", "MQDS-3.1.4.7-09", "MQDS-3-01")
    @pytest.mark.parametrize("object_type", list(KNOWN))
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_by_path(self, object_type: ObjectType, transfer: SyntaxId) -> None:
        path, _, shown = KNOWN[object_type]
        async with serving() as served, served.caller(transfers=[transfer]) as caller:
            got = await get(caller, object_type, path, tuple(shown))
        assert (got.result, [v.value for v in got.values]) == (OK, list(shown.values()))

    @pytest.mark.req("MQDS-3.1.4.8-01", "MQDS-2.2-01")
    @pytest.mark.parametrize("object_type", list(KNOWN))
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_by_guid(self, object_type: ObjectType, transfer: SyntaxId) -> None:
        _, identifier, shown = KNOWN[object_type]
        async with serving() as served, served.caller(transfers=[transfer]) as caller:
            got = await get(caller, object_type, identifier, tuple(shown))
        assert (got.result, [v.value for v in got.values]) == (OK, list(shown.values()))

    @pytest.mark.req("MQDS-3.1.4.8-01")
    @scenario
    async def test_users_are_read_by_guid_alone(self) -> None:
        async with serving() as served, served.caller() as caller:
            got = await get(caller, USER, ALICE, (701, 706))
            assert got.values == (blob(ALICE_SID), guid(ALICE))
            assert (await get(caller, USER, "alice", (701,))).result == INVALID

    @pytest.mark.req("MQDS-3.1.4.8-02")
    @scenario
    async def test_a_null_guid_pointer_names_nothing_but_the_enterprise(self) -> None:
        async with serving() as served, served.caller() as caller:
            for object_type in (QUEUE, MACHINE, SITE, CN, USER, LINK):
                identifier = {QUEUE: 101, MACHINE: 202, SITE: 302, CN: 503, USER: 706, LINK: 806}
                ids = (identifier[object_type],)
                assert (await get(caller, object_type, None, ids)).result == INVALID
            got = await get(caller, ENTERPRISE, None, (609,))
            assert (got.result, got.values) == (OK, (guid(ENTERPRISE_ID),))

    @pytest.mark.req("MQDS-3.1.4.7-05", "MQDS-3.1.4.7-07")
    @scenario
    async def test_the_types_that_are_asked_for(self) -> None:
        """VT_NULL, or exactly the property's type; the answer has that type."""
        async with serving() as served, served.caller() as caller:
            for given in (VarType.NULL, VarType.LPWSTR):
                got = await get(caller, MACHINE, "C14", (203,), (given,))
                assert (got.result, got.values) == (OK, (text("C14"),))
            for given in (VarType.UI4, VarType.EMPTY, VarType.BLOB):
                got = await get(caller, MACHINE, C14, (203,), (given,))
                assert got.result == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT
            got = await get(caller, MACHINE, "C14", (202, 203), (VarType.NULL, VarType.UI4))
            assert got.result == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT
            assert got.values == (NULL, NULL)  # nothing was read

    @pytest.mark.req("MQDS-3.1.4.7-05")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_only_the_type_counts_and_a_null_pointer_has_one(
        self, transfer: SyntaxId
    ) -> None:
        """VT_LPWSTR or VT_CLSID without a value is a null pointer; an old value does not matter."""
        wide = transfer == NDR64
        async with serving() as served, served.caller(transfers=[transfer]) as caller:
            for propid, vt, value, right in (
                (203, VarType.CLSID, None, False),
                (202, VarType.LPWSTR, None, False),
                (214, VarType.LPWSTR, None, False),
                (203, VarType.LPWSTR, None, True),
                (203, VarType.LPWSTR, "old value", True),
                (202, VarType.CLSID, str(ORDERS), True),
            ):
                asked = {"cp": 1, "aProp": [propid], "pwcsPathName": "C14", "pGuid": str(C14)}
                asked |= {"dwObjectType": 2, "apVar": [{**blank(vt), "_varUnion": value}]}
                asked |= {"phServerAuth": str(caller.auth.uuid), "pdwServerSignatureSize": 256}
                for operation in (dscomm.GET_PROPS, dscomm.GET_PROPS_GUID):
                    stub = encode(BY_NAME[operation.name].request, asked, wide)
                    answer = await caller.rpc.call(
                        dscomm.SYNTAX, operation.opnum, stub, timeout_s=DEADLINE_S
                    )
                    got = operation.response.decode(
                        answer.stub, Syntax.NDR64 if wide else Syntax.NDR20, given={"cp": 1}
                    )
                    assert got.result == (OK if right else HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT)

    @pytest.mark.parametrize(
        ("object_type", "ids", "code"),
        [
            pytest.param(QUEUE, (101, 203), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.7-03")),
            pytest.param(MACHINE, (101,), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.7-03")),
            # In the range of the type, and nothing is defined there.
            pytest.param(QUEUE, (120,), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.7-03")),
            pytest.param(QUEUE, (0xFFFFFFFF,), ILLEGAL),
            # Private: the named code, although the range test would come first.
            pytest.param(QUEUE, (1101,), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.7-04")),
            pytest.param(MACHINE, (1202,), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.7-04")),
            pytest.param(QUEUE, (1102,), ILLEGAL, marks=pytest.mark.req("MQDS-3.1.4.21.5-01")),
            # Of the type, but in no read table.
            pytest.param(
                QUEUE, (117,), NO_VALUE, marks=pytest.mark.req("MQDS-3.1.4.7-08", "MQDS-3.1.4.7-07")
            ),
            # In the table, and this object has no value.
            pytest.param(MACHINE, (241,), NO_VALUE, marks=pytest.mark.req("MQDS-3.1.4.7-08")),
        ],
    )
    @scenario
    async def test_identifiers_that_cannot_be_read(
        self, object_type: ObjectType, ids: tuple[int, ...], code: HResult
    ) -> None:
        path, identifier, _ = KNOWN[object_type]
        bare = World(described=False)
        async with serving(bare) as served, served.caller(ADMIN) as caller:
            for target in (path, identifier):
                assert (await get(caller, object_type, target, ids)).result == code

    @pytest.mark.departs("MQDS-3.1.6.14-01")
    @pytest.mark.req("MQDS-3.1.4.7-06", "MQDS-3.1.4.7-08")
    @scenario
    async def test_objects_that_are_not_there(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert (await get(caller, MACHINE, "C99", (203,))).result == NOT_FOUND
            assert (await get(caller, MACHINE, OTHER, (203,))).result == NOT_FOUND
            assert (await get(caller, QUEUE, C14, (103,))).result == NOT_FOUND

    @pytest.mark.req("MQDS-3.1.4.7-09", "MQDS-3.1.4.21.1-02", "MQDS-2.2.8-01")
    @pytest.mark.parametrize("number", [DELETED, 9, 58])
    @scenario
    async def test_types_that_cannot_be_read(self, number: int) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            for target in ("C14", C14):
                assert (await get(caller, number, target, (401,))).result == INVALID

    @pytest.mark.req("MQDS-1.7-03")
    @scenario
    async def test_text_travels_as_it_is(self) -> None:
        label = "Überfällig \U0001f4e8 \ud83d İI ß"  # a lone surrogate among it
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, QUEUE, ORDERS, {108: text(label)}) == OK
            assert (await get(caller, QUEUE, ORDERS, (108,))).values == (text(label),)


#: Of each type: a change that clients may make.
CHANGES: dict[ObjectType, dict[int, PropVariant]] = {
    QUEUE: {108: text("new"), 105: ui4(7)},
    MACHINE: {214: ui4(7), 216: text("new")},
    SITE: {305: PropVariant(VarType.UI2, 7)},
    CN: {501: ui1(3)},
    ENTERPRISE: {616: ui4(7)},
}
BY_GUID: dict[ObjectType, dict[int, PropVariant]] = {
    **CHANGES,
    USER: {
        702: blob(certificates(SECOND_CERTIFICATE)),
        705: guids(digest(SECOND_CERTIFICATE)),
    },
    LINK: {803: ui4(9)},
}


def _changed(world: World, object_type: ObjectType, change: dict[int, PropVariant]) -> bool:
    obj = world.one(object_type)
    return all(world.show(obj, propid) == v.value for propid, v in change.items())


class TestSet:
    @pytest.mark.req("MQDS-3.1.4.9-05", "MQDS-3.1.4.9-07")
    @pytest.mark.parametrize("object_type", list(CHANGES))
    @scenario
    async def test_by_path(self, object_type: ObjectType) -> None:
        change = CHANGES[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, object_type, KNOWN[object_type][0], change) == OK
            assert _changed(served.world, object_type, change)

    @pytest.mark.req("MQDS-3.1.4.10-01", "MQDS-3.1.4.10-02")
    @pytest.mark.parametrize("object_type", list(BY_GUID))
    @scenario
    async def test_by_guid(self, object_type: ObjectType) -> None:
        """Links and networks too, which 3.1.6.14 forgets."""
        change = BY_GUID[object_type]
        async with serving() as served, served.caller(ADMIN) as caller:
            obj = served.world.one(object_type)
            assert await put(caller, object_type, obj.id, change) == OK
            assert _changed(served.world, object_type, change)

    @pytest.mark.req("MQDS-3.1.4.9-02")
    @pytest.mark.parametrize(
        ("number", "path"),
        [(USER, "alice"), (LINK, LINK_PATH), (DELETED, "x"), (9, "x"), (58, "x")],
    )
    @scenario
    async def test_types_that_have_no_path(self, number: int, path: str) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            assert await put(caller, number, path, {812: ui4(9)}) == INVALID
            assert served.world.snapshot() == before

    @pytest.mark.req("MQDS-3.1.4.10-01")
    @pytest.mark.parametrize("number", [DELETED, 9, 58])
    @scenario
    async def test_types_that_cannot_be_set_at_all(self, number: int) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, number, ORDERS, {401: ui4(9)}) == INVALID

    @pytest.mark.req("MQDS-3.1.4.9-05")
    @scenario
    async def test_objects_that_are_not_there(self) -> None:
        """Told at once, not at the commit."""
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, QUEUE, "C14\\nothing", {108: text("x")}) == NOT_FOUND
            assert await put(caller, QUEUE, OTHER, {108: text("x")}) == NOT_FOUND

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            pytest.param(
                {108: text("x"), 1101: blob(b"")},
                ILLEGAL,
                marks=pytest.mark.req("MQDS-3.1.4.9-10"),
            ),
            pytest.param({203: text("x")}, ILLEGAL),
            pytest.param({108: ui4(1)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
            pytest.param(
                {108: text("x"), 101: guid(OTHER)},
                HResult.MQ_ERROR_PROPERTY_NOTALLOWED,
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-10"),
            ),
            pytest.param({110: PropVariant(VarType.I4, 1)}, HResult.MQ_ERROR_PROPERTY_NOTALLOWED),
            pytest.param(
                {105: ui4(1), 108: text("x" * 125)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
            ),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.9-07", "MQDS-3.1.6.15-01")
    @scenario
    async def test_nothing_changes_unless_all_does(
        self, change: dict[int, PropVariant], code: HResult
    ) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            for target in ("C14\\orders", ORDERS):
                assert await put(caller, QUEUE, target, change) == code
            assert served.world.snapshot() == before

    @scenario
    async def test_a_property_that_stands_twice(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            request = dscomm.SetPropsGuid(QUEUE, ORDERS, (108, 108), (text("a"), text("b")))
            assert (await caller.call(dscomm.SET_PROPS_GUID, request)).result == INVALID

    @pytest.mark.req("MQDS-3.1.4.21.8.2-15")
    @pytest.mark.parametrize("change", [{701: blob(ALICE_SID)}, {706: guid(OTHER)}])
    @scenario
    async def test_a_user_stays_who_it_is(self, change: dict[int, PropVariant]) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            code = HResult.MQ_ERROR_PROPERTY_NOTALLOWED
            assert await put(caller, USER, ALICE, change) == code
            more = {702: blob(BARE_CERTIFICATE), 705: guids(digest(BARE_CERTIFICATE))}
            assert await put(caller, USER, ALICE, more) == OK


class TestMachineProperties:
    """S_DSQMSetMachineProperties, which no challenge precedes here."""

    async def _put(self, caller: Caller, path: str, change: dict[int, PropVariant]) -> int:
        request = dscomm.SetMachineProperties(path, tuple(change), tuple(change.values()), 5)
        return (await caller.call(dscomm.QM_SET_MACHINE_PROPERTIES, request)).result

    @pytest.mark.req("MQDS-3.1.4.16-06")
    @scenario
    async def test_the_update_table_is_applied(self) -> None:
        """Not the read table, which the text names: a setter changes the object."""
        async with serving() as served, served.caller(ADMIN) as caller:
            change = {214: ui4(12), 216: text("NT")}
            assert await self._put(caller, "C14", change) == OK
            machine = served.world.one(MACHINE)
            assert (served.world.show(machine, 214), served.world.show(machine, 216)) == (12, "NT")
            assert served.world.show(machine, 218) == NOW

    @pytest.mark.req("MQDS-3.1.4.16-04", "MQDS-3.1.4.21.8.2-03")
    @pytest.mark.parametrize(
        ("path", "change", "code"),
        [
            ("C14", {108: text("x")}, ILLEGAL),
            ("C14", {1203: blob(b"")}, ILLEGAL),
            ("C14", {218: PropVariant(VarType.I4, 1)}, HResult.MQ_ERROR_PROPERTY_NOTALLOWED),
            ("C14", {214: text("x")}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
            ("C99", {214: ui4(1)}, NOT_FOUND),
        ],
    )
    @scenario
    async def test_refusals(self, path: str, change: dict[int, PropVariant], code: HResult) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            assert await self._put(caller, path, change) == code
            assert served.world.snapshot() == before


class TestTables:
    """Rows of the update tables, as a client meets them: applied, ignored, refused."""

    @pytest.mark.parametrize(
        ("object_type", "change", "applied"),
        [
            pytest.param(
                MACHINE,
                {233: text("x"), 214: ui4(3)},
                {214: 3},
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-03"),
            ),
            pytest.param(
                QUEUE,
                {103: text("C14\\other"), 105: ui4(3)},
                {103: "C14\\orders", 105: 3},
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-10"),
            ),
            pytest.param(
                SITE,
                {
                    303: guids(C14),
                    304: text("PSC9"),
                    305: PropVariant(VarType.UI2, 3),
                    306: PropVariant(VarType.UI2, 4),
                    310: PropVariant(VarType.UI2, 1),
                    311: ui1(1),
                    312: ui1(1),
                },
                {303: (C14,), 304: "PSC9", 305: 3, 306: 4, 310: 1, 311: 1, 312: 0},
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-12"),
            ),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.9-06")
    @scenario
    async def test_applied_and_ignored(
        self, object_type: ObjectType, change: dict[int, PropVariant], applied: dict[int, Value]
    ) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, object_type, KNOWN[object_type][0], change) == OK
            obj = served.world.one(object_type)
            assert {p: served.world.show(obj, p) for p in applied} == applied

    @pytest.mark.parametrize(
        ("object_type", "change"),
        [
            pytest.param(
                MACHINE,
                {218: PropVariant(VarType.I4, 1)},
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-03"),
            ),
            pytest.param(QUEUE, {101: guid(OTHER)}, marks=pytest.mark.req("MQDS-3.1.4.21.8.2-10")),
            pytest.param(
                QUEUE,
                {109: PropVariant(VarType.I4, 1)},
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-10"),
            ),
            pytest.param(SITE, {301: text("Gamma")}, marks=pytest.mark.req("MQDS-3.1.4.21.8.2-12")),
            pytest.param(SITE, {302: guid(OTHER)}, marks=pytest.mark.req("MQDS-3.1.4.21.8.2-12")),
        ],
    )
    @scenario
    async def test_refused(self, object_type: ObjectType, change: dict[int, PropVariant]) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            code = await put(caller, object_type, KNOWN[object_type][0], change)
            assert code == HResult.MQ_ERROR_PROPERTY_NOTALLOWED
            assert served.world.snapshot() == before
