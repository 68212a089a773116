"""Two partners and what they do to each other, scene by scene."""

from __future__ import annotations

import pytest

from mqis.protocol.multiplexer.events import (
    AskForConnections,
    ConnectFailed,
    ConnectionOpened,
    ConnectionRequested,
    Denied,
    Disconnected,
    MessageReceived,
    NotOpen,
)
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.testing.cmp import packet_bytes, user_message
from mqis.wire.cmp.packet import MsgTag, Packet
from tests.protocol.multiplexer.link import (
    EXACT,
    Link,
    Side,
    departing,
    events_of,
    feed,
    sent_by,
    started,
)
from tests.wire.cmp.vectors import BODY, VECTORS


def bodies(side: Side) -> list[tuple[int | None, bytes]]:
    return [(event.connection.id, bytes(event.body)) for event in side.of(MessageReceived)]


def tags(side: Side) -> list[MsgTag]:
    return [MsgTag(packet.tag) for packet in side.packets()]


# --- both directions ------------------------------------------------------------------------------


@pytest.mark.req(
    "CMP-3.1.5.6-01", "CMP-3.1.1.1-01", "CMP-3.1.4.1-04", "CMP-3.1.4.1-01", "CMP-3.1.1-02"
)
def test_both_sides_open_id_1_and_exchange() -> None:
    """Finds a fIsMaster that is read the wrong way round, wholly or by half (E-CMP-01)."""
    link = Link().up()
    mine = link.a.multiplexer.connect(0x101)
    theirs = link.b.multiplexer.connect(0x102)
    link.run()
    more = link.a.multiplexer.connect(0x103)
    link.run()
    assert (mine.id, theirs.id, more.id) == (1, 1, 2)
    assert dict(link.a.multiplexer.outgoing) == {1: mine, 2: more}
    at_b, at_a = link.b.multiplexer.incoming[1], link.a.multiplexer.incoming[1]
    link.a.multiplexer.send(mine, 1, b"a on a's")
    link.b.multiplexer.send(at_b, 2, b"b on a's")
    link.b.multiplexer.send(theirs, 3, b"b on b's")
    link.a.multiplexer.send(at_a, 4, b"a on b's")
    link.run()
    received = {
        name: {
            (e.connection, e.packet.user_msg_type, bytes(e.body)) for e in side.of(MessageReceived)
        }
        for name, side in (("a", link.a), ("b", link.b))
    }
    assert received["a"] == {(mine, 2, b"b on a's"), (at_a, 3, b"b on b's")}
    assert received["b"] == {(at_b, 1, b"a on a's"), (theirs, 4, b"a on b's")}


@pytest.mark.req("CMP-1.5-01")
def test_there_is_no_handshake() -> None:
    """Nothing is sent until somebody wants something, and then it goes at once, both ways."""
    link = Link().up()
    assert not link.a.boxcars
    assert not link.b.boxcars
    assert feed(link.b.multiplexer, Packet.ping())
    assert feed(link.a.multiplexer, Packet.ping())


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.req("CMP-1.3-02", "CMP-3.1.5.5-07", "CMP-3.1.5.5-04", "CMP-3.1.4.2-09")
def test_request_and_first_message_share_a_boxcar() -> None:
    """Byte for byte the example of 4.1.2, and nothing comes back for an acceptance."""
    link = Link().up()
    connection = link.a.multiplexer.connect(0x101)
    link.a.multiplexer.send(connection, 0x2001, BODY)
    link.run()
    assert [car.data for car in link.a.boxcars] == [VECTORS["boxcar"]]
    assert link.b.boxcars == []
    (requested,) = link.b.of(ConnectionRequested)
    assert (requested.connection.id, requested.connection.type) == (1, 0x101)
    assert bodies(link.b) == [(1, BODY)]


@pytest.mark.req("CMP-3.1.5.5-05", "CMP-3.1.5.5-06", "CMP-3.1.5.3-02", "CMP-3.1.7.4.3-01")
def test_request_and_first_message_refused() -> None:
    link = Link().up()
    link.b.denies[0x101] = 0x80070005
    connection = link.a.multiplexer.connect(0x101)
    link.a.multiplexer.send(connection, 0x2001, BODY)
    link.run()
    assert [packet_bytes(packet) for packet in link.b.packets()] == [
        VECTORS["CONNECTION_REQ_DENIED"]
    ]
    assert link.a.of(Denied) == [Denied(connection, 0x80070005)]
    assert bodies(link.b) == []
    assert link.b.multiplexer.incoming[1].state is ConnectionState.REFUSED
    assert not link.b.multiplexer.incoming[1].accepted
    assert link.a.multiplexer.outgoing == {1: connection}


@pytest.mark.req("CMP-3.1.5.3-03", "CMP-4.2.2-02", "CMP-3.1.5.1-04")
def test_a_refused_connection_still_disconnects() -> None:
    """Its owner at the acceptor was rid of it when it refused: no event there (E-CMP-15)."""
    link = Link().up()
    link.b.denies[7] = 5
    connection = link.a.multiplexer.connect(7)
    link.run()
    link.a.multiplexer.disconnect(connection)
    link.run()
    assert tags(link.a) == [MsgTag.CONNECTION_REQ, MsgTag.DISCONNECT]
    assert tags(link.b) == [MsgTag.CONNECTION_REQ_DENIED, MsgTag.DISCONNECTED]
    assert link.a.events == [
        ConnectionOpened(connection),
        Denied(connection, 5),
        Disconnected(connection, session_down=False),
    ]
    assert link.b.of(Disconnected) == []
    assert not link.b.multiplexer.incoming
    assert not link.a.multiplexer.outgoing


def test_nothing_is_sent_on_a_refused_connection() -> None:
    link = Link().up()
    link.b.denies[7] = 5
    connection = link.a.multiplexer.connect(7)
    link.run()
    with pytest.raises(NotOpen, match="denied by the partner"):
        link.a.multiplexer.send(connection, 1, b"")
    with pytest.raises(NotOpen, match="denied here"):
        link.b.multiplexer.send(link.b.multiplexer.incoming[1], 1, b"")


@pytest.mark.req("CMP-3.1.5.5-04")
def test_messages_wait_for_the_decision() -> None:
    """E-CMP-16: with an acceptance that takes its time, the first message is not lost."""
    link = Link().up()
    link.b.reading = False
    connection = link.a.multiplexer.connect(1)
    link.a.multiplexer.send(connection, 10, b"first")
    link.run()
    link.a.multiplexer.send(connection, 11, b"second")
    link.a.multiplexer.disconnect(connection)
    link.run()
    assert events_of(link.b.multiplexer)[1:] == []
    incoming = link.b.multiplexer.incoming[1]
    link.b.multiplexer.accept(incoming, link.now)
    link.b.reading = True
    link.run()
    assert bodies(link.b) == [(1, b"first"), (1, b"second")]
    assert isinstance(link.b.events[-1], Disconnected)
    assert link.a.events[-1] == Disconnected(connection, session_down=False)


@pytest.mark.parametrize("deny", [False, True])
def test_an_id_used_again_while_messages_wait(deny: bool) -> None:
    """The second connection with the id makes what follows it wait again."""
    machine = started()
    feed(
        machine,
        Packet.connection_req(9, 1),
        user_message(9, 1, b"one", is_master=True),
        Packet.disconnect(9, 1),
        Packet.connection_req(9, 2),
        user_message(9, 2, b"two", is_master=True),
    )
    (first,) = events_of(machine)
    if deny:
        machine.deny(first.connection, 5, 0.0)
    else:
        machine.accept(first.connection, 0.0)
    *told, second = events_of(machine)
    assert isinstance(second, ConnectionRequested)
    assert second.connection is not first.connection
    assert [type(event) for event in told] == ([] if deny else [MessageReceived, Disconnected])
    machine.accept(second.connection, 0.0)
    (message,) = events_of(machine)
    assert isinstance(message, MessageReceived)
    assert (message.connection, bytes(message.body)) == (second.connection, b"two")


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.5-02", "CMP-3.1.5-03", "CMP-3.1.4.1-05", "CMP-3.1.4.1-03")
def test_messages_come_in_the_order_they_were_sent() -> None:
    link = Link().up()
    connections = [link.a.multiplexer.connect(n) for n in range(3)]
    for n in range(50):
        link.a.multiplexer.send(connections[n % 3], n, b"%d" % n * (n * 97))
        if n % 7 == 0:
            link.run()
    link.run()
    received = [
        (e.packet.user_msg_type, e.connection.id, bytes(e.body)) for e in link.b.of(MessageReceived)
    ]
    assert received == [(n, n % 3 + 1, b"%d" % n * (n * 97)) for n in range(50)]


@pytest.mark.req("CMP-3.1.5-03")
def test_the_same_id_waits_in_both_tables() -> None:
    """Messages are grouped by id alone (E-CMP-11)."""
    machine = started()
    own = machine.connect(5)
    events_of(machine)
    feed(machine, Packet.connection_req(1, 7), user_message(1, 8, b"", is_master=False))
    (requested,) = events_of(machine)
    machine.accept(requested.connection, 0.0)
    (message,) = events_of(machine)
    assert message.connection is own


@pytest.mark.req("CMP-3.1.5-04")
def test_another_id_does_not_wait() -> None:
    machine = started()
    own = machine.connect(5)
    events_of(machine)
    feed(machine, Packet.connection_req(2, 7), user_message(1, 8, b"", is_master=False))
    requested, message = events_of(machine)
    assert isinstance(requested, ConnectionRequested)
    assert message.connection is own


def test_a_ping_does_not_wait_behind_a_connection_with_id_0() -> None:
    machine = started()
    feed(machine, Packet.connection_req(0, 7), Packet.ping())
    assert machine.statistics.messages_received == 2


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.5.2-02", "CMP-3.1.4.2-07", "CMP-3.1.4.3-03")
def test_an_id_is_free_again_only_after_disconnected() -> None:
    """E-CMP-14: after DISCONNECT alone, the late answer would end the new connection."""
    machine = started()
    first = machine.connect(1)
    machine.disconnect(first)
    second = machine.connect(1)
    assert (first.id, second.id) == (1, 2)
    assert dict(machine.outgoing) == {1: first, 2: second}
    events_of(machine)
    feed(machine, Packet.disconnected(1))
    assert events_of(machine) == [Disconnected(first, session_down=False)]
    third = machine.connect(1)
    assert third.id == 1
    assert dict(machine.outgoing) == {2: second, 1: third}
    feed(machine, Packet.disconnected(1))  # no DISCONNECT was sent for the third
    assert machine.outgoing[1] is third


@pytest.mark.req("CMP-3.1.5.5-02")
@pytest.mark.parametrize("accepted", [True, False])
def test_a_request_for_an_id_in_use_is_dropped(accepted: bool) -> None:
    machine = started()
    feed(machine, Packet.connection_req(1, 7))
    (requested,) = events_of(machine)
    first = requested.connection
    if accepted:
        machine.accept(first, 0.0)
    else:
        machine.deny(first, 5, 0.0)
        assert len(sent_by(machine)) == 1
    feed(machine, Packet.connection_req(1, 8))
    assert events_of(machine) == []
    assert sent_by(machine) == []
    assert dict(machine.incoming) == {1: first}
    assert first.type == 7


def test_the_first_id_is_1() -> None:
    """So that no PING, whose id is 0, could be meant for a connection."""
    assert started().connect(1).id == 1


# --- slots ----------------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.4.2-04", "CMP-3.1.1-06", "CMP-3.1.1-03", "CMP-3.1.4.2-05")
def test_two_of_five_are_granted_and_then_a_third() -> None:
    link = Link(SessionLimits(request_slots=5, slots_ahead=0), SessionLimits(max_grant=2)).up()
    first, second = link.a.multiplexer.connect(1), link.a.multiplexer.connect(1)
    assert first.id is None
    link.run()
    assert link.a.multiplexer._outgoing.granted == link.b.multiplexer._incoming.granted == 2
    assert [first.id, second.id] == [1, 2]
    assert link.a.requests == [5]
    third = link.a.multiplexer.connect(1)
    assert third.id is None
    link.run()
    assert link.a.requests == [5, 5]
    assert third.id == 3
    assert link.a.multiplexer._outgoing.granted == link.b.multiplexer._incoming.granted == 4
    assert len(link.b.of(ConnectionRequested)) == 3


@pytest.mark.req("CMP-3.1.1-07", "CMP-3.1.1-04", "CMP-3.1.7.3-01", "CMP-3.1.7.3-02")
def test_grants_add_up_and_end() -> None:
    machine = started(SessionLimits(max_grant=10, max_incoming=15), grants=0)
    assert machine._incoming.granted == 0
    assert machine.resources_requested(3) == 3
    assert machine._incoming.granted == 3
    assert machine.resources_requested(20) == 10
    assert machine._incoming.granted == 13
    assert machine.resources_requested(5) == 2
    assert machine.resources_requested(5) == 0
    assert machine._incoming.granted == 15


@pytest.mark.req("CMP-3.1.7.3-03")
def test_nothing_left_to_grant_is_zero_and_changes_nothing() -> None:
    """The driver answers 0x80000127 for a zero."""
    machine = started(SessionLimits(max_incoming=0), grants=0)
    assert machine.resources_requested(1) == 0
    assert machine._incoming.granted == 0


@pytest.mark.parametrize("granted", [0, -1])
def test_a_success_that_grants_nothing_fails_the_connection(granted: int) -> None:
    """E-CMP-24."""
    machine = started(granted=0)
    connection = machine.connect(1)
    machine.resources_granted(granted, 0.0)
    (event,) = events_of(machine)
    assert isinstance(event, ConnectFailed)
    assert event.connection is connection
    assert connection.state is ConnectionState.GONE
    assert machine._outgoing.granted == 0


@pytest.mark.req("CMP-3.1.4.2-06")
def test_a_refusal_fails_the_connections_that_wait_and_nothing_else() -> None:
    link = Link(SessionLimits(request_slots=1, slots_ahead=0), SessionLimits(max_incoming=1)).up()
    first = link.a.multiplexer.connect(1)
    link.run()
    second = link.a.multiplexer.connect(1)
    link.a.multiplexer.send(second, 1, b"early")
    link.run()
    assert [type(event) for event in link.a.events] == [ConnectionOpened, ConnectFailed]
    assert link.a.events[-1].connection is second
    assert dict(link.a.multiplexer.outgoing) == {1: first}
    link.a.multiplexer.send(first, 1, b"still")
    link.run()
    assert bodies(link.b) == [(1, b"still")]
    assert link.a.multiplexer.budget.queued == 0


def test_more_is_not_granted_than_was_asked_for() -> None:
    machine = started(granted=0)
    machine.connect(1)
    machine.resources_granted(0xFFFFFFFF, 0.0)
    assert machine._outgoing.granted == 1


def test_no_request_goes_beyond_999() -> None:
    machine = Multiplexer(EXACT)
    for _ in range(2000):
        machine.connect(1)
    machine.session_up(0.0)
    assert machine.effects() == [AskForConnections(999)]


def test_slots_are_asked_for_before_the_last_is_taken() -> None:
    link = Link(SessionLimits(request_slots=10, slots_ahead=3)).up()
    for _ in range(7):
        link.a.multiplexer.connect(1)
        link.run()
    assert link.a.requests == [10]
    link.a.multiplexer.connect(1)
    link.run()
    assert link.a.requests == [10, 10]
    assert link.a.multiplexer._outgoing.granted == 20


def test_an_advance_request_that_is_refused_hurts_nobody_and_is_not_repeated() -> None:
    link = Link(SessionLimits(request_slots=4, slots_ahead=3), SessionLimits(max_incoming=4)).up()
    connections = []
    for _ in range(4):
        connections.append(link.a.multiplexer.connect(1))
        link.run()
    assert link.a.requests == [4, 4]
    assert link.a.of(ConnectFailed) == []
    last = link.a.multiplexer.connect(1)
    link.run()
    assert link.a.requests == [4, 4, 4]
    assert [event.connection for event in link.a.of(ConnectFailed)] == [last]


def test_a_slot_that_comes_free_goes_to_who_waits() -> None:
    machine = started(granted=1)
    first = machine.connect(1)
    second = machine.connect(2)
    machine.disconnect(first)
    assert second.id is None
    feed(machine, Packet.disconnected(1))
    assert second.id == 1
    assert machine.outgoing == {1: second}


@pytest.mark.req("CMP-3.1.5.5-01")
def test_over_allocation_gets_silence() -> None:
    """No answer, no event, and the DISCONNECT that follows is not answered either (E-CMP-13)."""
    machine = started(grants=2)
    feed(machine, *(Packet.connection_req(n, 7) for n in (1, 2, 3)))
    for event in events_of(machine):
        machine.accept(event.connection, 0.0)
    feed(machine, user_message(3, 1, b"", is_master=True), Packet.disconnect(3, 7))
    assert events_of(machine) == []
    assert machine.effects() == []
    assert list(machine.incoming) == [1, 2]
    assert machine.statistics.over_allocated == 1
    assert machine.statistics.ignored == 3


def test_nothing_at_all_is_granted_before_it_is_asked_for() -> None:
    machine = started(grants=0)
    feed(machine, Packet.connection_req(1, 7))
    assert events_of(machine) == []
    assert not machine.incoming


# --- closing --------------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.4.3-02", "CMP-3.1.5.1-02", "CMP-3.1.7.4.2-01", "CMP-3.1.4.3-03")
def test_disconnect_and_its_answer_on_the_wire() -> None:
    link = Link().up()
    connection = link.a.multiplexer.connect(0x101)
    link.run()
    incoming = link.b.multiplexer.incoming[1]
    link.a.multiplexer.disconnect(connection)
    assert link.a.multiplexer.outgoing == {1: connection}
    link.run()
    assert packet_bytes(link.a.packets()[-1]) == VECTORS["DISCONNECT"]
    assert [packet_bytes(packet) for packet in link.b.packets()] == [VECTORS["DISCONNECTED"]]
    assert link.b.events[-1] == Disconnected(incoming, session_down=False)
    assert link.a.events[-1] == Disconnected(connection, session_down=False)
    assert connection.state is incoming.state is ConnectionState.GONE


def test_messages_arrive_while_the_disconnect_is_under_way() -> None:
    """1.3: what the acceptor had queued comes before its answer."""
    machine = started()
    connection = machine.connect(1)
    machine.disconnect(connection)
    events_of(machine)
    feed(machine, user_message(1, 9, b"late", is_master=False), Packet.disconnected(1))
    message, end = events_of(machine)
    assert isinstance(message, MessageReceived)
    assert end == Disconnected(connection, session_down=False)


@pytest.mark.req("CMP-3.1.5.1-04")
def test_the_answer_stands_behind_what_was_queued() -> None:
    link = Link().up()
    connection = link.a.multiplexer.connect(1)
    link.run()
    link.a.multiplexer.disconnect(connection)
    disconnect = departing(link.a.multiplexer)
    link.b.multiplexer.send(link.b.multiplexer.incoming[1], 2, b"last words")
    link.b.multiplexer.receive(disconnect.data, 1, link.now)
    link.run()
    assert tags(link.b) == [MsgTag.USER_MESSAGE, MsgTag.DISCONNECTED]
    assert bodies(link.a) == [(1, b"last words")]


@pytest.mark.req("CMP-1.3-01", "CMP-3.1.4.3-01")
def test_only_the_opener_closes() -> None:
    link = Link().up()
    connection = link.a.multiplexer.connect(1)
    link.run()
    with pytest.raises(ValueError, match="only the side that opened"):
        link.b.multiplexer.disconnect(link.b.multiplexer.incoming[1])
    other = started()
    with pytest.raises(ValueError, match="another session"):
        other.disconnect(connection)
    link.a.multiplexer.session_down(0.0)
    with pytest.raises(NotOpen, match="gone"):
        link.a.multiplexer.disconnect(connection)


def test_connections_of_another_session_are_not_sent_on() -> None:
    one, two = started(), started(granted=0)
    with pytest.raises(ValueError, match="another session"):
        two.send(one.connect(1), 1, b"")
    with pytest.raises(ValueError, match="another session"):
        one.send(two.connect(1), 1, b"")
    feed(one, Packet.connection_req(1, 1))
    requested = next(e for e in events_of(one) if isinstance(e, ConnectionRequested))
    with pytest.raises(ValueError, match="another session"):
        two.accept(requested.connection, 0.0)
