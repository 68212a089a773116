"""Notifications of changes go to the queue managers that are not on the server's own machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqis.protocol.directory.change_notification import (
    ChangeNotice,
    LocalQueueManager,
    Notice,
    notice_of_create,
    notice_of_update,
)
from mqis.protocol.queueing.events import Notified, SessionClosed, SessionOpened
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.wire.guid import Guid
from mqis.wire.hresult import is_failure
from mqis.wire.mqcn import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.failing_store import FailingStore
from tests.protocol.directory.world import C14, C15, ORDERS, OTHER, QUEUE, World, text
from tests.runtime.directory.serving import ADMIN, OK, Caller, Served, scenario, serving
from tests.waiting import in_time

HERE = LocalQueueManager("c14", C14)
ELSEWHERE = LocalQueueManager("C15", C15)


def kinds(notices: list[ChangeNotice]) -> list[tuple[Notice, str | None]]:
    return [(notice.kind, notice.obj.path) for notice in notices]


async def create_queue(caller: Caller, path: str) -> int:
    request = dscomm.CreateObject(QUEUE, path, None, (108,), (text("new"),), None)
    return (await caller.call(dscomm.CREATE_OBJECT, request)).result


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


@pytest.mark.req("MQDS-3.1.6.4-03")
@scenario
async def test_nobody_is_told_of_what_was_not_committed() -> None:
    """The operation succeeds; only then the commit fails. The call fails, and nothing is sent."""
    world = World()
    store = FailingStore(world.store)
    async with serving(world, store=store) as served, served.caller(ADMIN) as caller:
        told: list[ChangeNotice] = []
        served.context.notify, served.context.local = told.append, ELSEWHERE
        queue = dscomm.SetPropsGuid(QUEUE, ORDERS, (108,), (text("changed"),))
        store.fail = True
        assert is_failure((await caller.call(dscomm.SET_PROPS_GUID, queue)).result)
        assert told == []
        store.fail = False
        assert (await caller.call(dscomm.SET_PROPS_GUID, queue)).result == OK
        assert kinds(told) == [(Notice.QUEUE_UPDATE, "C14\\orders")]
        assert set(told[0].changed) == {108, 110}  # the label, and the time of the change


@pytest.mark.req("MQDS-3.1.4.9-09", "MQDS-3.1.4.10-04", "MQDS-3.1.1.16-01")
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


@asynccontextmanager
async def queue_manager(name: str, identifier: Guid) -> AsyncIterator[tuple[QueueingEndpoint, int]]:
    """A machine's own queue manager, which hears what the directory has to say."""

    async def nowhere(machine: str) -> tuple[str, int]:
        raise OSError(f"{machine} is nowhere")

    manager = QueueingMachine(identifier, name, MessageIdCounter(0))
    async with QueueingEndpoint(manager, nowhere) as endpoint:
        yield endpoint, await endpoint.listen("127.0.0.1", 0)


async def heard(endpoint: QueueingEndpoint) -> NotificationUpdate:
    """The next notification; sessions that open are none."""
    while not isinstance(event := await in_time(endpoint.next_event()), Notified):
        assert isinstance(event, (SessionOpened, SessionClosed)), event
    [update] = ChangeNotification.from_body(event.body).updates
    return update


@asynccontextmanager
async def notifying(served: Served, port: int) -> AsyncIterator[ChangeNotifier]:
    """The server that ``ELSEWHERE`` stands beside tells C14, which listens at ``port``."""

    async def resolve(machine: str) -> tuple[str, int]:
        if machine.lower() != "c14":
            raise OSError(f"{machine} has no address")
        return "127.0.0.1", port

    notifier = ChangeNotifier(ELSEWHERE, resolve)
    served.context.notify, served.context.local = notifier.notify, ELSEWHERE
    try:
        yield notifier
    finally:
        await notifier.close()


@scenario
async def test_a_queue_manager_hears_of_its_new_queue_once() -> None:
    async with (
        queue_manager("C14", C14) as (there, port),
        serving() as served,
        notifying(served, port),
        served.caller(ADMIN) as caller,
    ):
        assert await create_queue(caller, "C14\\new") == OK
        update = await heard(there)
        assert (update.command, update.path) == (NotificationCommand.CREATE, "C14\\new")
        assert update.master == C15
        with served.context.view() as view:
            made = view.find(QUEUE, "C14\\new")
        assert made is not None
        assert dict(update.properties)[PropId.Q_INSTANCE].value == made.id
        # The next thing it hears is about the next queue.
        assert await create_queue(caller, "C14\\next") == OK
        assert (await heard(there)).path == "C14\\next"


@scenario
async def test_updates_and_deletions_are_heard_too() -> None:
    async with (
        queue_manager("C14", C14) as (there, port),
        serving() as served,
        notifying(served, port),
        served.caller(ADMIN) as caller,
    ):
        quota = PropVariant(VarType.UI4, 5)
        request = dscomm.SetProps(QUEUE, "C14\\orders", (PropId.Q_QUOTA,), (quota,))
        assert (await caller.call(dscomm.SET_PROPS, request)).result == OK
        update = await heard(there)
        assert (update.command, update.guid) == (NotificationCommand.UPDATE, ORDERS)
        assert dict(update.properties)[PropId.Q_QUOTA] == quota
        gone = dscomm.ByGuid(QUEUE, ORDERS)
        assert (await caller.call(dscomm.DELETE_OBJECT_GUID, gone)).result == OK
        update = await heard(there)
        assert (update.command, update.guid) == (NotificationCommand.DELETE, ORDERS)


@scenario
async def test_notify_delete_tells_the_owner_of_the_queue() -> None:
    async with (
        queue_manager("C14", C14) as (there, port),
        serving() as served,
        notifying(served, port),
        served.caller(ADMIN) as caller,
    ):
        asked = dscomm2.BeginDeleteNotification("C14\\orders", caller.auth)
        begun = await caller.call(dscomm2.BEGIN_DELETE_NOTIFICATION, asked)
        told = await caller.call(dscomm2.NOTIFY_DELETE, dscomm.HandleGiven(begun.handle))
        assert told.result == OK
        update = await heard(there)
        assert (update.command, update.guid) == (NotificationCommand.DELETE, ORDERS)
        await caller.call(dscomm2.END_DELETE_NOTIFICATION, dscomm.HandleGiven(begun.handle))


@scenario
async def test_who_cannot_be_told_is_counted_and_nobody_waits() -> None:
    world = World()
    async with (
        queue_manager("C14", C14) as (there, port),
        serving(world) as served,
        notifying(served, port) as notifier,
        served.caller(ADMIN) as caller,
    ):
        served.context.local = LocalQueueManager("nobody", OTHER)
        assert await create_queue(caller, "C15\\unreachable") == OK
        assert await create_queue(caller, "C14\\reachable") == OK
        assert (await heard(there)).path == "C14\\reachable"
        assert (notifier.statistics.sent, notifier.statistics.failed) == (1, 1)
