"""The memory cost of a connection, all of which is freed when the connection ends."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from mqis.protocol.multiplexer.events import AskForConnections, ConnectionRequested, SendBoxcar
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.wire.cmp.packet import Packet
from tests.protocol.multiplexer.link import events_of, feed, started

CONNECTIONS = 10_000
#: The object, its place in a table, its id: 190 bytes with Python 3.11, on either side.
BOUND = 400


def carry(source: Multiplexer, target: Multiplexer) -> None:
    """Everything that ``source`` has to say."""
    while effects := source.effects():
        for effect in effects:
            if isinstance(effect, SendBoxcar):
                assert target.receive(effect.data, effect.count, 0.0)
                source.boxcar_delivered(0.0)
            elif isinstance(effect, AskForConnections):
                source.resources_granted(target.resources_requested(effect.count), 0.0)
        for event in events_of(target):
            if isinstance(event, ConnectionRequested):
                target.accept(event.connection, 0.0)
        events_of(source)


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.untraced
def test_10_000_connections_on_one_session() -> None:
    here, there = Multiplexer(SessionLimits(session_unread_bytes=1 << 30)), Multiplexer()
    here.session_up(0.0)
    there.session_up(0.0)
    tracemalloc.start()
    try:
        before = in_use()
        for number in range(CONNECTIONS):
            here.connect(number)
            if number % 1000 == 0:
                carry(here, there)
                carry(there, here)
        carry(here, there)
        assert len(here.outgoing) == len(there.incoming) == CONNECTIONS
        opened = in_use()
        for connection in list(here.outgoing.values()):
            here.disconnect(connection)
        del connection
        carry(here, there)
        carry(there, here)
        assert not here.outgoing
        assert not there.incoming
        closed = in_use()
    finally:
        tracemalloc.stop()
    each = (opened - before) / CONNECTIONS / 2
    assert each < BOUND, f"{each:.0f} bytes for each end of a connection"
    # Free ids are remembered, and tables keep their size.
    assert (closed - before) / CONNECTIONS / 2 < BOUND / 2


@pytest.mark.untraced
def test_connections_that_come_and_go_leave_nothing() -> None:
    machine = started(grants=10)

    def cycle() -> None:
        feed(machine, *(Packet.connection_req(n, 1) for n in range(10)))
        for event in events_of(machine):
            machine.accept(event.connection, 0.0)
        feed(machine, *(Packet.disconnect(n, 1) for n in range(10)))
        mine = [machine.connect(1) for _ in range(10)]
        for connection in mine:
            machine.send(connection, 1, b"body")
            machine.disconnect(connection)
        machine.effects()
        machine.boxcar_delivered(0.0)
        feed(machine, *(Packet.disconnected(c.id) for c in mine if c.id is not None))
        events_of(machine)

    cycle()
    tracemalloc.start()
    try:
        cycle()
        before = in_use()
        for _ in range(200):
            cycle()
        assert in_use() - before < 2000
    finally:
        tracemalloc.stop()
