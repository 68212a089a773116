"""The statistics of a queue manager: waiting messages, connected peers, amounts sent."""

from __future__ import annotations

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from tests.protocol.queueing.wires import PSC1, PSC2, pair


def test_what_waits_for_a_machine_that_is_away() -> None:
    wires, one, _ = pair()
    wires.down.add("psc2")
    wires.send("psc1", "PSC2", QueuedMessage(b"first", lifetime_s=100))
    wires.advance(30)
    wires.send("psc1", "PSC2", QueuedMessage(b"second", lifetime_s=100, priority=7))
    wires.run()
    (depth,) = one.depths()
    assert (depth.machine, depth.messages, depth.routed) == ("PSC2", 2, False)
    assert depth.bytes > len(b"firstsecond")
    assert depth.oldest == wires.now - 30, "the urgent one is not the oldest"
    assert one.sessions() == []
    wires.advance(80)
    assert (one.statistics.expired, one.statistics.undelivered) == (1, 1)
    assert one.depths()[0].oldest == wires.now - 80
    wires.advance(100)
    assert (one.statistics.expired, one.depths()) == (2, [])


def test_what_is_in_flight_waits_too() -> None:
    wires, one, two = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"first"))
    wires.run()
    assert one.sessions() == [(PSC2, "PSC2")]
    assert two.sessions() == [(PSC1, None)]
    (depth,) = one.depths()
    assert (depth.messages, depth.oldest) == (1, wires.now)
    wires.advance(30)  # which is longer than an acknowledgement takes
    (depth,) = one.depths()
    assert (depth.messages, depth.bytes, depth.oldest) == (0, 0, None)


def test_bytes_of_both_ends_agree() -> None:
    wires, one, two = pair()
    wires.send("psc1", "PSC2", QueuedMessage(b"x" * 1000))
    wires.advance(30)
    assert one.statistics.bytes_sent == two.statistics.bytes_received > 1000
    assert two.statistics.bytes_sent == one.statistics.bytes_received > 0
    written = sum(len(data) for (source, _), data in wires.written.items() if source == "psc1")
    assert one.statistics.bytes_sent == written


def test_a_message_for_which_there_is_no_room_has_not_expired() -> None:
    wires, one, _ = pair(QueueingLimits(max_queued_messages=1))
    wires.down.add("psc2")
    for _ in range(2):
        wires.send("psc1", "PSC2", QueuedMessage(b""))
    wires.run()
    assert (one.statistics.undelivered, one.statistics.expired) == (1, 0)
