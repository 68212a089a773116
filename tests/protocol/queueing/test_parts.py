"""Names, the outgoing queue, the tables, the timers: everything that a queue manager is made of."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.clock import Timers
from mqis.protocol.queueing.direct_messages import Receiver
from mqis.protocol.queueing.events import Delivered
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import (
    DuplicateTable,
    MessageIdCounter,
    SentMessage,
    SentTable,
)
from mqis.protocol.queueing.outgoing import Outgoing, OutgoingQueue
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.protocol.queueing.replication_queue import (
    canonical,
    direct_name,
    machine_of,
    queue_path,
)
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import INFINITE
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import MD5, MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from tests.protocol.queueing.wires import PSC1, PSC2
from tests.wire.mqqb.frames import PACKETS

# --- names ----------------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-1.9-01", "MQDSRP-3.1.1.2.1-01")
def test_path_of_the_replication_queue() -> None:
    assert queue_path("PSC1") == "PSC1\\private$\\mqis_queue$"
    assert queue_path("x" * 256).startswith("x" * 256 + "\\")


@pytest.mark.parametrize("name", ["", "x" * 257, "a b", "a\tb", "a\0b", "a\\b", "a\u2003b"])
@pytest.mark.req("MQDSRP-3.1.1.2.1-01")
def test_what_is_no_machine_name(name: str) -> None:
    with pytest.raises(ValueError, match="machine name"):
        queue_path(name)


@pytest.mark.req("MQDSRP-1.9-03")
def test_a_message_goes_to_the_direct_name_of_the_queue() -> None:
    packet = build_packet(QueuedMessage(b"x"), MessageIdentifier(PSC1, 7), "PSC2", 0, None)
    sent = decode_packet(packet)
    assert isinstance(sent, UserMessage)
    assert sent.header.destination == QueueName.of_direct("OS:PSC2\\private$\\mqis_queue$")
    assert direct_name("PSC1") == "OS:PSC1\\private$\\mqis_queue$"


@pytest.mark.req("MQDSRP-1.9-02")
def test_the_private_name_of_the_queue_is_that_of_answers_and_of_the_queue_itself() -> None:
    """PRIVATE=guid\\1, as a packet has it: the queue manager in the address, the queue's number."""
    message = QueuedMessage(b"x", acknowledge=True)
    direct = decode_packet(build_packet(message, MessageIdentifier(PSC1, 7), "PSC2", 0, None))
    assert isinstance(direct, UserMessage)
    assert direct.header.source == PSC1
    assert direct.header.admin == QueueName.at_source(1)
    for number, delivered in ((1, True), (3, False)):
        name = QueueName.at_destination(number)
        header = replace(direct.header, destination=name, address=PSC2)
        receiver = Receiver(
            PSC2,
            "PSC2",
            duplicates=DuplicateTable(QueueingLimits()),
            sent=SentTable(QueueingLimits()),
            policy=SigningPolicy.NONE,
            signer=None,
        )
        verdict = receiver.judge(replace(direct, header=header), PSC1, 1, 0.0)
        assert isinstance(verdict, Delivered) is delivered


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("OS:PSC1\\private$\\mqis_queue$", "PSC1"),
        ("os:psc1.example.com\\PRIVATE$\\MQIS_QUEUE$", "psc1.example.com"),
        ("OS:\\private$\\mqis_queue$", None),
        ("OS:PSC1\\private$\\order_queue$", None),
        ("OS:PSC1\\mqis_queue$", None),
        ("TCP:10.0.0.1\\private$\\mqis_queue$", None),
        ("PSC1\\private$\\mqis_queue$", None),
        ("", None),
    ],
)
def test_the_machine_in_a_direct_name(name: str, machine: str | None) -> None:
    assert machine_of(name) == machine


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("PSC1", "psc1"),
        ("Psc1.Example.Com", "psc1"),
        ("10.0.0.1", "10.0.0.1"),
        ("FE80::1", "fe80::1"),
    ],
)
def test_one_spelling_for_a_machine(name: str, same: str) -> None:
    assert canonical(name) == same


# --- packets --------------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-3.1.7.2.1-01", "MQDSRP-3.1.7.2.1-02", "MQDSRP-3.1.7.2.1-07")
def test_the_packet_of_a_message_is_the_vector() -> None:
    vector = decode_packet(PACKETS["UserMessage"])
    assert isinstance(vector, UserMessage)
    message = QueuedMessage(vector.properties.body, 3, 1200, acknowledge=True)
    packet = build_packet(message, MessageIdentifier(PSC2, 1), "PSC1", 0x5F000000, None)
    assert packet == PACKETS["UserMessage"]


@pytest.mark.req("MQDSRP-3.1.7.2.1-01", "MQDSRP-3.1.7.2.1-02", "MQDSRP-3.1.7.2.1-07")
def test_the_packet_of_a_message_that_nobody_wants_to_hear_of() -> None:
    message = QueuedMessage(b"body", priority=7, lifetime_s=10)
    packet = decode_packet(build_packet(message, MessageIdentifier(PSC1, 9), "PSC2", 5, None))
    assert isinstance(packet, UserMessage)
    assert packet.priority == 7
    assert packet.time_to_reach_queue == packet.header.time_to_be_received == 10
    assert packet.header.admin == packet.header.response == QueueName.NONE
    assert not packet.header.recoverable
    assert packet.properties == MessageProperties(b"body", MessageClass.NORMAL, hash_algorithm=MD5)


def test_messages_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="a priority is 0 to 7, not 8"):
        QueuedMessage(b"", priority=8)
    with pytest.raises(ValueError, match="32 bits"):
        QueuedMessage(b"", lifetime_s=1 << 32)


# --- the outgoing queue ---------------------------------------------------------------------------


def queued(ordinal: int, priority: int = 3, lifetime_s: int = 1200, size: int = 100) -> Outgoing:
    message = QueuedMessage(b"", priority, lifetime_s)
    return Outgoing.of(MessageIdentifier(PSC1, ordinal), message, bytes(size), 0.0)


def popped(queue: OutgoingQueue) -> list[int]:
    found = []
    while (outgoing := queue.pop()) is not None:
        found.append(outgoing.identifier.ordinal)
        queue.forget(outgoing)
    return found


@given(st.lists(st.integers(0, 7), max_size=60))
def test_priority_then_age(priorities: list[int]) -> None:
    queue = OutgoingQueue(QueueingLimits())
    for ordinal, priority in enumerate(priorities, 1):
        queue.push(queued(ordinal, priority))
    expected = sorted(range(1, len(priorities) + 1), key=lambda n: (-priorities[n - 1], n))
    assert popped(queue) == expected
    assert (queue.messages, queue.bytes, queue.queued) == (0, 0, 0)


def test_what_comes_back_goes_to_the_front() -> None:
    queue = OutgoingQueue(QueueingLimits())
    for ordinal in range(1, 6):
        queue.push(queued(ordinal, priority=7 if ordinal == 2 else 3))
    flight = [queue.pop() for _ in range(3)]
    assert (queue.messages, queue.queued) == (5, 2)
    queue.push(queued(6))
    queue.requeue(outgoing for outgoing in flight if outgoing is not None)
    assert popped(queue) == [2, 1, 3, 4, 5, 6]


def test_room_in_messages_and_bytes() -> None:
    queue = OutgoingQueue(QueueingLimits(max_queued_messages=2, max_queued_bytes=350))
    queue.push(queued(1))
    assert queue.fits(250)
    assert not queue.fits(251)
    queue.push(queued(2))
    assert not queue.fits(1)
    flight = queue.pop()
    assert flight is not None
    assert not queue.fits(1), "what is in flight takes room too"
    queue.forget(flight)
    assert queue.fits(1)


def test_expiry() -> None:
    queue = OutgoingQueue(QueueingLimits())
    lifetimes = {1: 1200, 2: 10, 3: 10, 4: INFINITE, 5: 5}
    for ordinal, lifetime_s in lifetimes.items():
        queue.push(queued(ordinal, lifetime_s=lifetime_s))
    assert queue.next_expiry() == 5
    assert [o.identifier.ordinal for o in queue.expire(10)] == [5, 2, 3]
    assert queue.next_expiry() == 1200
    flight = queue.pop()
    assert flight is not None
    assert queue.next_expiry() is None, "only what is queued expires"
    queue.requeue([flight])
    assert [o.identifier.ordinal for o in queue.expire(inf)] == [1]
    assert popped(queue) == [4]
    assert queue.bytes == 0


def test_the_heap_of_deadlines_forgets_what_has_gone() -> None:
    queue = OutgoingQueue(QueueingLimits())
    for ordinal in range(1, 10_001):
        queue.push(queued(ordinal))
        outgoing = queue.pop()
        assert outgoing is not None
        queue.forget(outgoing)
    assert len(queue._expiry) < 2000


# --- tables ---------------------------------------------------------------------------------------


def name(ordinal: int, source: Guid = PSC1) -> MessageIdentifier:
    return MessageIdentifier(source, ordinal)


def test_duplicates_by_source_and_number() -> None:
    table = DuplicateTable(QueueingLimits())
    table.add(name(1), 0)
    assert table.seen(name(1), 1)
    assert not table.seen(name(2), 1)
    assert not table.seen(name(1, PSC2), 1)


def test_duplicates_are_forgotten_after_half_an_hour() -> None:
    table = DuplicateTable(QueueingLimits())
    table.add(name(1), 0)
    table.add(name(2), 0)
    assert table.seen(name(1), 1799)
    assert not table.seen(name(2), 1800)
    assert table.seen(name(1), 1801), "a repetition counts as seen anew"
    assert len(table) == 1


def test_ten_thousand_duplicates() -> None:
    table = DuplicateTable(QueueingLimits())
    for ordinal in range(10_001):
        table.add(name(ordinal), 0)
    assert len(table) == 10_000
    assert not table.seen(name(0), 0)
    assert table.seen(name(1), 0)


def test_duplicates_survive_in_another_table() -> None:
    first = DuplicateTable(QueueingLimits())
    first.add(name(1), 5)
    assert DuplicateTable(QueueingLimits(), first.entries()).seen(name(1), 6)


def test_message_ids_count_on_and_never_are_zero() -> None:
    ids = MessageIdCounter(0xFFFFFFFE)
    assert [ids.next() for _ in range(3)] == [0xFFFFFFFF, 1, 2]
    assert MessageIdCounter.from_time(1_700_000_000).next() == (1_700_000_000 << 8) % (1 << 32) + 1


@given(st.integers(0, 0xFFFFFFFF), st.lists(st.integers(0, 30), max_size=5), st.integers(1, 8))
def test_no_number_comes_twice_however_often_it_restarts(
    last: int, runs: list[int], block: int
) -> None:
    kept = last
    used: list[int] = []

    def reserve(number: int) -> None:
        nonlocal kept
        kept = number

    for count in runs:
        ids = MessageIdCounter(kept, reserve, block)
        used += [ids.next() for _ in range(count)]
    assert len(set(used)) == len(used)
    assert 0 not in used


def test_numbers_are_reserved_before_they_are_used() -> None:
    order: list[str] = []
    ids = MessageIdCounter(10, lambda number: order.append(f"reserve {number}"), block=2)
    for _ in range(3):
        number = ids.next()
        order.append(f"use {number}")
    assert order == ["reserve 13", "use 11", "use 12", "reserve 15", "use 13"]


def sent(size: int = 10, until: float = 100.0) -> SentMessage:
    return SentMessage("PSC2", QueuedMessage(bytes(size)), PSC2, until)


def test_sent_messages_are_taken_once_and_in_time() -> None:
    table = SentTable(QueueingLimits())
    table.add(1, sent(), 0)
    table.add(2, sent(), 0)
    assert table.take(1, 50) == sent()
    assert table.take(1, 50) is None
    assert table.get(2, 100) is None
    assert table.take(2, 99.9) == sent()


@pytest.mark.parametrize("limits", [QueueingLimits(sent_entries=3), QueueingLimits(sent_bytes=35)])
def test_sent_messages_are_bounded(limits: QueueingLimits) -> None:
    table = SentTable(limits)
    for ordinal in range(1, 10):
        table.add(ordinal, sent(), 0)
    assert len(table) == 3
    assert table.get(6, 0) is None
    assert table.get(7, 0) is not None


def test_sent_messages_go_when_their_time_is_up() -> None:
    table = SentTable(QueueingLimits())
    for ordinal in range(1, 4):
        table.add(ordinal, sent(until=float(ordinal)), 0)
    table.add(4, sent(), 2.5)
    assert len(table) == 2
    table.add(4, sent(), 2.5)
    assert len(table) == 2


# --- timers ---------------------------------------------------------------------------------------


def test_timers_ring_in_order_and_never_late() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 3.0)
    timers.set("b", 1.0)
    timers.set("a", 2.0)
    timers.set("b", 5.0)
    timers.set("c", None)
    assert timers.next() == 1.0, "a time that moved later is noticed when the earlier one rings"
    assert list(timers.pop_expired(2.0)) == ["b", "a"]
    assert timers.next() is None


def test_a_discarded_timer_does_not_ring() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 1.0)
    timers.discard("a")
    assert timers.next() is None
    timers.set("a", 2.0)
    assert list(timers.pop_expired(5.0)) == ["a"]
