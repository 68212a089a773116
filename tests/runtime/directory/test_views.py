"""One view for the calls of one turn of the loop, and what it must never hide."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.runtime.directory.views import SharedViews
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from tests.builders import queue
from tests.runtime.directory.serving import scenario

QUEUE = ObjectType.QUEUE


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.db")) as opened:
        yield opened


def count(views: SharedViews) -> int:
    with views.view() as view:
        return view.count(QUEUE)


def create(store: SqliteStore, number: int) -> None:
    with store.write() as transaction:
        transaction.insert(queue(number))


def in_use(store: SqliteStore) -> bool:
    """Returns whether the only reader connection is in use."""
    return not store._readers.idle


@scenario
async def test_one_view_in_a_turn_and_another_in_the_next(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    with views.view() as first, views.view() as second:
        assert first is second
    with views.view() as third:
        assert third is first
    await asyncio.sleep(0)
    with views.view() as later:
        assert later is not first


@scenario
async def test_the_connection_goes_back_when_the_loop_turns(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    assert count(views) == 0
    assert in_use(store)
    await asyncio.sleep(0)
    assert not in_use(store)


@scenario
async def test_who_was_told_of_a_change_sees_it(store: SqliteStore) -> None:
    """Also beside calls that keep the loop busy with views of their own."""
    views, writer = SharedViews(store.read), GroupCommitWriter(store)
    busy = True

    async def others() -> None:
        while busy:
            count(views)
            await asyncio.sleep(0)

    async def client(numbers: range) -> None:
        for number in numbers:
            await writer.submit(lambda tx, number=number: tx.insert(queue(number)))  # type: ignore[misc]
            with views.view() as view:
                assert view.get(QUEUE, queue(number).id) is not None

    beside = asyncio.create_task(others())
    try:
        await asyncio.gather(*(client(range(first, first + 20)) for first in (100, 200, 300)))
    finally:
        busy = False
        await beside
        await writer.close()
    assert count(views) == 60


@scenario
async def test_a_view_held_longer_keeps_its_picture_to_itself(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    with views.view() as held:
        assert held.count(QUEUE) == 0
        create(store, 1)
        await asyncio.sleep(0)
        assert held.count(QUEUE) == 0
        assert count(views) == 1
        assert in_use(store)
    await asyncio.sleep(0)
    assert len(store._readers.idle) == 2


def test_without_a_loop_every_view_is_new(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    assert count(views) == 0
    create(store, 1)
    assert count(views) == 1
    assert not in_use(store)


@pytest.mark.parametrize("with_loop", [False, True])
@scenario
async def test_threads_have_views_of_their_own(store: SqliteStore, with_loop: bool) -> None:
    """A connection is no place for two at a time."""
    views = SharedViews(store.read)
    seen: list[View] = []

    def look() -> None:
        with views.view() as view:
            seen.append(view)

    async def look_in_a_loop() -> None:
        look()

    with views.view() as ours:
        other = Thread(target=(lambda: asyncio.run(look_in_a_loop())) if with_loop else look)
        other.start()
        other.join()  # this loop has not turned meanwhile
        look()
    assert seen[0] is not ours
    assert seen[1] is ours


@scenario
async def test_after_a_failure_the_next_call_has_a_view_of_its_own(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    seen: list[View] = []

    def fail() -> None:
        with views.view() as view:
            seen.append(view)
            raise StorageError("the disk failed")

    with pytest.raises(StorageError):
        fail()
    with views.view() as view:
        assert view is not seen[0]
        assert view.count(QUEUE) == 0


@scenario
async def test_other_errors_are_the_calls_own(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    seen: list[View] = []

    def refuse() -> None:
        with views.view() as view:
            seen.append(view)
            raise ValueError("no such property")

    with pytest.raises(ValueError, match="no such property"):
        refuse()
    with views.view() as view:
        assert view is seen[0]


# --- moments --------------------------------------------------------------------------------------


@pytest.mark.req("SEC-16-02")
@scenario
async def test_one_moment_in_a_turn_and_the_newest_in_the_next(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    first = views.moment(store)
    create(store, 1)
    assert views.moment(store) == first
    await asyncio.sleep(0)
    assert views.moment(store) == store.moment() > first


@scenario
async def test_a_moment_is_not_ahead_of_the_view_of_its_turn(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    with views.view() as view:
        create(store, 1)
        assert views.moment(store) == store.moment(view)
        assert store.moment() > store.moment(view)


@pytest.mark.req("SEC-16-02")
@scenario
async def test_who_was_told_of_a_change_has_a_moment_after_it(store: SqliteStore) -> None:
    """Also beside calls that keep the loop busy with moments of their own."""
    views, writer = SharedViews(store.read), GroupCommitWriter(store)
    busy = True

    async def others() -> None:
        while busy:
            views.moment(store)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    try:
        for number in range(20):
            before = store.moment()
            await writer.submit(lambda tx, number=number: tx.insert(queue(number)))  # type: ignore[misc]
            assert views.moment(store) > before
    finally:
        busy = False
        await beside
        await writer.close()


def test_without_a_loop_every_moment_is_the_newest(store: SqliteStore) -> None:
    views = SharedViews(store.read)
    first = views.moment(store)
    create(store, 1)
    assert views.moment(store) == store.moment() > first


@pytest.mark.parametrize("with_loop", [False, True])
@scenario
async def test_threads_have_moments_of_their_own(store: SqliteStore, with_loop: bool) -> None:
    views = SharedViews(store.read)
    seen: list[int] = []

    def look() -> None:
        seen.append(views.moment(store))

    async def look_in_a_loop() -> None:
        look()

    ours = views.moment(store)
    create(store, 1)
    other = Thread(target=(lambda: asyncio.run(look_in_a_loop())) if with_loop else look)
    other.start()
    other.join()  # this loop has not turned meanwhile
    assert seen == [store.moment()]
    assert views.moment(store) == ours < seen[0]
