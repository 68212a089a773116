"""Messages that go straight to whoever owns the connection, and those that may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqis.protocol.multiplexer.events import (
    ConnectionRequested,
    Disconnected,
    MessageReceived,
)
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.testing.cmp import user_message
from mqis.wire.cmp.packet import Packet
from tests.protocol.multiplexer.link import events_of, feed, sent_by, started

Taken = list[tuple[int, bytes]]


def message(connection_id: int, number: int, *, is_master: bool = False) -> Packet:
    return user_message(connection_id, number, b"%d" % number, is_master=is_master)


def opened(sink: Callable[[int, bytes], None]) -> tuple[Multiplexer, MultiplexedConnection]:
    machine = started()
    connection = machine.connect(1)
    sent_by(machine)
    events_of(machine)
    connection.sink = sink
    return machine, connection


def collecting() -> tuple[Multiplexer, MultiplexedConnection, Taken]:
    taken: Taken = []
    machine, connection = opened(lambda kind, body: taken.append((kind, body)))
    return machine, connection, taken


def test_messages_are_taken_inside_receive_and_are_no_events() -> None:
    machine, _, taken = collecting()
    assert feed(machine, message(1, 1), message(1, 2))
    assert taken == [(1, b"1"), (2, b"2")]
    assert all(type(body) is bytes for _, body in taken)  # a view would keep the boxcar
    assert events_of(machine) == []
    assert machine.statistics.messages_received == 2
    assert machine.statistics.ignored == 0
    assert machine.budget.unread == 0


@pytest.mark.req("CMP-2.2.8-02")
def test_a_body_is_taken_as_it_is() -> None:
    machine, _, taken = collecting()
    body = b"\0 text \xff\0\0"
    feed(machine, user_message(1, 9, body, is_master=False))
    assert taken == [(9, body)]


@pytest.mark.req("CMP-3.1.5.6-01")
def test_the_sink_is_that_of_the_table_which_is_meant() -> None:
    """Both sides opened a connection with the id 1."""
    machine, _, mine = collecting()
    feed(machine, Packet.connection_req(1, 5))
    (requested,) = events_of(machine)
    machine.accept(requested.connection, 0.0)
    theirs: Taken = []
    requested.connection.sink = lambda kind, body: theirs.append((kind, body))
    feed(machine, message(1, 1, is_master=True), message(1, 2, is_master=False))
    assert (mine, theirs) == ([(2, b"2")], [(1, b"1")])


@pytest.mark.req("CMP-3.1.5-03")
def test_what_waits_is_not_overtaken() -> None:
    machine, connection, taken = collecting()
    machine.pause(connection)
    feed(machine, message(1, 1))
    machine.resume(connection)
    feed(machine, message(1, 2))
    assert taken == []
    waiting = events_of(machine)
    assert [e.packet.user_msg_type for e in waiting if isinstance(e, MessageReceived)] == [1, 2]
    feed(machine, message(1, 3))
    assert taken == [(3, b"3")]


def test_a_paused_connection_takes_nothing() -> None:
    def enough(kind: int, body: bytes) -> None:
        taken.append((kind, body))
        machine.pause(connection)

    taken: Taken = []
    machine, connection = opened(enough)
    feed(machine, message(1, 1), message(1, 2))
    assert taken == [(1, b"1")]
    machine.resume(connection)
    (waited,) = events_of(machine)
    assert isinstance(waited, MessageReceived)
    assert waited.packet.user_msg_type == 2


def test_messages_wait_for_the_decision_on_another_connection_with_their_id() -> None:
    """3.1.5: what has one id is one sequence, whichever table it is about."""
    machine, _, taken = collecting()
    feed(machine, Packet.connection_req(1, 9), message(1, 1))
    assert taken == []
    (asked,) = events_of(machine)
    assert isinstance(asked, ConnectionRequested)
    machine.accept(asked.connection, 0.0)
    (waited,) = events_of(machine)
    assert isinstance(waited, MessageReceived)


def test_fismaster_tells_whose_sink_it_is() -> None:
    machine, _, taken = collecting()
    feed(machine, Packet.connection_req(1, 9))
    (asked,) = events_of(machine)
    incoming: Taken = []
    machine.accept(asked.connection, 0.0)
    asked.connection.sink = lambda kind, body: incoming.append((kind, body))
    feed(machine, message(1, 1), message(1, 2, is_master=True))
    assert taken == [(1, b"1")]
    assert incoming == [(2, b"2")]


def test_a_sink_may_answer_and_leave() -> None:
    answers: Taken = []

    def leave(kind: int, body: bytes) -> None:
        answers.append((kind, body))
        machine.send(connection, kind + 1, body)
        machine.disconnect(connection)

    machine, connection = opened(leave)
    feed(machine, message(1, 1), message(1, 2))
    assert answers == [(1, b"1")]
    assert [packet.tag for packet in sent_by(machine)] == [0xFFF, 1]
    (late,) = events_of(machine)
    assert isinstance(late, MessageReceived)  # still accepted, until the partner has noticed


def test_nothing_is_taken_after_the_end() -> None:
    machine, _, taken = collecting()
    machine.session_down(0.0)
    (end,) = events_of(machine)
    assert isinstance(end, Disconnected)
    assert taken == []


def test_a_sink_may_end_the_session() -> None:
    def end(_kind: int, _body: bytes) -> None:
        ended.append(1)
        machine.session_down(0.0)

    ended: list[int] = []
    machine, _ = opened(end)
    feed(machine, message(1, 1), message(1, 2), Packet.connection_req(7, 1))
    assert ended == [1]
    assert [type(event) for event in events_of(machine)] == [Disconnected]
