"""The end of a session, and who hears of it."""

from __future__ import annotations

import pytest

from mqis.protocol.multiplexer.events import (
    ConnectFailed,
    ConnectionRequested,
    Denied,
    Disconnected,
    Event,
    MessageReceived,
    NotOpen,
)
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer, MultiplexerState
from mqis.testing.cmp import user_message
from mqis.wire.cmp.packet import MsgTag, Packet
from tests.protocol.multiplexer.link import Link, events_of, feed, sent_by, started


def busy() -> tuple[Multiplexer, dict[str, MultiplexedConnection]]:
    """A session with a connection in every state that a table may hold, and one that waits."""
    machine = started(granted=3)
    found = {
        "open": machine.connect(1),
        "denied": machine.connect(2),
        "closing": machine.connect(3),
    }
    found["waiting"] = machine.connect(4)
    machine.send(found["waiting"], 1, b"early")
    machine.disconnect(found["closing"])
    feed(machine, Packet.denied(2, 5), *(Packet.connection_req(n, n) for n in (1, 2, 3)))
    requested = [e.connection for e in events_of(machine) if isinstance(e, ConnectionRequested)]
    found["accepted"], found["refused"], found["undecided"] = requested
    machine.accept(found["accepted"], 0.0)
    machine.deny(found["refused"], 5, 0.0)
    feed(machine, user_message(3, 1, b"held", is_master=True))
    machine.send(found["accepted"], 1, b"queued")
    return machine, found


@pytest.mark.req("CMP-3.1.7.2-01", "CMP-3.1.7.2-02")
def test_partner_killed() -> None:
    """One Disconnected per connection of both tables, ids and room free, nothing left to do."""
    machine, found = busy()
    machine.session_down(1.0, "killed")
    events = events_of(machine)
    assert events[0] == ConnectFailed(found["waiting"], "killed")
    assert events[1:] == [
        Disconnected(found[name], session_down=True)
        for name in ("open", "denied", "closing", "accepted", "undecided")
    ]
    assert all(connection.state is ConnectionState.GONE for connection in found.values())
    assert not machine.outgoing
    assert not machine.incoming
    assert (machine._outgoing.granted, machine._incoming.granted) == (0, 0)
    assert machine.budget.queued == machine.budget.unread == 0
    assert machine.effects() == []
    assert machine.next_timer() is None


@pytest.mark.req("CMP-3.1.7.2-02")
def test_the_next_session_begins_at_id_1_and_without_slots() -> None:
    link = Link().up()
    old = link.a.multiplexer.connect(1)
    link.run()
    link.kill()
    link.run()
    assert link.a.events[-1] == Disconnected(old, session_down=True)
    again = Link().up()
    new = again.a.multiplexer.connect(1)
    assert again.a.multiplexer._outgoing.granted == 0
    again.run()
    assert new.id == 1


def test_nothing_can_be_done_on_what_has_ended() -> None:
    machine, found = busy()
    machine.session_down(1.0)
    for connection in found.values():
        with pytest.raises(NotOpen):
            machine.send(connection, 1, b"")
    with pytest.raises(NotOpen):
        machine.disconnect(found["open"])
    machine.accept(found["undecided"], 2.0)  # the layer above could not know
    machine.deny(found["undecided"], 5, 2.0)
    events_of(machine)
    assert machine.effects() == []


def test_a_call_that_failed_ends_the_session_at_once() -> None:
    """E-CMP-23; a second report comes too late to say it again."""
    machine, found = busy()
    machine.effects()
    machine.session_down(1.0, "refused")
    assert machine.effects() == []
    assert machine.state is MultiplexerState.DOWN
    assert len(events_of(machine)) == 6
    machine.session_down(2.0)
    assert events_of(machine) == []
    assert found["open"].state is ConnectionState.GONE


def test_what_was_received_before_the_end_comes_before_it() -> None:
    machine = started()
    connection = machine.connect(1)
    events_of(machine)
    feed(machine, user_message(1, 1, b"last", is_master=False))
    machine.session_down(1.0)
    message, end = events_of(machine)
    assert isinstance(message, MessageReceived)
    assert message.body == b"last"
    assert end == Disconnected(connection, session_down=True)


def test_a_session_that_could_not_be_had_fails_who_waits_for_it() -> None:
    machine = Multiplexer()
    connection = machine.connect(1)
    assert machine.effects() == []
    machine.session_down(0.0, "nobody there")
    assert events_of(machine) == [ConnectFailed(connection, "nobody there")]


def test_connections_wait_for_a_session_that_is_not_up() -> None:
    link = Link()
    connection = link.a.multiplexer.connect(1)
    link.run()
    assert connection.state is ConnectionState.WAITING
    link.up()
    assert connection.id == 1
    assert [event.connection.type for event in link.b.of(ConnectionRequested)] == [1]


# --- the notification interface -------------------------------------------------------------------


def notify(event: Event) -> None:
    """Hands an event to the interface of its connection, as whoever drives the machine does."""
    interface = event.connection.interface
    if interface is None:
        return
    if isinstance(event, MessageReceived):
        interface.received(event.connection, event.packet)
    elif isinstance(event, Denied):
        interface.denied(event.connection, event.reason)
    elif isinstance(event, Disconnected):
        interface.disconnected(event.connection)


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def received(self, connection: MultiplexedConnection, packet: Packet) -> None:
        self.heard.append(("received", connection, packet.user_msg_type, bytes(packet.data)))

    def disconnected(self, connection: MultiplexedConnection) -> None:
        self.heard.append(("disconnected", connection))

    def denied(self, connection: MultiplexedConnection, reason: int) -> None:
        self.heard.append(("denied", connection, reason))


@pytest.mark.req(
    "CMP-3.1.7.4-01",
    "CMP-3.1.7.4.1-01",
    "CMP-3.1.7.4.3-01",
    "CMP-3.1.4.2-08",
    "CMP-3.1.1.1-02",
)
def test_events_go_to_the_interface_of_their_connection_and_no_other() -> None:
    """Of one opened here from ``connect`` on, of another one from ``accept`` on (E-CMP-18)."""
    machine = started()
    mine, other, theirs = Listener(), Listener(), Listener()
    connection, unheard = machine.connect(1, mine), machine.connect(2, other)
    assert connection.interface is mine
    feed(
        machine,
        Packet.denied(1, 5),
        user_message(2, 8, b"two", is_master=False),
        Packet.connection_req(9, 4),
        user_message(9, 7, b"nine", is_master=True),
        Packet.disconnect(9, 4),
    )
    accepted = None
    while (event := machine.next_event()) is not None:
        if isinstance(event, ConnectionRequested):
            accepted = event.connection
            assert accepted.interface is None
            machine.accept(accepted, 0.0, theirs)
        notify(event)
    assert mine.heard == [("denied", connection, 5)]
    assert other.heard == [("received", unheard, 8, b"two")]
    assert theirs.heard == [("received", accepted, 7, b"nine"), ("disconnected", accepted)]


def test_a_connection_without_interface_is_for_those_who_read_events() -> None:
    machine = started()
    connection = machine.connect(1)
    notify(Denied(connection, 5))
    assert [packet.tag for packet in sent_by(machine)] == [MsgTag.CONNECTION_REQ]
