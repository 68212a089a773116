"""Who has to be told of a change: the queue managers that do not stand beside the server."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.notification import (
    ChangeNotice,
    LocalQueueManager,
    Notice,
    notice_of_create,
    notice_of_update,
)
from mqis.wire.hresult import is_failure
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory.world import C14, C15, ORDERS, OTHER, QUEUE, World, text
from tests.runtime.directory.serving import ADMIN, OK, Caller, scenario, serving

HERE = LocalQueueManager("c14", C14)
ELSEWHERE = LocalQueueManager("C15", C15)


def kinds(notices: list[ChangeNotice]) -> list[tuple[Notice, str | None]]:
    return [(notice.kind, notice.obj.path) for notice in notices]


async def create_queue(caller: Caller, path: str) -> int:
    request = dscomm.CreateObject(QUEUE, path, None, (108,), (text("new"),), None)
    return (await caller.call(dscomm.CREATE_OBJECT, request)).result


@pytest.mark.req("MQDS-3.1.4.4-18", "MQDS-3.1.1.16-01")
@scenario
async def test_a_queue_of_another_computer_is_flagged_and_one_of_ours_is_not() -> None:
    async with serving() as served, served.caller(ADMIN) as caller:
        told: list[ChangeNotice] = []
        served.context.notify = told.append
        served.context.local = HERE  # names compare without regard to case
        assert await create_queue(caller, "C14\\ours") == OK
        assert told == []
        served.context.local = ELSEWHERE
        assert await create_queue(caller, "C14\\theirs") == OK
        assert kinds(told) == [(Notice.QUEUE_CREATION, "C14\\theirs")]


@scenario
async def test_nobody_is_told_of_what_was_refused() -> None:
    async with serving() as served, served.caller(ADMIN) as caller:
        told: list[ChangeNotice] = []
        served.context.notify, served.context.local = told.append, ELSEWHERE
        assert is_failure(await create_queue(caller, "C99\\nowhere"))
        assert is_failure(await create_queue(caller, "C14\\orders"))
        assert told == []


@scenario
async def test_updates_are_told_by_computer_name_and_by_identifier() -> None:
    async with serving() as served, served.caller(ADMIN) as caller:
        told: list[ChangeNotice] = []
        served.context.notify, served.context.local = told.append, ELSEWHERE
        queue = dscomm.SetPropsGuid(QUEUE, ORDERS, (108,), (text("changed"),))
        assert (await caller.call(dscomm.SET_PROPS_GUID, queue)).result == OK
        machine = dscomm.SetProps(ObjectType.MACHINE, "C14", (216,), (text("1.0"),))
        assert (await caller.call(dscomm.SET_PROPS, machine)).result == OK
        assert kinds(told) == [
            (Notice.QUEUE_UPDATE, "C14\\orders"),
            (Notice.QUEUE_MANAGER_UPDATE, "C14"),
        ]
        told.clear()
        served.context.local = HERE
        assert (await caller.call(dscomm.SET_PROPS_GUID, queue)).result == OK
        assert (await caller.call(dscomm.SET_PROPS, machine)).result == OK
        assert told == []


def test_only_queues_and_machines_concern_a_queue_manager() -> None:
    world = World()
    local = LocalQueueManager("nobody", OTHER)
    with world.store.read() as view:
        for object_type in ObjectType:
            for obj in view.objects(object_type):
                created = notice_of_create(local, obj) is not None
                updated = notice_of_update(local, obj) is not None
                assert created == (object_type is ObjectType.QUEUE)
                assert updated == (object_type in (ObjectType.QUEUE, ObjectType.MACHINE))
