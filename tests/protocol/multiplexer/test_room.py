"""Back-pressure: each connection, each session, and the process, out and in."""

from __future__ import annotations

import pickle

import pytest

from mqis.protocol.multiplexer.events import (
    Congested,
    ConnectionRequested,
    Denied,
    Disconnected,
    Event,
    LimitLevel,
    MessageReceived,
    ReleaseCall,
    SendBoxcar,
    TearDown,
    Writable,
)
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.limits import QUEUED_OVERHEAD, UNREAD_OVERHEAD, SessionLimits
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer, MultiplexerState
from mqis.testing.cmp import user_message
from mqis.wire.cmp.packet import Packet
from tests.protocol.multiplexer.link import EXACT, events_of, feed, sent_by

BODY = bytes(1000)
OUT = QUEUED_OVERHEAD + len(BODY)
IN = UNREAD_OVERHEAD + len(BODY)


def up(limits: SessionLimits = EXACT, budget: ByteBudget | None = None) -> Multiplexer:
    machine = Multiplexer(limits, budget)
    machine.session_up(0.0)
    machine.resources_requested(100)
    machine._outgoing.granted = 100
    return machine


def opened(machine: Multiplexer, count: int = 1) -> list[MultiplexedConnection]:
    connections = [machine.connect(1) for _ in range(count)]
    sent_by(machine)
    events_of(machine)
    return connections


def fill(machine: Multiplexer, connection: MultiplexedConnection) -> tuple[int, LimitLevel]:
    """Messages until there is no room: how many there were, and whose limit it was."""
    for number in range(1000):
        try:
            machine.send(connection, number, BODY)
        except Congested as error:
            return number, error.level
    raise AssertionError("there is always room")


# --- out ------------------------------------------------------------------------------------------


def test_a_connection_has_room_for_so_much() -> None:
    machine = up(SessionLimits(connection_queued_bytes=5 * OUT))
    one, two = opened(machine, 2)
    assert fill(machine, one) == (5, LimitLevel.CONNECTION)
    machine.send(two, 1, BODY)  # its neighbour does not suffer
    assert len(sent_by(machine)) == 6
    assert events_of(machine) == [Writable(one)]
    assert fill(machine, one) == (5, LimitLevel.CONNECTION)


def test_a_session_has_room_for_so_much() -> None:
    machine = up(SessionLimits(session_queued_bytes=5 * OUT))
    one, two = opened(machine, 2)
    assert fill(machine, one) == (5, LimitLevel.SESSION)
    with pytest.raises(Congested, match="session"):
        machine.send(two, 1, BODY)
    sent_by(machine)
    assert events_of(machine) == [Writable(one), Writable(two)]


def test_a_process_has_room_for_so_much() -> None:
    budget = ByteBudget(queued_bytes=5 * OUT)
    here, there = up(budget=budget), up(budget=budget)
    (one,), (two,) = opened(here), opened(there)
    assert fill(here, one) == (5, LimitLevel.PROCESS)
    with pytest.raises(Congested, match="process"):
        there.send(two, 1, BODY)
    assert budget.woken() == []
    sent_by(here)
    assert set(budget.woken()) == {here, there}
    assert budget.woken() == []
    assert events_of(there) == [Writable(two)]
    assert fill(there, two) == (5, LimitLevel.PROCESS)


def refused(machine: Multiplexer, connections: list[MultiplexedConnection]) -> None:
    for connection in connections:
        with pytest.raises(Congested):
            machine.send(connection, 1, BODY)


def test_those_who_find_room_are_told_and_no_more() -> None:
    """Telling all of them for every boxcar would cost the square of their number."""
    machine = up(SessionLimits(session_queued_bytes=100 * OUT, connection_queued_bytes=100 * OUT))
    first, *others = opened(machine, 101)
    assert fill(machine, first) == (100, LimitLevel.SESSION)
    refused(machine, others)
    (boxcar,) = machine.effects()
    assert isinstance(boxcar, SendBoxcar)
    assert boxcar.count < 100
    machine.boxcar_delivered(0.0)
    told = events_of(machine)
    assert told == [Writable(first), *map(Writable, others[: boxcar.count - 1])]


def test_all_are_told_when_nothing_is_under_way() -> None:
    """Nobody would be later: some of those who were told may have nothing to say any more."""
    machine = up(SessionLimits(session_queued_bytes=5 * OUT, connection_queued_bytes=5 * OUT))
    first, *others = opened(machine, 21)
    assert fill(machine, first) == (5, LimitLevel.SESSION)
    refused(machine, others)
    sent_by(machine)
    assert events_of(machine) == [Writable(first), *map(Writable, others)]


def test_one_message_always_has_room() -> None:
    tiny = SessionLimits(connection_queued_bytes=1, session_queued_bytes=1)
    machine = up(tiny, ByteBudget(queued_bytes=1))
    (connection,) = opened(machine)
    assert fill(machine, connection)[0] == 1
    sent_by(machine)
    assert fill(machine, connection)[0] == 1


def test_early_messages_count_and_are_given_back() -> None:
    machine = Multiplexer(SessionLimits(connection_queued_bytes=3 * OUT))
    connection = machine.connect(1)
    assert fill(machine, connection) == (3, LimitLevel.CONNECTION)
    assert machine.budget.queued == 3 * OUT
    machine.abandon(connection)
    assert machine.budget.queued == connection.queued == 0
    assert Writable(connection) not in events_of(machine)


def test_room_comes_back_when_the_call_returns_not_when_it_leaves() -> None:
    machine = up(SessionLimits(connection_queued_bytes=5 * OUT))
    (connection,) = opened(machine)
    fill(machine, connection)
    (boxcar,) = machine.effects()
    assert isinstance(boxcar, SendBoxcar)
    assert machine.budget.queued == 5 * OUT
    assert events_of(machine) == []
    machine.boxcar_delivered(0.0)
    assert machine.budget.queued == 0
    assert events_of(machine) == [Writable(connection)]


def test_a_connection_that_closed_is_not_told_of_room() -> None:
    machine = up(SessionLimits(connection_queued_bytes=OUT))
    (connection,) = opened(machine)
    fill(machine, connection)
    machine.disconnect(connection)
    sent_by(machine)
    assert events_of(machine) == []


def test_requests_and_answers_need_no_room() -> None:
    machine = up(SessionLimits(session_queued_bytes=OUT))
    (connection,) = opened(machine)
    fill(machine, connection)
    machine.connect(1)
    machine.disconnect(connection)
    feed(machine, Packet.connection_req(9, 1))
    requested = next(e for e in events_of(machine) if isinstance(e, ConnectionRequested))
    machine.deny(requested.connection, 5, 0.0)
    assert len(sent_by(machine)) == 4


def test_congestion_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(Congested(LimitLevel.SESSION)))
    assert (error.level, str(error)) == (LimitLevel.SESSION, str(Congested(LimitLevel.SESSION)))


# --- in -------------------------------------------------------------------------------------------


def message(connection_id: int = 1, body: bytes = BODY) -> Packet:
    return user_message(connection_id, 1, body, is_master=True)


def with_incoming(machine: Multiplexer, count: int = 1) -> list[MultiplexedConnection]:
    feed(machine, *(Packet.connection_req(n, 1) for n in range(1, count + 1)))
    connections = [event.connection for event in events_of(machine)]
    for connection in connections:
        machine.accept(connection, 0.0)
    return connections


def take(machine: Multiplexer, count: int) -> list[Event | None]:
    return [machine.next_event() for _ in range(count)]


def test_unread_messages_of_a_connection_keep_the_call() -> None:
    machine = up(SessionLimits(connection_unread_bytes=3 * IN))
    with_incoming(machine, 2)
    assert feed(machine, *[message()] * 3, message(2))
    assert not feed(machine, message())
    take(machine, 1)
    assert ReleaseCall() in machine.effects()
    take(machine, 4)
    assert machine.effects() == []
    assert machine.budget.unread == 0


def test_unread_messages_of_a_session_keep_the_call() -> None:
    machine = up(SessionLimits(session_unread_bytes=4 * IN))
    with_incoming(machine, 4)
    assert feed(machine, message(1), message(2))
    assert not feed(machine, message(3), message(4))
    take(machine, 1)
    assert machine.effects() == [ReleaseCall()]


def test_unread_messages_of_all_sessions_keep_the_call() -> None:
    budget = ByteBudget(unread_bytes=4 * IN)
    here, there = up(budget=budget), up(budget=budget)
    with_incoming(here)
    with_incoming(there)
    assert not feed(here, *[message()] * 4)
    assert not feed(there, message())
    take(here, 4)
    assert set(budget.woken()) == {here, there}
    assert here.effects() == there.effects() == [ReleaseCall()]


def test_room_in_one_direction_wakes_nobody_who_waits_for_the_other() -> None:
    budget = ByteBudget(queued_bytes=OUT, unread_bytes=2 * IN)
    here, there = up(budget=budget), up(budget=budget)
    (connection,) = opened(here)
    fill(here, connection)
    with_incoming(there)
    feed(there, message())
    take(there, 1)
    assert budget.woken() == []
    assert not feed(there, message(), message(), message())
    sent_by(here)
    assert budget.woken() == [here]
    take(there, 3)
    assert budget.woken() == [there]


def test_every_kept_call_is_released_once() -> None:
    """A partner that plays by the rules has only one at a time."""
    machine = up(SessionLimits(session_unread_bytes=IN))
    with_incoming(machine)
    assert not feed(machine, message(), message())
    assert not feed(machine, message())
    events_of(machine)
    assert machine.effects() == [ReleaseCall(), ReleaseCall()]
    assert events_of(machine) == []
    assert machine.effects() == []


def test_messages_that_wait_for_a_decision_count() -> None:
    machine = up(SessionLimits(connection_unread_bytes=3 * IN))
    feed(machine, Packet.connection_req(1, 1))
    (requested,) = events_of(machine)
    assert feed(machine, *[message()] * 3)
    assert not feed(machine, message())
    machine.accept(requested.connection, 0.0)
    assert machine.effects() == []
    assert [type(event) for event in take(machine, 1)] == [MessageReceived]
    assert machine.effects() == [ReleaseCall()]
    assert len(events_of(machine)) == 3
    assert machine.budget.unread == 0


def test_denying_gives_the_room_of_what_waited_back() -> None:
    machine = up(SessionLimits(connection_unread_bytes=IN))
    feed(machine, Packet.connection_req(1, 1))
    (requested,) = events_of(machine)
    assert not feed(machine, message(), message())
    machine.deny(requested.connection, 5, 0.0)
    assert ReleaseCall() in machine.effects()
    assert machine.budget.unread == 0


def test_a_boxcar_that_is_kept_for_one_byte_is_paid_for() -> None:
    """The view into it keeps it all; the rest was for nobody."""
    machine = up(SessionLimits(session_unread_bytes=1 << 30))
    with_incoming(machine)
    feed(machine, message(1, b"x"), message(77, bytes(70_000)))
    assert machine.budget.unread > 70_000
    take(machine, 1)
    assert machine.budget.unread == 0


# --- pausing --------------------------------------------------------------------------------------


def test_a_paused_connection_waits_and_the_others_do_not() -> None:
    machine = up()
    one, two = with_incoming(machine, 2)
    machine.pause(one)
    feed(machine, message(1), message(2), Packet.disconnect(1, 1))
    (event,) = events_of(machine)
    assert event.connection is two
    assert list(machine.incoming) == [2]  # the protocol goes on
    machine.resume(one)
    waited, end = events_of(machine)
    assert isinstance(waited, MessageReceived)
    assert (waited.connection, waited.body) == (one, BODY)
    assert isinstance(waited.body, bytes)  # it does not keep the boxcar
    assert end == Disconnected(one, session_down=False)
    assert machine.budget.unread == 0


def test_a_paused_connection_stops_the_session_only_at_its_limit() -> None:
    machine = up(SessionLimits(connection_unread_bytes=3 * IN))
    one, _ = with_incoming(machine, 2)
    machine.pause(one)
    assert feed(machine, *[message(1)] * 3, message(2))
    assert not feed(machine, message(1))
    assert len(events_of(machine)) == 1
    assert machine.effects() == []
    machine.resume(one)
    take(machine, 1)
    assert machine.effects() == [ReleaseCall()]


def test_a_paused_reader_is_told_that_it_may_write() -> None:
    machine = up(SessionLimits(connection_queued_bytes=OUT))
    (connection,) = opened(machine)
    machine.pause(connection)
    fill(machine, connection)
    sent_by(machine)
    assert events_of(machine) == [Writable(connection)]


def test_a_paused_connection_hears_of_its_end_when_it_resumes() -> None:
    machine = up()
    (connection,) = opened(machine)
    machine.pause(connection)
    feed(machine, Packet.denied(1, 5))
    machine.session_down(0.0)
    assert events_of(machine) == []
    machine.resume(connection)
    assert events_of(machine) == [
        Denied(connection, 5),
        Disconnected(connection, session_down=True),
    ]


# --- a partner that does not care -----------------------------------------------------------------


@pytest.mark.parametrize(("allowed", "bound"), [(0, 6), (20, 20)])
def test_answers_cannot_pile_up(allowed: int, bound: int) -> None:
    """Three slots may have six; fewer than the limit nobody minds."""
    machine = Multiplexer(SessionLimits(max_unsent_answers=allowed))
    machine.session_up(0.0)
    machine.resources_requested(3)
    feed(machine, Packet.connection_req(99, 1))
    (blocker,) = events_of(machine)
    machine.accept(blocker.connection, 0.0)
    machine.send(blocker.connection, 1, b"")
    assert len(machine.effects()) == 1  # a call that does not return
    answers = 0
    while machine.state is MultiplexerState.UP and answers < 50:
        if answers % 2:
            feed(machine, Packet.disconnect(1, 1))
        else:
            feed(machine, Packet.connection_req(1, 1))
            (requested,) = events_of(machine)
            machine.deny(requested.connection, 5, 0.0)
        answers += 1
    assert answers == bound + 1
    assert events_of(machine) == [Disconnected(blocker.connection, session_down=True)]
    (effect,) = machine.effects()
    assert isinstance(effect, TearDown)
    assert effect.problem
    assert machine.budget.queued == machine.budget.unread == 0


def test_a_partner_that_waits_for_answers_may_go_on_for_ever() -> None:
    machine = Multiplexer(SessionLimits(max_unsent_answers=0))
    machine.session_up(0.0)
    machine.resources_requested(1)
    for cycle in range(50):
        feed(machine, Packet.connection_req(1, 1), Packet.disconnect(1, 1))
        for event in events_of(machine):
            if isinstance(event, ConnectionRequested):
                machine.deny(event.connection, 5, 0.0)
        assert len(sent_by(machine)) == 2, cycle
    assert machine.state is MultiplexerState.UP
