"""The routes of a server: when its directory is read, and what stays if that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from threading import Event

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.protocol.queueing.manager import QueueStatistics
from mqis.protocol.replication.effects import Changed
from mqis.protocol.routing.keeper import QUERY_PERIOD_S, RETRY_S
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node import server_routes as module
from mqis.runtime.node.members import Members
from mqis.runtime.node.server_routes import ServerRouting
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.propvariant import PropVariant
from tests.runtime.node.loopback import MACHINE, QUEUE, Host, Net
from tests.waiting import DEADLINE_S, until

LINK = ObjectType.ROUTINGLINK


class Store(MemoryStore):
    """Counts readings, and fails them, or holds them up, as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.fault: Exception | None = None
        self.go = Event()
        self.go.set()

    @contextmanager
    def read(self) -> Iterator[View]:
        self.reads += 1
        assert self.go.wait(DEADLINE_S)
        if self.fault is not None:
            raise self.fault
        with super().read() as view:
            yield view


class World:
    """A PEC whose machine has the routing bit, or has not."""

    def __init__(self, bits: int = ServiceBits.PEC | ServiceBits.ROUTING) -> None:
        self.net = Net()
        self.host: Host = self.net.pec("pec1", "Delft")
        self.store = Store()
        with self.host.store.read() as old, self.store.write() as tx:
            for kind in ObjectType:
                for obj in old.objects(kind):
                    tx.insert(obj)
            for partition in old.partitions():
                tx.put_partition(partition)
        self.set_bits(bits)
        self.store.reads = 0

    def set_bits(self, bits: int) -> None:
        with self.store.write() as tx:
            machine = tx.find(MACHINE, "pec1")
            assert machine is not None
            service = bits
            new = replace(
                machine, properties=props({**machine.properties, PropId.QM_SERVICE: service})
            )
            tx.update(machine, new)

    def queue(self, path: str) -> Guid:
        with self.store.write() as tx:
            label: dict[int, PropVariant] = props({PropId.Q_LABEL: ""})
            return DirectoryEvents(tx, 0, SystemEntropy()).create(QUEUE, path, label).id

    @asynccontextmanager
    async def routing(self) -> AsyncIterator[ServerRouting]:
        made = ServerRouting(self.store, self.host.me.id, Members(self.store, {}))
        made.start(QueueStatistics())
        await asyncio.sleep(0)  # it waits now
        try:
            yield made
        finally:
            self.store.go.set()
            await made.close()


def changed(*kinds: ObjectType) -> Changed:
    return Changed(frozenset(kinds))


def test_what_concerns_routing_is_read_at_once_and_the_rest_is_not() -> None:
    async def run() -> None:
        world = World()
        async with world.routing() as routing:
            assert routing.router.forwards
            routing.handle(changed(QUEUE))
            await asyncio.sleep(0.05)
            assert world.store.reads == 1, "at the start"
            world.set_bits(ServiceBits.PEC)
            routing.handle(changed(MACHINE))
            await until(lambda: not routing.router.forwards, "the new bits")
            assert routing.keeper.snapshot.machines == {}, "nothing is kept that is not needed"
            due = routing.keeper.next_timer() - asyncio.get_running_loop().time()
            assert QUERY_PERIOD_S - 60 < due <= QUERY_PERIOD_S

    asyncio.run(run())


def test_changes_share_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.PAUSE_S == 1.0
    monkeypatch.setattr(module, "PAUSE_S", 1000.0)

    async def run() -> None:
        world = World()
        async with world.routing() as routing:
            routing.handle(changed(LINK))
            await until(lambda: world.store.reads == 2, "the first change")
            for _ in range(50):
                routing.handle(changed(LINK))
                await asyncio.sleep(0.001)
            assert world.store.reads == 2, "the pause is not over"

    asyncio.run(run())


def test_a_change_during_a_reading_is_read_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)

    async def run() -> None:
        world = World()
        async with world.routing() as routing:
            world.store.go.clear()
            routing.handle(changed(LINK))
            await until(lambda: world.store.reads == 2, "a reading that takes its time")
            routing.handle(changed(LINK))
            world.store.go.set()
            await until(lambda: world.store.reads == 3, "the reading after it")

    asyncio.run(run())


@pytest.mark.parametrize("fault", [StorageError("away"), RuntimeError("unheard of")])
def test_the_table_stays_through_errors(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)

    async def run() -> None:
        world = World()
        async with world.routing() as routing:
            before = routing.keeper.snapshot
            world.store.fault = fault
            routing.handle(changed(LINK))
            await until(lambda: routing.keeper.error, "the error")
            assert routing.keeper.snapshot is before
            assert routing.router.forwards
            due = routing.keeper.next_timer() - asyncio.get_running_loop().time()
            assert 0 < due <= RETRY_S
            world.store.fault = None
            world.set_bits(ServiceBits.PEC)
            routing.handle(changed(MACHINE))
            await until(lambda: not routing.router.forwards, "what can be read again")
            assert routing.keeper.error is None

    asyncio.run(run())


def test_closing_waits_for_a_reading() -> None:
    async def run() -> None:
        world = World()
        async with world.routing() as routing:
            world.store.go.clear()
            routing.handle(changed(LINK))
            await until(lambda: world.store.reads == 2, "a reading that takes its time")
            closing = asyncio.create_task(routing.close())
            await asyncio.sleep(0.05)
            assert not closing.done(), "the store is still read"
            world.store.go.set()
            await closing

    asyncio.run(run())


def test_public_queues_have_owners_and_none_is_read_here() -> None:
    async def run() -> None:
        world = World()
        queue = world.queue("pec1\\q")
        async with world.routing() as routing:
            assert routing.router.owner_of(queue) == world.host.me.id
            assert routing.router.owner_of(Guid(b"n" * 16)) is None
            assert not routing.router.has_queue(QueueName(QueueKind.PUBLIC, guid=queue))
            world.store.fault = StorageError("away")
            assert routing.router.owner_of(queue) is None

    asyncio.run(run())
