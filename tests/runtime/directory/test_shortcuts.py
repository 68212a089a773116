"""Remembered answers of the directory: nobody gets one that is old, or somebody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from mqis.client.authentication import Callbacks
from mqis.protocol.budget import Quota
from mqis.protocol.directory import read_methods
from mqis.protocol.directory.lookup_walk import LookupState
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.directory.shortcuts import MAX_REQUEST, DirectoryShortcuts
from mqis.storage.row_conversion import remember
from mqis.storage.sqlite import SqliteStore
from mqis.testing.security import SharedSecret
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ADMINISTRATORS
from tests.protocol.directory.world import INHABITANTS, ORDERS, QUEUE, World, blob, text
from tests.runtime.directory.serving import (
    ADMIN,
    ALICE,
    BOB,
    OK,
    Caller,
    Served,
    fault_of,
    scenario,
    serving,
)

NULL = VarType.NULL
#: The calls of a lookup that are never decoded.
READ_ANEW = ["lookup_next", "lookup_end"]
PATH = "C14\\orders"
DENIED, NOT_FOUND = int(HResult.MQ_ERROR_ACCESS_DENIED), int(HResult.MQDS_OBJECT_NOT_FOUND)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that had a remembered answer: the third time, for the second is remembered."""
    found: list[str] = []
    recall = DirectoryContext.recall

    def recalled(context: DirectoryContext, question: Hashable, *, stranger: bool) -> object:
        answer = recall(context, question, stranger=stranger)
        if isinstance(answer, bytes):
            found.append("get_props")
        if isinstance(answer, LookupState):
            found.append("lookup_begin")
        return answer

    monkeypatch.setattr(DirectoryContext, "recall", recalled)
    remember(1_000)  # no object that an earlier test has read
    for name in READ_ANEW:
        shortcut = getattr(DirectoryShortcuts, name)

        def watched(*given: object, name: str = name, shortcut: object = shortcut) -> object:
            answer = shortcut(*given)  # type: ignore[operator]
            if answer is not None:
                found.append(name)
            return answer

        monkeypatch.setattr(DirectoryShortcuts, name, watched)
    return found


@asynccontextmanager
async def directory(tmp_path: Path, gss: SharedSecret | None = None) -> AsyncIterator[Served]:
    world = World(empty=True)
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        world.store = store  # type: ignore[assignment]
        for object_type, properties in INHABITANTS:
            world.create_event(object_type, properties)
        async with serving(world, gss=gss) as served:
            yield served


def readable_by(served: Served, who: object) -> None:
    sddl = f"O:SYD:(A;;0xfffff;;;{who})"
    world = served.world
    world.update_event(world.one(QUEUE), {1101: blob(parse_sddl(sddl).to_bytes())})


def asked(caller: Caller, size: int = 0) -> dscomm.GetProps:
    return dscomm.GetProps(QUEUE, PATH, (108,), (NULL,), caller.auth, size)


async def read(caller: Caller) -> tuple[int, object]:
    got = await caller.call(dscomm.GET_PROPS, asked(caller))
    return got.result, got.values[0].value


async def rows(caller: Caller) -> list[object]:
    """The labels of all queues, by a whole lookup."""
    columns = ColumnSet((108,))
    begun = await caller.call(
        dscomm.LOOKUP_BEGIN, dscomm.LookupBegin(None, None, columns, None, caller.auth)
    )
    following = dscomm.LookupNext(begun.handle, 100, caller.auth, 0)
    got = await caller.call(dscomm.LOOKUP_NEXT, following)
    ended = await caller.call(dscomm.LOOKUP_END, dscomm.HandleGiven(begun.handle))
    assert (begun.result, got.result, ended.result) == (OK, OK, OK)
    return [value.value for value in got.values]


@pytest.mark.req("SEC-16-02")
@scenario
async def test_a_change_is_seen_by_the_next_call(tmp_path: Path, known: list[str]) -> None:
    async with directory(tmp_path) as served, served.caller(ADMIN) as admin:
        first = await read(admin)
        assert [await read(admin) for _ in range(2)] == [first, first]
        found = await rows(admin)
        assert [await rows(admin) for _ in range(2)] == [found, found]
        assert known == ["get_props", *READ_ANEW, *READ_ANEW, "lookup_begin", *READ_ANEW]
        world = served.world
        world.update_event(world.one(QUEUE), {108: text("new")})
        assert await read(admin) == (OK, "new")
        assert sorted(map(str, await rows(admin))) == sorted(
            "new" if label == first[1] else str(label) for label in found
        )


@pytest.mark.req("SEC-16-01")
@scenario
async def test_nobody_gets_the_answer_of_another_caller(tmp_path: Path, known: list[str]) -> None:
    async with (
        directory(tmp_path) as served,
        served.caller(ALICE) as alice,
        served.caller(BOB) as bob,
        served.caller() as stranger,
    ):
        readable_by(served, ALICE.sid)
        for _ in range(4):
            assert (await read(alice))[0] == OK
            assert (await read(bob))[0] == (await read(stranger))[0] == NOT_FOUND
            assert len(await rows(alice)) == len(await rows(bob)) + 1
        assert served.context.denials == 8
        assert known.count("get_props") == 2  # Alice's


@pytest.mark.req("SEC-16-02")
@scenario
async def test_a_right_that_is_taken_away_is_gone_at_once(tmp_path: Path, known: list[str]) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        readable_by(served, ALICE.sid)
        before = await rows(alice)
        assert [(await read(alice))[0] for _ in range(3)] == [OK, OK, OK]
        readable_by(served, BOB.sid)
        assert (await read(alice))[0] == NOT_FOUND
        assert len(await rows(alice)) == len(before) - 1
        assert known.count("get_props") == 1


@pytest.mark.req("SEC-16-02")
@scenario
async def test_other_administrators_after_a_reload(tmp_path: Path, known: list[str]) -> None:
    async with directory(tmp_path) as served, served.caller(ADMIN) as admin:
        readable_by(served, ALICE.sid)
        assert [(await read(admin))[0] for _ in range(3)] == [OK, OK, OK]
        served.configure(administrators=frozenset())
        assert (await read(admin))[0] == NOT_FOUND
        served.configure(administrators=frozenset({ADMINISTRATORS}))
        assert (await read(admin))[0] == OK
        assert known == ["get_props"]


@pytest.mark.req("SEC-16-01")
@scenario
async def test_an_auth_handle_has_to_be_open(tmp_path: Path, known: list[str]) -> None:
    async with (
        directory(tmp_path) as served,
        served.caller(ALICE) as alice,
        served.caller(ALICE) as again,
    ):
        assert [(await read(alice))[0] for _ in range(3)] == [OK, OK, OK]
        foreign = dscomm.GetProps(QUEUE, PATH, (108,), (NULL,), again.auth, 0)
        status = await fault_of(alice.call(dscomm.GET_PROPS, foreign))
        await alice.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(alice.auth))
        assert await fault_of(alice.call(dscomm.GET_PROPS, asked(alice))) == status
        assert known == ["get_props"]
        assert (await read(again))[0] == OK  # the same caller's answer, with a handle that is open
        assert known == ["get_props"] * 2


@pytest.mark.req("SEC-16-04")
@scenario
async def test_a_signature_is_made_each_time(tmp_path: Path, known: list[str]) -> None:
    """A security context numbers its messages: an answer that is sent twice would not verify."""
    gss, callbacks = SharedSecret(), Callbacks()
    async with (
        directory(tmp_path, gss) as served,
        served.caller(ALICE, callbacks=callbacks, transfers=[NDR20]) as alice,
        alice.proven(gss, callbacks),
    ):
        signatures = {
            (await alice.call(dscomm.GET_PROPS, asked(alice, 64))).signature for _ in range(3)
        }
        assert len(signatures) == 3
        assert known == []


@pytest.mark.req("SEC-16-03")
@scenario
async def test_a_known_lookup_takes_from_the_budgets(tmp_path: Path, known: list[str]) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        budgets = served.context.budgets
        begin = dscomm.LookupBegin(None, None, ColumnSet((108,)), None, alice.auth)
        asked_before = await alice.call(dscomm.LOOKUP_BEGIN, begin)
        await alice.call(dscomm.LOOKUP_END, dscomm.HandleGiven(asked_before.handle))
        known.clear()
        held, opened = [budgets.memory.used], []
        for _ in range(2):
            opened.append(await alice.call(dscomm.LOOKUP_BEGIN, begin))
            held.append(budgets.memory.used)
        assert known == ["lookup_begin"]
        assert held[2] - held[1] == held[1] - held[0] > 0
        assert budgets.lookups.used == 2
        memory = budgets.memory.used
        budgets.lookups.quota = Quota(2, 2, 2, 2)
        refused = await alice.call(dscomm.LOOKUP_BEGIN, begin)
        assert refused.result == int(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        budgets.lookups.quota = Quota(9, 9, 9, 9)
        budgets.memory.quota = Quota(memory, memory, memory, memory)
        refused = await alice.call(dscomm.LOOKUP_BEGIN, begin)
        assert refused.result == int(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        assert (budgets.lookups.used, budgets.memory.used) == (2, memory)
        for lookup in opened:
            await alice.call(dscomm.LOOKUP_END, dscomm.HandleGiven(lookup.handle))
        assert (budgets.lookups.used, budgets.memory.used) == (0, held[0])


@scenario
async def test_an_ended_lookup_leaves_the_rows_of_others(tmp_path: Path) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        found = await rows(alice)
        for _ in range(3):
            assert await rows(alice) == found


@scenario
async def test_bytes_behind_a_request_are_no_part_of_a_question(
    tmp_path: Path, known: list[str]
) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE, transfers=[NDR20]) as alice:
        stub = dscomm.GET_PROPS.request.encode(asked(alice), Syntax.NDR20)
        longer = stub + stub[-24:]  # ends as a request does
        for sent in (longer, longer, stub, stub, stub):
            answer = await alice.rpc.call(dscomm.SYNTAX, dscomm.GET_PROPS.opnum, sent)
            assert answer.stub.endswith(bytes(4))
        assert known == ["get_props"]


@scenario
async def test_long_requests_are_not_remembered(tmp_path: Path, known: list[str]) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        ids = (108,) * 128
        assert 20 * len(ids) > MAX_REQUEST
        request = dscomm.GetProps(QUEUE, PATH, ids, (NULL,) * len(ids), alice.auth, 0)
        for _ in range(2):
            assert (await alice.call(dscomm.GET_PROPS, request)).result == OK
        assert known == []


@scenario
async def test_what_is_known_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By identifier as well as by path."""
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        request = dscomm.GetPropsGuid(QUEUE, ORDERS, (108,), (NULL,), alice.auth, 0)
        first = await alice.call(dscomm.GET_PROPS_GUID, request)
        monkeypatch.setattr(read_methods, "get_properties", None)  # the service calls it by name
        assert await alice.call(dscomm.GET_PROPS_GUID, request) == first


@pytest.mark.req("SEC-17-06")
@scenario
async def test_questions_of_strangers_displace_no_answer_of_a_user(
    tmp_path: Path, known: list[str]
) -> None:
    """64 answers and objects: 24 answers of users, eight of strangers."""
    async with (
        directory(tmp_path) as served,
        served.caller(ADMIN) as admin,
        served.caller() as stranger,
    ):
        store = served.world.store
        assert isinstance(store, SqliteStore)
        store.cache_at_most(64)
        for _ in range(2):
            await read(admin)
        for number in range(1, 41):
            ids = (108,) * number
            request = dscomm.GetProps(QUEUE, PATH, ids, (NULL,) * number, stranger.auth, 0)
            for _ in range(2):
                assert (await stranger.call(dscomm.GET_PROPS, request)).result == OK
            assert len(store._cache.strangers) <= 8
        assert len(store._cache.strangers) > 0
        known.clear()
        await read(admin)
        assert known == ["get_props"]
