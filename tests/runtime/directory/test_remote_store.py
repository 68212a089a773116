"""A directory server on PostgreSQL: its event loop reads memory, threads read the database."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from mqis.runtime.directory.readers import StoreReaders
from mqis.storage.postgres import PostgresStore
from mqis.storage.postgres_session import PostgresSession
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import ColumnSet, PropertyRestriction, RestrictionSet
from mqis.wire.propvariant import PropVariant, VarType
from tests.plugins.stores import PostgresSchema
from tests.protocol.directory.world import INHABITANTS, QUEUE, World, text
from tests.runtime.directory.serving import ALICE, OK, Caller, Served, scenario, serving
from tests.waiting import until

PATH = "C14\\orders"
LOOP = "the event loop's thread"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that have asked the database, by name."""
    asked: list[str] = []
    execute = PostgresSession._execute

    def noted(session: PostgresSession, sql: str, parameters: Sequence[object]) -> list[Any]:
        here = threading.current_thread()
        asked.append(LOOP if here is threading.main_thread() else here.name)
        return execute(session, sql, parameters)

    monkeypatch.setattr(PostgresSession, "_execute", noted)
    return asked


@asynccontextmanager
async def directory(schema: PostgresSchema) -> AsyncIterator[tuple[Served, Caller]]:
    world = World(empty=True)
    with closing(PostgresStore(schema.conninfo, claim=True, timeout_s=60)) as store:
        world.store = store  # type: ignore[assignment]
        for object_type, properties in INHABITANTS:
            world.create_event(object_type, properties)
        await until(lambda: store.moment() >= 0, "the claim is seen")
        readers = StoreReaders(store, 4)
        try:
            async with (
                serving(world, readers=readers) as served,
                served.caller(ALICE) as alice,
            ):
                yield served, alice
        finally:
            readers.close()


async def read(caller: Caller) -> object:
    request = dscomm.GetProps(QUEUE, PATH, (108,), (VarType.NULL,), caller.auth, 0)
    got = await caller.call(dscomm.GET_PROPS, request)
    assert got.result == OK
    return got.values[0].value


async def begin(caller: Caller, label: str | None) -> Any:
    restriction = None
    if label is not None:
        constant = PropVariant(VarType.LPWSTR, label)
        restriction = RestrictionSet((PropertyRestriction(4, PropId.Q_LABEL, constant),))
    columns = ColumnSet((PropId.Q_PATHNAME,))
    request = dscomm.LookupBegin(None, restriction, columns, None, caller.auth)
    begun = await caller.call(dscomm.LOOKUP_BEGIN, request)
    assert begun.result == OK
    return begun.handle


async def following(caller: Caller, handle: Any) -> list[object]:
    request = dscomm.LookupNext(handle, 100, caller.auth, 0)
    got = await caller.call(dscomm.LOOKUP_NEXT, request)
    assert got.result == OK
    return [value.value for value in got.values]


async def looked_up(caller: Caller, label: str | None) -> list[object]:
    return await following(caller, await begin(caller, label))


async def in_threads(statements: list[str], ask: Callable[[], Any]) -> object:
    """The answer to a question, for which only threads of readers asked the database."""
    statements.clear()
    found = await ask()
    readers = {name for name in statements if "watch" not in name}
    assert readers
    assert all(name.startswith("mqis-read") for name in readers)
    return found


async def from_memory(statements: list[str], ask: Callable[[], Any]) -> object:
    """The answer to a question for which nobody asked the database."""
    statements.clear()
    found = await ask()
    assert {name for name in statements if "watch" not in name} == set()
    return found


@scenario
async def test_a_read_waits_for_the_database_once(
    postgres_schema: PostgresSchema, statements: list[str]
) -> None:
    async with directory(postgres_schema) as (served, alice):
        label = await in_threads(statements, lambda: read(alice))
        for _ in range(3):
            assert await from_memory(statements, lambda: read(alice)) == label
        world = served.world
        world.update_event(world.one(QUEUE), {108: text("new")})
        assert await in_threads(statements, lambda: read(alice)) == "new"
        assert await from_memory(statements, lambda: read(alice)) == "new"


@scenario
async def test_a_lookup_waits_for_the_database_once(
    postgres_schema: PostgresSchema, statements: list[str]
) -> None:
    async with directory(postgres_schema) as (served, alice):
        world = served.world
        world.update_event(world.one(QUEUE), {108: text("here")})
        assert await in_threads(statements, lambda: looked_up(alice, "here")) == [PATH]
        for _ in range(3):
            assert await from_memory(statements, lambda: looked_up(alice, "here")) == [PATH]
        world.update_event(world.one(QUEUE), {108: text("new")})
        assert await in_threads(statements, lambda: looked_up(alice, "here")) == []


@scenario
async def test_a_long_lookup_is_remembered_when_it_is_asked_for_again(
    postgres_schema: PostgresSchema, statements: list[str]
) -> None:
    async with directory(postgres_schema) as (_, alice):
        found = [
            await in_threads(statements, lambda: looked_up(alice, None)),
            await in_threads(statements, lambda: looked_up(alice, None)),
            await from_memory(statements, lambda: looked_up(alice, None)),
        ]
        assert found[1:] == found[:-1]


@scenario
async def test_rights_are_judged_again_in_a_thread(
    postgres_schema: PostgresSchema, statements: list[str]
) -> None:
    """A change after a lookup has begun: what was readable then may not be readable now."""
    async with directory(postgres_schema) as (served, alice):
        world = served.world
        world.update_event(world.one(QUEUE), {108: text("here")})
        handle = await begin(alice, "here")
        world.update_event(world.one(QUEUE), {108: text("another")})
        found = await in_threads(statements, lambda: following(alice, handle))
        assert found == [PATH]
