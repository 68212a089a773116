"""Open lookups whose caller loses the right to read: by permissions, groups or settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from mqis.protocol.directory import lookup_walk
from mqis.runtime.directory.readers import StoreReaders
from mqis.storage.sqlite import SqliteStore
from mqis.wire.hresult import HResult
from mqis.wire.ndr import ContextHandle
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ADMINISTRATORS
from tests.protocol.directory.world import BILLS, INHABITANTS, QUEUE, STOCK, World, blob
from tests.runtime.directory.serving import ADMIN, ALICE, BOB, OK, Caller, Served, scenario, serving
from tests.runtime.directory.test_lookups import begin, crowded, end, following, wanted

DENIED = int(HResult.MQ_ERROR_ACCESS_DENIED)
#: All queues by their paths, in this order.
QUEUES = wanted(103, sort=((103, 0),))


@asynccontextmanager
async def directory(tmp_path: Path) -> AsyncIterator[Served]:
    """A server over a store that remembers answers."""
    world = World(empty=True)
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        world.store = store  # type: ignore[assignment]
        for object_type, properties in INHABITANTS:
            world.create_event(object_type, properties)
        async with serving(world) as served:
            yield served


def only_for(served: Served, queue: object, *who: object) -> None:
    """Lets some users read a queue, and nobody else."""
    world = served.world
    sddl = "O:SYD:" + "".join(f"(A;;0xfffff;;;{each})" for each in who)
    found = world.get(QUEUE, queue)  # type: ignore[arg-type]
    world.update_event(found, {1101: blob(parse_sddl(sddl).to_bytes())})


async def opened(caller: Caller) -> ContextHandle:
    begun = await begin(caller, QUEUES)
    assert begun.result == OK
    return begun.handle


async def page(caller: Caller, handle: ContextHandle, size: int = 128) -> list[object]:
    got = await following(caller, handle, size)
    assert got.result == OK
    return [value.value for value in got.values]


@pytest.mark.req("SEC-18-05")
@pytest.mark.parametrize("remembers", [True, False])
@scenario
async def test_permissions_that_change_hold_for_the_rest_of_a_lookup(
    tmp_path: Path, remembers: bool
) -> None:
    place = directory(tmp_path) if remembers else serving()
    async with place as served, served.caller(ALICE) as alice, served.caller(BOB) as bob:
        again, first = await opened(alice), await opened(alice)
        others = await opened(bob)
        assert await page(alice, first, 1) == ["C13\\bills"]
        only_for(served, STOCK, BOB.sid)
        assert await page(alice, first) == ["C14\\orders"]
        assert await page(alice, first) == []
        assert await page(bob, others) == ["C13\\bills", "C14\\orders", "C15\\stock"]
        only_for(served, BILLS, BOB.sid)
        assert await page(alice, again, 1) == ["C14\\orders"], "what is left out fills no page"
        assert await page(alice, again, 1) == []
        for caller, handle in ((alice, first), (alice, again), (bob, others)):
            await end(caller, handle)


@pytest.mark.req("SEC-18-05")
@pytest.mark.parametrize("remembers", [True, False])
@scenario
async def test_an_object_that_is_deleted_stays_in_a_lookup_that_has_begun(
    tmp_path: Path, remembers: bool
) -> None:
    """Nobody has taken the right to it away, and a page without it would be no page of then."""
    place = directory(tmp_path) if remembers else serving()
    async with place as served, served.caller(ALICE) as alice:
        handle = await opened(alice)
        assert await page(alice, handle, 1) == ["C13\\bills"]
        served.world.delete(served.world.get(QUEUE, STOCK))
        only_for(served, BILLS, BOB.sid)
        assert await page(alice, handle) == ["C14\\orders", "C15\\stock"]
        await end(alice, handle)


@pytest.mark.req("MQDS-3.1.4.18-04")
@scenario
async def test_the_end_comes_again_where_answers_are_remembered(tmp_path: Path) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        for _ in range(3):  # the third is answered from memory
            handle = await opened(alice)
            assert await page(alice, handle) == ["C13\\bills", "C14\\orders", "C15\\stock"]
            for _ in range(3):
                assert await page(alice, handle) == []
            await end(alice, handle)


@pytest.mark.req("SEC-18-05")
@scenario
async def test_known_pages_are_not_given_to_one_who_has_lost_the_right(tmp_path: Path) -> None:
    async with directory(tmp_path) as served, served.caller(ALICE) as alice:
        lookups = [await opened(alice) for _ in range(3)]
        for handle in lookups[:2]:
            assert await page(alice, handle, 1) == ["C13\\bills"]
            assert await page(alice, handle, 1) == ["C14\\orders"]
        only_for(served, BILLS, BOB.sid)
        only_for(served, STOCK, BOB.sid)
        assert await page(alice, lookups[2], 1) == ["C14\\orders"]
        assert await page(alice, lookups[0], 1) == []
        for handle in lookups:
            await end(alice, handle)


@pytest.mark.req("SEC-18-05")
@scenario
async def test_who_is_no_administrator_any_more_reads_on_as_a_user(tmp_path: Path) -> None:
    async with directory(tmp_path) as served, served.caller(ADMIN) as admin:
        only_for(served, STOCK, ADMINISTRATORS)
        only_for(served, BILLS, BOB.sid)
        served.configure(administrators=frozenset({ADMIN.sid}))
        handle = await opened(admin)
        assert await page(admin, handle, 1) == ["C13\\bills"]
        back = await opened(admin)
        served.configure(administrators=frozenset())
        assert await page(admin, back) == ["C14\\orders", "C15\\stock"], "by its group still"
        await end(admin, handle)
        await end(admin, back)


@pytest.mark.req("SEC-18-05")
@scenario
async def test_a_lookup_over_a_domain_controller_ends_with_the_rights_of_its_caller() -> None:
    world = World()
    readers = StoreReaders(world.store)
    try:
        async with serving(world, readers=readers) as served, served.caller(ADMIN) as admin:
            handle = await opened(admin)
            assert await page(admin, handle, 1) == ["C13\\bills"]
            served.configure(administrators=frozenset())
            got = await following(admin, handle, 1)
            assert (got.result, got.values) == (DENIED, ())
            await end(admin, handle)
    finally:
        readers.close()


@scenario
async def test_a_lookup_of_many_lost_objects_ends_and_blocks_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookup_walk, "MOST_JUDGED", 5)
    async with serving(crowded(12)) as served, served.caller(ALICE) as alice:
        handle = await opened(alice)
        assert len(await page(alice, handle)) == 5, "a page is judged as far as that"
        with served.world.store.read() as view:
            queues = [queue.id for queue in view.objects(QUEUE)]
        for queue in queues:
            only_for(served, queue, BOB.sid)
        got = await following(alice, handle)
        assert (got.result, got.values) == (DENIED, ())
        assert await page(alice, handle) == [], "the lookup has ended"
        await end(alice, handle)
