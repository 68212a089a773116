"""Routing servers on loopback sockets."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TypeVar

from mqis.protocol.queueing.events import Arrived, Nacked, Relayed
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from tests.protocol.routing.worlds import World, called, guid
from tests.waiting import run

HOST = "127.0.0.1"
#: Soon sure that a gate is gone: only for the test in which one goes. On a busy machine these
#: give up a gate that is merely slow, and the messages overtake each other on two ways.
HASTY = QueueingLimits(retry_s=0.05, retry_max_s=0.2, ack_timeout_ms=200, min_ack_timeout_ms=200)
PATIENT = QueueingLimits(retry_s=0.05, retry_max_s=0.2)
QUEUE, ADMIN = 20, 21
#: Three sites in a row, the middle one with two gates.
WORLD = World("A-B 1", "B-C 1", a="A gate", x="A", b="B gate", e="B gate", c="C gate", z="C")

T = TypeVar("T")


class Net:
    """All machines of the world, with what each has told."""

    def __init__(self, stack: AsyncExitStack, limits: QueueingLimits) -> None:
        self._stack = stack
        self._limits = limits
        self.ports: dict[str, int] = {}
        self.ends: dict[str, QueueingEndpoint] = {}
        self.told: dict[str, list[object]] = {name: [] for name in WORLD.machines}
        self.news = asyncio.Event()

    async def start(self, name: str) -> None:
        keeper = RoutingTableKeeper(guid(name), lambda: WORLD.snapshot, 0.0)
        router = DirectoryRouter(guid(name), keeper, private_queues=(QUEUE, ADMIN))
        manager = QueueingMachine(
            guid(name), name, MessageIdCounter(0), limits=self._limits, peers=router, router=router
        )
        end = QueueingEndpoint(manager, self._resolve, lambda: self._drain(name, manager))
        self.ends[name] = await self._stack.enter_async_context(end)
        self.ports[name] = await end.listen(HOST, self.ports.get(name, 0))

    async def _resolve(self, machine: str) -> tuple[str, int]:
        return HOST, self.ports[machine]

    def _drain(self, name: str, manager: QueueingMachine) -> None:
        while (event := manager.next_event()) is not None:
            self.told[name].append(event)
        self.news.set()

    def of(self, name: str, kind: type[T]) -> list[T]:
        return [event for event in self.told[name] if isinstance(event, kind)]

    async def until(self, name: str, kind: type[T], count: int) -> list[T]:
        while len(found := self.of(name, kind)) < count:
            self.news.clear()
            await self.news.wait()
        return found

    def send(self, source: str, target: str, body: bytes) -> None:
        queue = PrivateQueue(guid(target), QUEUE)
        message = QueuedMessage(body, lifetime_s=60, acknowledge=True, queue=queue, admin=ADMIN)
        self.ends[source].send_routed(message)


def test_five_hundred_messages_each_way_over_four_hops() -> None:
    total = 500

    async def body() -> None:
        async with AsyncExitStack() as stack:
            net = Net(stack, PATIENT)
            for name in WORLD.machines:
                await net.start(name)
            for n in range(total):
                net.send("x", "z", b"%d" % n)
                net.send("z", "x", b"%d" % n)
            for name in "xz":
                found = await net.until(name, Arrived, total)
                assert [event.body for event in found] == [b"%d" % n for n in range(total)]
                assert {event.hops for event in found} == {3}
            for name, way in (("a", {"b", "x"}), ("b", {"a", "c"}), ("c", {"b", "z"})):
                passed = net.of(name, Relayed)
                assert Counter(called(e.next_hop) for e in passed) == dict.fromkeys(way, total)
                assert net.ends[name].manager.statistics.relayed == 2 * total
            assert net.of("e", Relayed) == [], "the other gate is not needed"

    run(body())


def test_a_gate_that_dies_is_gone_around() -> None:
    """The first gate of the middle site goes away without a word: the second one takes over."""
    total = 200

    async def body() -> None:
        async with AsyncExitStack() as stack:
            net = Net(stack, HASTY)
            for name in WORLD.machines:
                await net.start(name)
            for n in range(total):
                net.send("x", "z", b"%d" % n)
            await net.until("z", Arrived, 1)
            gate = net.ends["b"]
            for connection in list(gate._connections.values()):
                connection.abort()
            await gate.close(0.0)
            for n in range(total, 2 * total):
                net.send("x", "z", b"%d" % n)
            # What b had taken and not passed on is lost with it, as express messages are.
            later = {b"%d" % n for n in range(total, 2 * total)}
            while not later <= {event.body for event in net.of("z", Arrived)}:
                await asyncio.sleep(0.01)
            bodies = [event.body for event in net.of("z", Arrived)]
            assert len(set(bodies)) == len(bodies), "each once"
            assert {called(e.next_hop) for e in net.of("e", Relayed)} == {"c"}
            assert len(net.of("e", Relayed)) >= total
            assert net.of("x", Nacked) == []

    run(body())


def test_a_machine_that_comes_up_later_gets_what_waits() -> None:
    async def body() -> None:
        async with AsyncExitStack() as stack:
            net = Net(stack, PATIENT)
            for name in "xabec":
                await net.start(name)
            net.send("x", "z", b"early")
            while not net.told["c"]:
                await asyncio.sleep(0.01)
            await net.start("z")
            (arrived,) = await net.until("z", Arrived, 1)
            assert (arrived.body, called(arrived.peer)) == (b"early", "c")

    run(body())
