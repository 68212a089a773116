"""S_DSLookupBegin, S_DSLookupNext, S_DSLookupEnd over a socket."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from mqis.client.authentication import Callbacks, SignatureError
from mqis.protocol.budget import Quota
from mqis.protocol.directory import signature
from mqis.protocol.directory.lookup_walk import LookupState
from mqis.protocol.rpc.faults import FaultStatus
from mqis.testing.security import SharedSecret
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.query_stubs import (
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests.protocol.directory.world import (
    ALICE,
    BILLS,
    C13,
    C14,
    C15,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    QUEUE,
    SITE_A,
    SITE_B,
    World,
    blob,
    guid,
    number,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    OK,
    SIGNATURE_SIZE,
    Caller,
    fault_of,
    scenario,
    serving,
)
from tests.waiting import DEADLINE_S

NULL = PropVariant(VarType.NULL, None)
LT, LE, GT, GE, EQ, NE = range(6)
MISMATCH = FaultStatus.CONTEXT_MISMATCH


def wanted(
    *columns: int,
    where: tuple[tuple[int, int, PropVariant], ...] | None = None,
    sort: tuple[tuple[int, int], ...] | None = None,
) -> dscomm.LookupBegin:
    """A lookup of those columns; ``where`` has (property, relation, constant)."""
    restrictions = None
    if where is not None:
        restrictions = RestrictionSet(tuple(PropertyRestriction(r, p, v) for p, r, v in where))
    keys = None if sort is None else SortSet(tuple(SortColumn(c, o) for c, o in sort))
    return dscomm.LookupBegin(None, restrictions, ColumnSet(columns), keys, ContextHandle.NULL)


async def begin(caller: Caller, request: dscomm.LookupBegin) -> dscomm.HandleGot:
    return await caller.call(dscomm.LOOKUP_BEGIN, replace(request, auth=caller.auth))


async def following(
    caller: Caller, handle: ContextHandle, size: int = 128, room: int = SIGNATURE_SIZE
) -> dscomm.LookupGot:
    request = dscomm.LookupNext(handle, size, caller.auth, room)
    return await caller.call(dscomm.LOOKUP_NEXT, request)


async def end(caller: Caller, handle: ContextHandle) -> dscomm.HandleGot:
    return await caller.call(dscomm.LOOKUP_END, dscomm.HandleGiven(handle))


async def everything(caller: Caller, request: dscomm.LookupBegin) -> list[tuple[Value, ...]]:
    """Begin, all pages, end: the rows as bare values."""
    begun = await begin(caller, request)
    assert begun.result == OK
    width, found = len(request.columns.columns or ()), []
    while values := (await following(caller, begun.handle)).values:
        bare = [variant.value for variant in values]
        found += [tuple(bare[at : at + width]) for at in range(0, len(bare), width)]
    assert (await end(caller, begun.handle)).handle == ContextHandle.NULL
    return found


def crowded(queues: int) -> World:
    """A world with that many queues more, all on C15."""
    world = World()
    for n in range(queues):
        label = text(f"label {n % 3}")
        world.create_event(
            QUEUE,
            {103: text(f"C15\\q{n:03}"), 101: guid(number(0x5000 + n)), 108: label, 105: ui4(n)},
        )
    return world


@pytest.mark.req("MQDS-3.1.6.8-02")
@pytest.mark.parametrize("size", [3, 4, 5, 6, 7, 11])
@scenario
async def test_a_page_has_whole_objects_whatever_the_buffer_holds(size: int) -> None:
    async with serving(crowded(9)) as served, served.caller() as caller:
        request = wanted(105, 103, 101, where=((108, EQ, text("label 1")),), sort=((105, 0),))
        begun = await begin(caller, request)
        found: list[Value] = []
        while values := (await following(caller, begun.handle, size)).values:
            assert len(values) % 3 == 0
            assert len(values) <= size
            found += [variant.value for variant in values]
        assert found[1::3] == ["C15\\q001", "C15\\q004", "C15\\q007"]
        await end(caller, begun.handle)


class TestResults:
    @pytest.mark.req("MQDS-3.1.4.17-03", "MQDS-2.2-01", "MQDS-3.1.6.7-02")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_columns_restrictions_and_order(self, transfer: SyntaxId) -> None:
        request = wanted(
            105,
            103,
            105,
            where=((108, EQ, text("LABEL 1")), (105, LT, ui4(8))),
            sort=((108, 0), (105, 1)),
        )
        async with (
            serving(crowded(9)) as served,
            served.caller(transfers=[transfer]) as caller,
        ):
            rows = await everything(caller, request)
        assert rows == [
            (7, "C15\\q007", 7),
            (4, "C15\\q004", 4),
            (1, "C15\\q001", 1),
        ]

    @pytest.mark.req("MQDS-3.1.4.17-03", "MQDS-2.2.15-01", "MQDS-3.1.1.5-02", "MQDS-3.1.1.13-01")
    @scenario
    async def test_the_first_key_decides_and_the_second_among_equals(self) -> None:
        """The pages follow each other in the order of the keys, columns in that of the client."""
        request = wanted(
            105, 108, 105, sort=((108, 1), (105, 0)), where=((105, NE, ui4(0xFFFFFFFF)),)
        )
        async with serving(crowded(5)) as served, served.caller() as caller:
            begun = await begin(caller, request)
            pages = [(await following(caller, begun.handle, 6)).values for _ in range(4)]
            await end(caller, begun.handle)
        assert [[variant.value for variant in page] for page in pages] == [
            [2, "label 2", 2, 1, "label 1", 1],
            [4, "label 1", 4, 0, "label 0", 0],
            [3, "label 0", 3],
            [],
        ]

    @pytest.mark.req("MQDS-3.1.4.17-03", "MQDS-2.2.14-01")
    @pytest.mark.parametrize(
        ("sort", "order"),
        [
            (((108, 0), (105, 1)), [3, 0, 4, 1, 5, 2]),
            (((108, 1), (105, 0)), [2, 5, 1, 4, 0, 3]),
            (((105, 1), (108, 0)), [5, 4, 3, 2, 1, 0]),
        ],
    )
    @scenario
    async def test_the_first_key_decides_and_the_second_where_it_is_equal(
        self, sort: tuple[tuple[int, int], ...], order: list[int]
    ) -> None:
        """Labels 0, 1, 2, 0, 1, 2 and quotas 0 to 5: no key is constant, and none decides alone."""
        request = wanted(105, where=((108, GE, text("label")),), sort=sort)
        async with serving(crowded(6)) as served, served.caller() as caller:
            rows = await everything(caller, request)
        assert [quota for (quota,) in rows if quota in range(6)] == order

    @pytest.mark.req("MQDS-3.1.4.17-04")
    @scenario
    async def test_computed_properties_are_compared_as_they_show(self) -> None:
        """Service bits greater than 1, and the first of a list of sites."""
        world = World()
        world.update_event(world.one(MACHINE), {210: ui4(4)})
        async with serving(world) as served, served.caller() as caller:
            servers = wanted(203, where=((210, GT, ui4(1)),))
            assert await everything(caller, servers) == [("C14",)]
            members = wanted(203, where=((201, EQ, guid(SITE_B)),))
            assert await everything(caller, members) == [("C13",), ("C15",)]

    @pytest.mark.req("MQDS-3.1.4.17-05", "MQDS-3.1.1.5-02")
    @pytest.mark.parametrize("where", [None, ()])
    @scenario
    async def test_no_restriction_selects_all_in_an_order_that_stays(
        self, where: tuple[tuple[int, int, PropVariant], ...] | None
    ) -> None:
        request = wanted(101, where=where)
        async with serving(crowded(20)) as served, served.caller() as caller:
            first = await everything(caller, request)
            assert len(first) == len(set(first)) == 23
            assert await everything(caller, request) == first

    @pytest.mark.req("MQDS-3.1.4.17-02")
    @pytest.mark.parametrize("context", [None, "", "MSMQ.Site.3", "\U0001f4e8"])
    @scenario
    async def test_the_context_is_ignored(self, context: str | None) -> None:
        columns = wanted(202, where=((203, LE, text("C15")),), sort=((203, 1),))
        request = replace(columns, context=context)
        async with serving() as served, served.caller() as caller:
            assert await everything(caller, request) == [(C15,), (C14,), (C13,)]
            fewer = replace(wanted(202, where=((203, LT, text("C14")),)), context=context)
            assert await everything(caller, fewer) == [(C13,)]

    @pytest.mark.req("MQDS-3.1.4.17-02")
    @pytest.mark.parametrize("units", [b"", b"x\0", b"x\0y\0", b"x\0\0\0y\0\0\0", b"\x3d\xd8"])
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_a_context_without_its_zero_is_ignored(
        self, units: bytes, transfer: SyntaxId
    ) -> None:
        """No character, no zero at the end, a zero in between, half a surrogate pair."""
        syntax, form = (Syntax.NDR20, "<4I") if transfer == NDR20 else (Syntax.NDR64, "<4Q")
        size = struct.calcsize(form)
        async with serving() as served, served.caller(transfers=[transfer]) as caller:
            request = replace(wanted(202), context="", auth=caller.auth)
            stub = dscomm.LOOKUP_BEGIN.request.encode(request, syntax)
            assert struct.unpack_from(form, stub) == (0x20000, 1, 0, 1)
            count = len(units) // 2
            rest = stub[size + 2 :].lstrip(b"\0")  # begins with pRestriction, which is null
            head = struct.pack(form, 0x20000, count, 0, count) + units
            head += bytes(-len(head) % (size // 4) + size // 4)
            answer = await caller.rpc.call(
                dscomm.SYNTAX, dscomm.LOOKUP_BEGIN.opnum, head + rest, timeout_s=DEADLINE_S
            )
            begun = dscomm.LOOKUP_BEGIN.response.decode(answer.stub, syntax)
            assert begun.result == OK
            found = (await following(caller, begun.handle)).values
            assert found == (guid(C13), guid(C14), guid(C15))

    @pytest.mark.departs("MQDS-3.1.6.7-03")
    @pytest.mark.req("MQDS-3.1.6.7-01")
    @pytest.mark.parametrize(
        ("column", "found"),
        [(101, ORDERS), (202, C14), (302, SITE_A), (503, NET), (706, ALICE), (806, LINK_AB)],
    )
    @scenario
    async def test_every_type_is_found_by_its_columns(self, column: int, found: object) -> None:
        async with serving() as served, served.caller() as caller:
            assert (found,) in await everything(caller, wanted(column))

    @pytest.mark.req("MQDS-3.1.4.18-05")
    @scenario
    async def test_values_that_are_not_there_keep_their_place(self) -> None:
        async with serving(World(described=False)) as served, served.caller() as caller:
            begun = await begin(caller, wanted(203, 241, 202, sort=((203, 0),)))
            got = await following(caller, begun.handle)
            await end(caller, begun.handle)
        rows = ((text("C13"), NULL, guid(C13)), (text("C14"), NULL, guid(C14)))
        assert got.values == (*rows[0], *rows[1], text("C15"), NULL, guid(C15))


class TestPages:
    @pytest.mark.parametrize("size", [2, 3, 5, 128])
    @scenario
    async def test_whole_objects_as_many_as_fit(self, size: int) -> None:
        async with serving(crowded(9)) as served, served.caller() as caller:
            begun = await begin(caller, wanted(101, 103))
            counts, seen = [], set[tuple[PropVariant, ...]]()
            while values := (await following(caller, begun.handle, size)).values:
                counts.append(len(values))
                seen |= {values[at : at + 2] for at in range(0, len(values), 2)}
            assert sum(counts) == 24
            assert len(seen) == 12
            assert (guid(BILLS), text("C13\\bills")) in seen
            assert (guid(number(0x5008)), text("C15\\q008")) in seen
            assert all(count % 2 == 0 and count <= size for count in counts)
            assert set(counts[:-1]) <= {size // 2 * 2}
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.4.18-02")
    @scenario
    async def test_too_little_room_for_one_object(self) -> None:
        """Success with nothing in it, and nothing is lost."""
        async with serving() as served, served.caller() as caller:
            begun = await begin(caller, wanted(203, 202, sort=((203, 0),)))
            for size in (0, 1):
                got = await following(caller, begun.handle, size)
                assert (got.result, got.values) == (OK, ())
            got = await following(caller, begun.handle, 2)
            assert got.values == (text("C13"), guid(C13))
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.4.18-04", "MQDS-3.1.6.8-01")
    @scenario
    async def test_the_end_again_and_again(self) -> None:
        async with serving() as served, served.caller() as caller:
            begun = await begin(caller, wanted(203))
            found = (await following(caller, begun.handle)).values
            assert found == (text("C13"), text("C14"), text("C15"))
            for _ in range(3):
                got = await following(caller, begun.handle)
                assert (got.result, got.values) == (OK, ())
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.6.7-06", "MQDS-3.1.1.5-02")
    @scenario
    async def test_an_open_lookup_does_not_see_changes(self) -> None:
        async with serving(crowded(4)) as served, served.caller(ADMIN) as caller:
            begun = await begin(caller, wanted(103, 108, sort=((103, 0),)))
            first = (await following(caller, begun.handle, 2)).values
            assert first == (text("C13\\bills"), text("Bills"))
            relabel = dscomm.SetProps(QUEUE, "C15\\q001", (108,), (text("new"),))
            assert (await caller.call(dscomm.SET_PROPS, relabel)).result == OK
            gone = dscomm.ByPath(QUEUE, "C15\\q002")
            assert (await caller.call(dscomm.DELETE_OBJECT, gone)).result == OK
            rest = (await following(caller, begun.handle)).values
            assert [v.value for v in rest[::2]] == [
                "C14\\orders",
                *(f"C15\\q00{n}" for n in range(4)),
                "C15\\stock",
            ]
            assert rest[5] == text("label 1")
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.4.19-01", "MQDS-3.1.4.19-02", "MQDS-3.1.6.9-01")
    @scenario
    async def test_the_end_frees_the_rows_and_the_handle(self) -> None:
        async with serving(crowded(9)) as served, served.caller() as caller:
            memory = served.context.budgets.memory
            before = memory.used
            begun = await begin(caller, wanted(101))
            assert memory.used - before > 10 * 16
            got = await end(caller, begun.handle)
            assert (got.result, got.handle) == (OK, ContextHandle.NULL)
            assert memory.used == before
            assert await fault_of(end(caller, begun.handle)) == MISMATCH
            assert await fault_of(following(caller, begun.handle)) == MISMATCH

    @pytest.mark.req("MQDS-2.2.6-01")
    @scenario
    async def test_two_lookups_at_once(self) -> None:
        async with serving(crowded(3)) as served, served.caller() as caller:
            queues = await begin(caller, wanted(103, sort=((103, 0),)))
            machines = await begin(caller, wanted(203, sort=((203, 0),)))
            turns = (queues.handle, machines.handle) * 2
            seen = [(await following(caller, handle, 1)).values[0].value for handle in turns]
            assert seen == ["C13\\bills", "C13", "C14\\orders", "C14"]
            await end(caller, queues.handle)
            assert (await following(caller, machines.handle)).result == OK
            await end(caller, machines.handle)


class TestRefusals:
    @pytest.mark.parametrize(
        ("request_", "code"),
        [
            (wanted(), HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS),
            (wanted(101, 999), HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS),
            (wanted(1101), HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS),
            (wanted(101, 203), HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS),
            (
                wanted(101, where=((999, EQ, ui4(1)),)),
                HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID,
            ),
            (
                wanted(101, where=((203, EQ, text("x")),)),
                HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID,
            ),
            (wanted(101, where=((105, 6, ui4(1)),)), HResult.MQ_ERROR_ILLEGAL_RELATION),
            (wanted(101, where=((105, 0x100, ui4(1)),)), HResult.MQ_ERROR_ILLEGAL_RELATION),
            (wanted(101, where=((105, EQ, text("1")),)), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
            (wanted(101, sort=((999, 0),)), HResult.MQ_ERROR_ILLEGAL_SORT_PROPID),
            (wanted(101, sort=((203, 0),)), HResult.MQ_ERROR_ILLEGAL_SORT_PROPID),
            (wanted(101, sort=((105, 0), (105, 1))), HResult.MQ_ERROR_ILLEGAL_SORT),
            pytest.param(
                wanted(101, sort=((105, 2),)),
                HResult.MQ_ERROR_ILLEGAL_SORT,
                marks=pytest.mark.req("MQDS-2.2.14-01"),
            ),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.17-06", "MQDS-3.1.4.17-07")
    @scenario
    async def test_queries_that_are_wrong_make_no_handle(
        self, request_: dscomm.LookupBegin, code: HResult
    ) -> None:
        async with serving() as served, served.caller() as caller:
            begun = await begin(caller, request_)
            assert (begun.result, begun.handle) == (code, ContextHandle.NULL)
            assert served.context.handles.count(LookupState) == 0

    @scenario
    async def test_null_columns(self) -> None:
        request = replace(wanted(101), columns=ColumnSet(None))
        async with serving() as served, served.caller() as caller:
            assert (await begin(caller, request)).result == HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS

    @scenario
    async def test_handles_of_another_kind(self) -> None:
        async with serving() as served, served.caller() as caller:
            begun = await begin(caller, wanted(203))
            assert await fault_of(end(caller, caller.auth)) == MISMATCH
            assert await fault_of(following(caller, caller.auth)) == MISMATCH
            closing = caller.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(begun.handle))
            assert await fault_of(closing) == MISMATCH
            assert await fault_of(end(caller, ContextHandle.NULL)) == FaultStatus.IN_NULL_CONTEXT
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-5.1-01")
    @scenario
    async def test_a_client_has_so_many_lookups(self) -> None:
        async with serving() as served, served.caller() as caller, served.caller() as other:
            served.context.budgets.lookups.quota = Quota(3, 9, 9, 9)
            begun = [await begin(caller, wanted(203)) for _ in range(4)]
            assert [b.result for b in begun] == [
                OK,
                OK,
                OK,
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            ]
            assert (await begin(other, wanted(203))).result == OK
            await end(caller, begun[0].handle)
            assert (await begin(caller, wanted(203))).result == OK

    @pytest.mark.req("MQDS-5.1-01")
    @scenario
    async def test_all_clients_together_have_so_much_memory(self) -> None:
        full = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
        async with serving(crowded(9)) as served, served.caller() as one, served.caller() as two:
            memory = served.context.budgets.memory
            before = memory.used
            await end(one, (await begin(one, wanted(101))).handle)
            assert memory.used == before
            each = 1024 + 10 * (
                16 + 6 + 16 + 48
            )  # ten queues: row, type and size, identifier, overhead
            room = before + 2 * each + 1024 + 600
            memory.quota = Quota(room, room, room, room)
            begun = [(await begin(c, wanted(101))) for c in (one, two, one)]
            assert [b.result for b in begun] == [OK, OK, full]
            assert (await begin(two, wanted(203))).result == OK
            await end(two, begun[1].handle)
            assert (await begin(one, wanted(101))).result == OK


class TestRundown:
    @pytest.mark.req("MQDS-3.1.6.2-01", "MQDS-3.1.1.5-01", "MQDS-2.2.6-01")
    @scenario
    async def test_a_client_that_dies_leaves_nothing(self) -> None:
        async with serving(crowded(9)) as served:
            async with served.caller() as caller:
                for _ in range(5):
                    await begin(caller, wanted(101))
                assert served.counters()["lookups"] == 5
                assert served.counters()["memory"] > 5 * 10 * 16
                caller.rpc.abort()
            assert set((await served.emptied()).values()) == {0}


class TestSignatures:
    @pytest.mark.req("MQDS-3.1.4.18-06")
    @scenario
    async def test_the_columns_repeat(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(crowded(3), gss=gss) as served,
            served.caller(callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            begun = await begin(caller, wanted(103, 105))
            got = await following(caller, begun.handle, 5)
            digest = signature.properties_digest((103, 105) * 2, got.values)
            proof.check(digest, got.signature)
            rest = await following(caller, begun.handle)
            proof.check(signature.properties_digest((103, 105) * 4, rest.values), rest.signature)
            nothing = await following(caller, begun.handle)
            proof.check(signature.properties_digest((), ()), nothing.signature)
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.4.18-07")
    @scenario
    async def test_too_small_a_buffer_costs_no_rows(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(gss=gss) as served,
            served.caller(callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            begun = await begin(caller, wanted(203, sort=((203, 0),)))
            for room in (0, 31):
                got = await following(caller, begun.handle, 1, room)
                assert got.result == HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
                assert (got.values, got.signature) == ((), bytes(room))
            got = await following(caller, begun.handle, 1, 32)
            assert (got.result, got.values, len(got.signature)) == (OK, (text("C13"),), 32)
            proof.check(signature.properties_digest((203,), got.values), got.signature)
            await end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.1.4.18-06")
    @scenario
    async def test_other_columns_or_values_were_not_signed(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        for ids, values in (
            ((301,), (text("Alpha"),)),
            ((203,), (text("C15"),)),
            ((203, 203), (text("C14"), text("C14"))),
            ((203,), (blob("C14".encode("utf-16-le") + b"\0"),)),
        ):
            async with (
                serving(gss=gss) as served,
                served.caller(callbacks=callbacks) as caller,
                caller.proven(gss, callbacks) as proof,
            ):
                begun = await begin(caller, wanted(203, sort=((203, 0),)))
                got = await following(caller, begun.handle, 1)
                with pytest.raises(SignatureError):
                    proof.check(signature.properties_digest(ids, values), got.signature)
                await end(caller, begun.handle)
