"""Queue managers on loopback sockets."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mqis.protocol.queueing.events import (
    Acknowledged,
    Delivered,
    Event,
    Nacked,
    SessionClosed,
    SessionOpened,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.runtime.queueing import queueing_endpoint as connection
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.testing.ports import free_port
from mqis.wire.guid import Guid
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection
from mqis.wire.mqqb.packet import decode_packet
from mqis.wire.mqqb.ping import Ping
from tests.runtime.queueing.proxy import Proxy
from tests.waiting import DEADLINE_S, in_time, run, until

HOST = "127.0.0.1"
PSC1 = Guid.parse("f0f1f2f3-0001-0002-0003-040506070809")
PSC2 = Guid.parse("e0e1e2e3-0001-0002-0003-040506070809")
#: Quick, so that the tests are.
LIMITS = QueueingLimits(retry_s=0.02, retry_max_s=0.1, ack_timeout_ms=200, min_ack_timeout_ms=200)
#: With no timer that a test waits for.
PATIENT = QueueingLimits(retry_s=0.02, ack_timeout_ms=100_000_000, max_ack_timeout_ms=100_000_000)

T = TypeVar("T")


class Book:
    """Addresses by machine."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}

    async def __call__(self, machine: str) -> tuple[str, int]:
        return HOST, self.ports[machine]


def endpoint(
    guid: Guid, machine: str, book: Book, limits: QueueingLimits = LIMITS, **options: Any
) -> QueueingEndpoint:
    manager = QueueingMachine(guid, machine, MessageIdCounter(0), limits=limits, **options)
    return QueueingEndpoint(manager, book)


async def wait_for(end: QueueingEndpoint, kind: type[T]) -> T:
    while True:
        event = await end.next_event()
        if isinstance(event, kind):
            return event


async def deliveries(end: QueueingEndpoint, count: int) -> list[Delivered]:
    return [await wait_for(end, Delivered) for _ in range(count)]


def test_a_message_and_its_acknowledgement() -> None:
    async def body() -> None:
        book = Book()
        async with endpoint(PSC1, "PSC1", book) as one, endpoint(PSC2, "PSC2", book) as two:
            book.ports["PSC2"] = await two.listen(HOST, 0)
            name = one.send("PSC2", QueuedMessage(b"hello"))
            delivered = await wait_for(two, Delivered)
            assert (delivered.identifier, delivered.body) == (name, b"hello")
            assert (await wait_for(one, Acknowledged)).identifiers == (name,)

    run(body())


def test_ten_thousand_messages_both_ways_over_a_connection_that_keeps_breaking() -> None:
    """Every message exactly once, in both directions, whatever the proxy cuts."""
    total = 10_000

    async def feed(end: QueueingEndpoint, to: str) -> None:
        for n in range(total):
            while end.manager.queued(to) >= 500:
                await asyncio.sleep(0.005)
            end.send(to, QueuedMessage(b"%d" % n, priority=n % 8))
            if n % 100 == 99:
                await asyncio.sleep(0)

    async def read(end: QueueingEndpoint) -> list[bytes]:
        return [event.body for event in await deliveries(end, total)]

    async def body() -> None:
        book = Book()
        async with endpoint(PSC1, "PSC1", book) as one, endpoint(PSC2, "PSC2", book) as two:
            ports = await one.listen(HOST, 0), await two.listen(HOST, 0)
            cut = 200_000
            async with (
                Proxy(HOST, ports[0], cut_every=cut) as first,
                Proxy(HOST, ports[1], cut_every=cut) as second,
            ):
                book.ports = {"PSC1": first.port, "PSC2": second.port}
                _, _, at_one, at_two = await asyncio.gather(
                    feed(one, "PSC2"), feed(two, "PSC1"), read(one), read(two)
                )
                expected = sorted(b"%d" % n for n in range(total))
                assert sorted(at_one) == sorted(at_two) == expected
                assert min(first.cuts, second.cuts) > 5
            statistics = one.manager.statistics, two.manager.statistics
            assert sum(s.duplicates for s in statistics) > 0, "the cuts did not hurt"

    run(body())


def test_killed_and_back_again() -> None:
    """A peer dies without a word and comes back on the same port with its duplicate table."""

    async def body() -> None:
        book = Book()
        async with endpoint(PSC1, "PSC1", book) as one:
            two = endpoint(PSC2, "PSC2", book)
            port = book.ports["PSC2"] = await two.listen(HOST, 0)
            for n in range(50):
                one.send("PSC2", QueuedMessage(b"%d" % n))
            seen = [event.body for event in await deliveries(two, 50)]
            for connection in list(two._connections.values()):
                connection.abort()
            await two.close()
            for n in range(50, 100):
                one.send("PSC2", QueuedMessage(b"%d" % n))
            await asyncio.sleep(0.1)
            duplicates = two.manager.duplicates
            async with endpoint(PSC2, "PSC2", book, duplicates=duplicates) as again:
                await again.listen(HOST, port)
                seen += [event.body for event in await deliveries(again, 50)]
            assert seen == [b"%d" % n for n in range(100)]

    run(body())


@pytest.mark.parametrize("machine", ["PSC2", "nowhere", "x" * 200])
def test_a_machine_that_cannot_be_reached(machine: str) -> None:
    """Nobody listens, the resolver does not know it, or it knows nonsense."""

    async def body() -> None:
        book = Book()
        book.ports["PSC2"] = free_port()
        async with endpoint(PSC1, "PSC1", book) as one:
            message = QueuedMessage(b"x", lifetime_s=1, acknowledge=True)
            name = one.send(machine, message)
            closed = await wait_for(one, SessionClosed)
            assert closed.reason.startswith(f"no connection to {machine}")
            nack = await wait_for(one, Nacked)
            assert (nack.identifier, nack.local) == (name, True)

    run(body())


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        bytes(1000),
        EstablishConnection(PSC2, Guid.NULL, 0).to_bytes()[:100] + b"\xff" * 1000,
        ConnectionParameters(500, 20_000).to_bytes(),
    ],
    ids=["HTTP", "zeros", "cut short", "out of order"],
)
def test_hostile_bytes_close_their_connection_and_nothing_else(octets: bytes) -> None:
    async def body() -> None:
        book = Book()
        ends = endpoint(PSC1, "PSC1", book, PATIENT), endpoint(PSC2, "PSC2", book, PATIENT)
        async with ends[0] as one, ends[1] as two:
            port = book.ports["PSC2"] = await two.listen(HOST, 0)
            one.send("PSC2", QueuedMessage(b"before"))
            assert (await wait_for(two, Delivered)).body == b"before"
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(octets)
            while True:
                try:
                    if not await reader.read(4096):
                        break
                except ConnectionResetError:
                    break
            writer.close()
            one.send("PSC2", QueuedMessage(b"after"))
            assert (await wait_for(two, Delivered)).body == b"after"
            assert one.manager.statistics.sessions == 1

    run(body())


def test_a_connection_over_the_limit_is_closed_unread() -> None:
    async def body() -> None:
        book = Book()
        limits = QueueingLimits(max_connections=0)
        async with endpoint(PSC2, "PSC2", book, limits) as two:
            port = await two.listen(HOST, 0)
            reader, writer = await asyncio.open_connection(HOST, port)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()

    run(body())


def test_an_application_that_takes_nothing_stops_the_reading() -> None:
    async def body() -> None:
        book = Book()
        few = replace(PATIENT, max_events=50, max_unacked_bytes=1 << 20)
        async with (
            endpoint(PSC1, "PSC1", book, PATIENT) as one,
            endpoint(PSC2, "PSC2", book, few) as two,
        ):
            book.ports["PSC2"] = await two.listen(HOST, 0)
            for n in range(300):
                one.send("PSC2", QueuedMessage(b"%05d" % n + bytes(20_000)))
            await until(lambda: not two.manager.wants_data)
            waiting = two.manager.statistics.received
            assert waiting < 300
            await asyncio.sleep(0.1)
            assert two.manager.statistics.received == waiting
            # Before any timer looks.
            taken = await in_time(deliveries(two, 300))
            assert [event.body[:5] for event in taken] == [b"%05d" % n for n in range(300)]

    run(body())


def test_closing_writes_what_is_queued_and_acknowledges_what_came() -> None:
    async def body() -> None:
        book = Book()
        slow = PATIENT
        async with endpoint(PSC2, "PSC2", book, slow) as two:
            book.ports["PSC2"] = await two.listen(HOST, 0)
            one = endpoint(PSC1, "PSC1", book, slow)
            one.send("PSC2", QueuedMessage(b"first"))
            await wait_for(one, SessionOpened)
            for n in range(500):
                one.send("PSC2", QueuedMessage(b"%d" % n))
            await one.close()
            taken = await deliveries(two, 501)
            assert taken[-1].body == b"499"
            with pytest.raises(ValueError, match="closed"):
                one.send("PSC2", QueuedMessage(b"x"))
            await one.close()

    run(body())


def test_a_peer_that_reads_nothing_does_not_outlast_the_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "LINGER_S", 2 * DEADLINE_S)

    async def body() -> None:
        book = Book()
        async with endpoint(PSC2, "PSC2", book, PATIENT) as two:
            book.ports["PSC2"] = await two.listen(HOST, 0)
            one = endpoint(PSC1, "PSC1", book, PATIENT)
            one.send("PSC2", QueuedMessage(b"first"))
            await wait_for(one, SessionOpened)
            await wait_for(two, Delivered)
            for link in two._connections.values():
                assert link._transport is not None
                link._transport.pause_reading()
            for _ in range(8):
                one.send("PSC2", QueuedMessage(bytes(4_000_000)))
            await one.close(grace_s=0.2)
            await until(lambda: not one._connections)

    run(body())


def test_the_peer_hears_of_its_messages_before_an_orderly_close() -> None:
    async def body() -> None:
        book = Book()
        slow = PATIENT
        async with endpoint(PSC1, "PSC1", book, slow) as one:
            two = endpoint(PSC2, "PSC2", book, slow)
            book.ports["PSC2"] = await two.listen(HOST, 0)
            name = one.send("PSC2", QueuedMessage(b"x"))
            await wait_for(two, Delivered)
            await two.close()
            assert (await wait_for(one, Acknowledged)).identifiers == (name,)

    run(body())


def test_a_peer_that_never_answers_set_up_is_left() -> None:
    async def body() -> None:
        book = Book()
        async with endpoint(PSC2, "PSC2", book, QueueingLimits(init_timeout_s=0.2)) as two:
            port = await two.listen(HOST, 0)
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(EstablishConnection(PSC1, Guid.NULL, 0).to_bytes())
            answer = decode_packet(await reader.readexactly(572))
            assert answer == EstablishConnection(PSC1, PSC2, 0)
            assert await reader.read(1) == b""
            writer.close()
            event: Event = await wait_for(two, SessionClosed)
            assert isinstance(event, SessionClosed)
            assert event.reason == "waiting for ConnectionParameters for too long"

    run(body())


def test_ping_over_udp() -> None:
    async def body() -> None:
        book = Book()
        async with endpoint(PSC1, "PSC1", book) as one:
            port = await one.listen_ping(HOST, 0)
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.setblocking(False)
                client.connect((HOST, port))
                client.send(b"no ping")
                client.send(Ping(7, PSC2, client=True).to_bytes())
                answer = await loop.sock_recv(client, 100)
            assert Ping.from_bytes(answer) == Ping(7, PSC1, client=True)

    run(body())
