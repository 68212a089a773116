"""The idle timer and PINGs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqis.protocol.multiplexer.events import (
    ConnectFailed,
    ConnectionRequested,
    Disconnected,
    NotOpen,
    TearDown,
)
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexer import Multiplexer, MultiplexerState
from mqis.testing.cmp import packet_bytes
from mqis.wire.cmp.packet import Packet
from tests.protocol.multiplexer.link import Link, events_of, feed, sent_by, started
from tests.wire.cmp.vectors import VECTORS

QUIET = SessionLimits(ping_interval_s=10.0, idle_intervals=3, pings=False, slots_ahead=0)
IDLE = TearDown(problem=False, reason="idle")


def idle_at(machine: Multiplexer) -> float | None:
    return machine.next_timer()


@pytest.mark.req("CMP-3.1.2.1-03")
def test_the_period_is_interval_times_count() -> None:
    assert SessionLimits(ping_interval_s=7.0, idle_intervals=4).idle_s == 28.0
    for bad in ({"ping_interval_s": 0.0}, {"idle_intervals": 0}):
        with pytest.raises(ValueError, match="have to be positive"):
            SessionLimits(**bad)


@pytest.mark.parametrize("slots", [0, 1000])
def test_a_request_has_to_be_one_that_partners_take(slots: int) -> None:
    with pytest.raises(ValueError, match="request_slots"):
        SessionLimits(request_slots=slots)


@pytest.mark.req("CMP-3.1.2.1-01", "CMP-3.1.6.1-01", "CMP-3.1.6.1-02")
def test_an_idle_session_is_torn_down_and_nobody_hears_of_it() -> None:
    machine = Multiplexer(QUIET)
    assert idle_at(machine) is None
    machine.session_up(100.0)
    assert idle_at(machine) == 130.0
    machine.handle_timer(129.9)
    assert machine.effects() == []
    machine.handle_timer(130.0)
    assert machine.effects() == [IDLE]
    assert machine.state.name == "CLOSING"
    machine.session_down(131.0)
    assert machine.state is MultiplexerState.DOWN
    assert events_of(machine) == []


@pytest.mark.req("CMP-3.1.2.1-02", "CMP-3.1.5.5-03", "CMP-3.1.4.2-07")
@pytest.mark.parametrize(
    "add",
    [
        lambda machine: machine.connect(5),
        lambda machine: feed(machine, Packet.connection_req(1, 5)),
    ],
    ids=["outgoing", "incoming"],
)
def test_a_connection_cancels_it(add: Callable[[Multiplexer], object]) -> None:
    machine = started(QUIET)
    assert idle_at(machine) == 30.0
    add(machine)
    (connection,) = (*machine.outgoing.values(), *machine.incoming.values())
    assert (connection.id, connection.type) == (1, 5)
    assert connection.accepted is connection.outgoing
    assert idle_at(machine) is None
    machine.handle_timer(1e9)
    assert machine.state is MultiplexerState.UP


@pytest.mark.req("CMP-3.1.5.1-03", "CMP-3.1.5.2-03", "CMP-3.1.2.1-01")
@pytest.mark.parametrize("outgoing_first", [True, False])
def test_it_starts_when_the_last_of_both_tables_is_gone(outgoing_first: bool) -> None:
    machine = started(QUIET)
    mine = machine.connect(1)
    feed(machine, Packet.connection_req(1, 1))
    for event in events_of(machine):
        if isinstance(event, ConnectionRequested):
            machine.accept(event.connection, 0.0)
    machine.disconnect(mine)
    ends = [Packet.disconnected(1), Packet.disconnect(1, 1)]
    first, last = ends if outgoing_first else reversed(ends)
    feed(machine, first, now=50.0)
    assert idle_at(machine) is None
    feed(machine, last, now=60.0)
    assert idle_at(machine) == 90.0


def test_a_refused_connection_keeps_the_session_busy_until_it_is_disconnected() -> None:
    machine = started(QUIET)
    feed(machine, Packet.connection_req(1, 1))
    (requested,) = events_of(machine)
    machine.deny(requested.connection, 5, 1.0)
    assert idle_at(machine) is None
    feed(machine, Packet.disconnect(1, 1), now=2.0)
    assert idle_at(machine) == 32.0


def test_a_disconnect_that_waited_for_the_decision_starts_it() -> None:
    machine = started(QUIET)
    feed(machine, Packet.connection_req(1, 1), Packet.disconnect(1, 1))
    (requested,) = events_of(machine)
    machine.accept(requested.connection, 5.0)
    assert idle_at(machine) == 35.0


@pytest.mark.req("CMP-3.1.4.2-06")
def test_a_failed_negotiation_starts_it_again() -> None:
    machine = started(QUIET, granted=0)
    machine.connect(1)
    assert idle_at(machine) == 30.0
    machine.resources_refused(20.0)
    assert idle_at(machine) == 50.0
    assert [type(event) for event in events_of(machine)] == [ConnectFailed]


def test_a_failed_negotiation_leaves_it_alone_when_there_are_connections() -> None:
    machine = started(QUIET, granted=1)
    machine.connect(1)
    machine.connect(1)
    machine.resources_refused(20.0)
    assert idle_at(machine) is None


def test_a_connection_that_waits_when_it_rings_fails() -> None:
    machine = started(QUIET, granted=0)
    machine.connect(1)
    machine.effects()
    machine.handle_timer(30.0)
    assert machine.effects() == [IDLE]
    assert [type(event) for event in events_of(machine)] == [ConnectFailed]


# --- with a partner -------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["a", "b", "both"])
def test_idle_expiry_from_either_side_and_both_at_once(first: str) -> None:
    short, long = QUIET, SessionLimits(ping_interval_s=1000.0, pings=False)
    limits = {"a": (short, long), "b": (long, short), "both": (short, short)}[first]
    link = Link(*limits).up()
    start = link.now
    link.run(until=start + 29.0)
    assert not link.broken
    link.run(until=start + 40.0)
    expired = {"a": (1, 0), "b": (0, 1), "both": (1, 1)}[first]
    assert tuple(len(side.teardowns) for side in link.sides) == expired
    for side in link.sides:
        assert side.multiplexer.state is MultiplexerState.DOWN
        assert side.events == []


@pytest.mark.req("CMP-3.1.6.1-02")
def test_a_connection_opened_into_a_teardown_is_lost_at_its_opener() -> None:
    """E-CMP-20: the side whose timer rang hears nothing, the opener hears of the end."""
    delayed = Link(QUIET, SessionLimits(ping_interval_s=1000.0, pings=False), delay=lambda: 2.0)
    link = delayed.up()
    earlier = link.b.multiplexer.connect(1)
    link.run(until=link.now + 20.0)
    link.b.multiplexer.disconnect(earlier)  # its slot stays granted
    link.run(until=link.now + 20.0)
    link.a.events.clear()
    expiry = idle_at(link.a.multiplexer)
    assert expiry is not None
    link.run(until=expiry - 1.0)
    connection = link.b.multiplexer.connect(1)
    link.run(until=expiry + 30.0)
    assert link.a.teardowns == [IDLE]
    assert link.a.events == []
    assert link.b.events[-1] == Disconnected(connection, session_down=True)


# --- PINGs ----------------------------------------------------------------------------------------

PINGING = SessionLimits(ping_interval_s=10.0, idle_intervals=3, slots_ahead=0)


@pytest.mark.req("CMP-3.1.5.4-01")
def test_silence_is_broken_by_pings() -> None:
    machine = started(PINGING)
    machine.connect(1)
    assert len(sent_by(machine, 0.0)) == 1
    for now in (10.0, 20.0, 30.0):
        assert machine.next_timer() == now
        machine.handle_timer(now)
        assert sent_by(machine, now) == [Packet.ping()]


def test_traffic_makes_pings_needless() -> None:
    machine = started(PINGING)
    connection = machine.connect(1)
    sent_by(machine, 8.0)
    assert machine.next_timer() == 18.0
    machine.send(connection, 1, b"")
    sent_by(machine, 15.0)
    assert machine.next_timer() == 25.0


def test_no_ping_joins_a_boxcar_that_waits_or_a_call_under_way() -> None:
    machine = started(PINGING)
    machine.connect(1)
    machine.handle_timer(10.0)
    (boxcar,) = machine.effects()
    machine.handle_timer(20.0)
    assert machine.effects() == []
    assert boxcar.count == 1  # type: ignore[union-attr]
    machine.boxcar_delivered(21.0)
    assert machine.effects() == []


@pytest.mark.req("CMP-3.1.5.4-01")
def test_a_ping_that_fails_is_the_end_of_the_session() -> None:
    machine = started(PINGING)
    connection = machine.connect(1)
    sent_by(machine)
    events_of(machine)
    machine.handle_timer(10.0)
    machine.effects()
    machine.session_down(22.0, "timed out")  # by whoever called SendReceive
    assert machine.effects() == []
    assert events_of(machine) == [Disconnected(connection, session_down=True)]


@pytest.mark.req("CMP-3.1.5.4-02")
def test_a_received_ping_changes_nothing() -> None:
    machine = started(PINGING)
    before = machine.next_timer(), machine._idle_due
    assert feed(machine, Packet.ping(), Packet.ping(), now=9.0)
    assert (machine.next_timer(), machine._idle_due) == before
    assert events_of(machine) == []
    assert machine.effects() == []


def test_an_idle_session_pings_until_it_ends() -> None:
    link = Link(PINGING).up()
    start = link.now
    link.run(until=start + 40.0)
    assert [len(side.boxcars) for side in link.sides] == [2, 2]
    assert link.broken


def test_without_pings_nothing_is_sent() -> None:
    machine = started(QUIET)
    machine.connect(1)
    sent_by(machine)
    assert machine.next_timer() is None


def test_a_ping_may_be_asked_for() -> None:
    machine = started(QUIET)
    machine.ping()
    assert [packet_bytes(packet) for packet in sent_by(machine)] == [VECTORS["PING"]]
    machine.session_down(0.0)
    with pytest.raises(NotOpen):
        machine.ping()


def test_a_call_that_fails_while_the_session_ends_is_no_second_end() -> None:
    machine = started(QUIET)
    machine.ping()
    machine.effects()
    machine.handle_timer(30.0)
    machine.session_down(31.0)
    assert machine.effects() == [IDLE]
    machine.session_down(32.0)
    assert machine.effects() == []
