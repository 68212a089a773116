"""The last id, the one who is still in the way of nobody, and a decision that ends everything."""

from __future__ import annotations

import pytest

from mqis.protocol.multiplexer.connection_tables import OutgoingTable
from mqis.protocol.multiplexer.events import (
    Congested,
    ConnectionRequested,
    Disconnected,
    TearDown,
    Writable,
)
from mqis.protocol.multiplexer.limits import QUEUED_OVERHEAD, SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import MultiplexerState
from mqis.testing.cmp import user_message
from mqis.wire.cmp.packet import Packet
from tests.protocol.multiplexer.link import departing, events_of, feed, sent_by, started

LAST_ID = 0xFFFF_FFFF


def test_ids_end_and_do_not_begin_again() -> None:
    """Neither 0, which is that of a PING, nor one in use; but one that is free again."""
    table = OutgoingTable()
    one, two, three = (
        MultiplexedConnection(1, ConnectionState.WAITING, outgoing=True) for _ in range(3)
    )
    table._highest_id = LAST_ID - 1
    table.waiting[one] = None
    assert table.open_next().id == LAST_ID
    table.waiting[two] = None
    with pytest.raises(AssertionError, match="more connections than ids"):
        table.open_next()
    assert table.connections == {LAST_ID: one}
    table.remove(one)
    table.waiting[three] = None
    assert table.open_next() is three
    assert three.id == LAST_ID


def test_who_is_beyond_its_own_limit_keeps_nobody_waiting() -> None:
    """Both were refused; the boxcar that arrives makes room for the second one alone."""
    body = bytes(1000)
    machine = started(SessionLimits(connection_queued_bytes=QUEUED_OVERHEAD + len(body)))
    slow, fast = machine.connect(1), machine.connect(1)
    sent_by(machine)
    events_of(machine)
    machine.send(fast, 1, body)
    departing(machine)
    machine.send(slow, 1, body)  # into the next boxcar
    for connection in (slow, fast):
        with pytest.raises(Congested, match="connection"):
            machine.send(connection, 1, body)
    machine.boxcar_delivered(0.0)
    assert events_of(machine) == [Writable(fast)]
    machine.send(fast, 1, body)
    departing(machine)
    machine.boxcar_delivered(0.0)
    assert events_of(machine) == [Writable(slow)]


def test_what_waits_behind_the_message_that_ends_the_session_is_not_handled() -> None:
    """It waited for a decision; of its cost nothing stays either."""
    machine = started(SessionLimits(max_unsent_answers=0), granted=0, grants=1)
    for _ in range(2):  # as many answers as one slot may have, and none of them leaves
        feed(machine, Packet.connection_req(1, 1))
        (requested,) = events_of(machine)
        machine.accept(requested.connection, 0.0)
        feed(machine, Packet.disconnect(1, 1))
        events_of(machine)
    feed(
        machine,
        Packet.connection_req(1, 1),
        Packet.disconnect(1, 1),
        Packet.connection_req(1, 2),
        user_message(1, 1, b"for the next one", is_master=True),
    )
    (requested,) = events_of(machine)
    assert isinstance(requested, ConnectionRequested)
    before = machine.statistics.messages_received
    machine.accept(requested.connection, 1.0)
    assert machine.state is MultiplexerState.DOWN
    (effect,) = machine.effects()
    assert isinstance(effect, TearDown)
    assert effect.problem
    assert events_of(machine) == [Disconnected(requested.connection, session_down=False)]
    assert machine.statistics.messages_received == before + 1
    assert (machine.statistics.over_allocated, machine.statistics.ignored) == (0, 0)
    assert machine.budget.unread == 0
